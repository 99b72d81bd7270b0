"""The watch: a stateless analyser whose memory travels with the caller.

    parsed = parse("Where are your parents now?", language="en")
    parsed = parse("Can you turn on your camera?", language="en", memory=parsed.memory)
    parsed.result.alerts

It names messages, never people; an alert is a reason for a trained person to look. Imports nothing else of nitka; pure but for reading its own
data when first used.
"""

from nitka.watch.data import default, load

__all__ = ["default", "load"]
