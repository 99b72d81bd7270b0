"""The watch: a stateless analyser whose memory travels with the caller.

    parsed = parse("Where are your parents now?", language="en")
    parsed = parse("Can you turn on your camera?", language="en", memory=parsed.memory)
    parsed.result.alerts, parsed.result.explanations

It names messages, never people; an alert is a reason for a trained person to look, never a verdict. `parse` is a pure
function; the only input is the package's own data, read when first used. `load` builds a rule set with a folder of
one's own, or with rules switched off.
"""

from nitka.watch.data import load
from nitka.watch.engine import Watch
from nitka.watch.errors import RuleError, TooLarge, WatchError
from nitka.watch.parse import Parsed, Result, error_json, languages, merge, merge_json, parse, parse_json
from nitka.watch.types import Alert, Entity, Evidence, Finding

__all__ = [
    "Alert",
    "Entity",
    "Evidence",
    "Finding",
    "Parsed",
    "Result",
    "RuleError",
    "TooLarge",
    "Watch",
    "WatchError",
    "error_json",
    "languages",
    "load",
    "merge",
    "merge_json",
    "parse",
    "parse_json",
]
