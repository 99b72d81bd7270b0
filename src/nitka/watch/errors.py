"""What the watch refuses: the path of the bad value, what was found and what is allowed. The value itself is never
quoted.

`status` is the HTTP status that a server should answer with: 400 for what is malformed, 413 for what is too large.
"""

from __future__ import annotations


class WatchError(ValueError):
    """A value given to the watch cannot be used."""

    status = 400

    def __init__(self, path: str, found: str, allowed: str) -> None:
        super().__init__(f"{path}: found {found}; allowed: {allowed}")
        self.path, self.found, self.allowed = path, found, allowed


class TooLarge(WatchError):
    """What the caller keeps in the memory is over the limit."""

    status = 413


class RuleError(WatchError):
    """A rule folder or lexicon is malformed; `path` names the file and the line or entry."""


def kind(value: object) -> str:
    """Name the JSON kind of a value, which is all an error may say about it."""
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "an array",
        dict: "an object",
    }
    return "null" if value is None else names.get(type(value), "something that is not JSON")
