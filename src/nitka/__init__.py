"""nitka: conversation state for models that remember nothing."""
