// The chat widget.
