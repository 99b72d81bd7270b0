"""Reasoning is taken out of answers here, whole or while they stream.

Some servers put a model's reasoning into the text itself, as `<think>…</think>`. It is never stored (law 1), so:

* `<think>`, `<thinking>`, `<reasoning>` and `<thought>` count, in any case, with attributes, nested, several times; one
  that is never closed reaches to the end. White space between a block and the text goes where it would double.
* A tag inside a code span or a fence is only talked about, and stays. A span is believed only when it is closed on its
  own line soon after the tag (within `HELD` characters): a stray backtick must not let reasoning out. Inside
  reasoning, a tag is talked about only when backticks touch it on both sides.
* The result never depends on where the pieces were cut, no more than `HELD` characters are held back, and the work is
  linear in the text.
* A closing tag without an opening one means that the opening tag stood in the prompt, and that all before it was
  reasoning. `strip_think` takes it out. A stream has handed it out by then, so the filter leaves the tag where it is,
  and whoever stores the pieces calls `strip_think` on them once more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HELD = 120
"""More than the longest tag, in characters, and the most that the filter holds back."""

_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning|thought)(?:\s[^<>]{0,100})?(/?)>", re.IGNORECASE)
_BEGUN = re.compile(r"</?([a-z]{0,9})(\s[^<>]{0,100})?(/?)$", re.IGNORECASE)
_NAMES = ("think", "thinking", "reasoning", "thought")
_OUTSIDE = re.compile(r"[^`~<\n]+|`+|~+|\n|<")
_INSIDE = re.compile(r"[^<]+|<")
_MARKS = re.compile(r"`+|\n")


def strip_think(text: str) -> str:
    """A whole text without reasoning; one without any comes back as it is."""
    reading = ThinkFilter()
    out = reading.feed(text) + reading.finish()
    return out[reading.bare :].lstrip() if reading.bare else out


class ThinkFilter:
    """Takes reasoning out of a text that comes in pieces: `feed` each, then `finish` once.

    What the methods return, joined, is the text without reasoning. A filter serves one text.
    """

    def __init__(self) -> None:
        self._held = ""
        self._depth = 0  # of reasoning
        self._code = _Code()
        self._eat = False  # white space that follows a block
        self._out = "\n"  # what was handed out last
        self._in = ""  # what was read last inside reasoning
        self._handed = 0
        self.bare = 0
        """How much had been handed out when the last closing tag without an opening one was past; 0 without one."""

    def feed(self, piece: str) -> str:
        """The part of the text that is by now known to be no reasoning."""
        return self._run(self._held + piece, final=False)

    def finish(self) -> str:
        """What was still held back."""
        return self._run(self._held, final=True)

    def _run(self, text: str, *, final: bool) -> str:
        out: list[str] = []
        at = 0
        while at < len(text):
            token = (_INSIDE if self._depth else _OUTSIDE).match(text, at)[0]  # type: ignore[index]  # never None
            if token == "<":
                token, real = self._tag(text, at, final)
                if not token:
                    break
                if real and self._turn(token):
                    at += len(token)
                    continue
            at += len(token)
            if self._depth:
                self._in = token[-1]
            else:
                out.append(self._hand(token))
        self._held = text[at:]
        return "".join(out)

    def _tag(self, text: str, at: int, final: bool) -> tuple[str, bool]:
        """What begins at this bracket and whether it is a tag that means it; nothing when that is not yet known."""
        tag = _TAG.match(text, at)
        if tag is None:
            return ("", False) if not final and _may_become_tag(text[at : at + HELD]) else ("<", False)
        window, whole = text[tag.end() : at + HELD], final or len(text) >= at + HELD
        quoted = self._wrapped(window, whole) if self._depth else self._code.quotes(window, whole)
        return ("", False) if quoted is None else (tag[0], not quoted)

    def _wrapped(self, window: str, whole: bool) -> bool | None:
        """Whether backticks touch a tag inside reasoning on both sides."""
        if self._in != "`":
            return False
        return window[0] == "`" if window else (False if whole else None)

    def _turn(self, tag: str) -> bool:
        """Go in or out of reasoning. False for a closing tag that closes nothing."""
        if tag[1] != "/":
            self._depth += tag[-2] != "/"
        elif self._depth:
            self._depth -= 1
        else:
            self.bare = self._handed + len(tag)
            return False
        self._in = ">"
        self._eat = self._out.isspace()
        return True

    def _hand(self, token: str) -> str:
        if self._eat:
            token = token.lstrip()
            self._eat = not token
        if token:
            self._code.see(token)
            self._out = token[-1]
            self._handed += len(token)
        return token


def _may_become_tag(text: str) -> bool:
    """Whether a text that ends in a tag's first characters could go on as one."""
    begun = _BEGUN.match(text)
    if begun is None:
        return False
    name = begun[1].lower()
    return name in _NAMES if begun[2] or begun[3] else any(known.startswith(name) for known in _NAMES)


@dataclass(slots=True)
class _Code:
    """Where in Markdown's code the text that was handed out has come to (CommonMark 0.31, 4.5 and 6.1)."""

    indent: int = 0  # spaces at the beginning of this line; -1 when more than three, or something else, was seen
    mark: str = ""  # of the run of backticks or tildes that is being read
    run: int = 0
    first: bool = False  # that run is the first thing on its line
    ticks: int = 0  # length of the marks that opened a span on this line
    fence: str = ""
    length: int = 0  # of the fence's marks
    opening: bool = False  # still on the fence's first line
    closing: bool = False  # this line closes the fence if nothing else comes on it

    def see(self, token: str) -> None:
        """Read on. The token is a run of one mark, a line break, or text without either."""
        if token[0] in "`~":
            self._mark(token)
            return
        self._end_run()
        if token == "\n":
            self.fence = "" if self.closing else self.fence
            self.opening = self.closing = False
            self.ticks = self.indent = 0
        else:
            blank = not token.strip(" \t")
            self.closing &= blank
            spaces = self.indent + len(token) if self.indent >= 0 and blank else 4
            self.indent = spaces if spaces <= 3 else -1

    def quotes(self, window: str, whole: bool) -> bool | None:
        """Whether a tag that comes now is code. `window` follows the tag; None: more of it is needed to know."""
        self._end_run()
        if self.fence:
            return True
        if not self.ticks:
            return False
        for marks in _MARKS.finditer(window):
            if marks[0] == "\n":
                return False
            if len(marks[0]) == self.ticks and (whole or marks.end() < len(window)):
                return True
        return False if whole else None

    def _mark(self, token: str) -> None:
        if token[0] != self.mark:
            self._end_run()
            self.mark, self.first = token[0], self.indent >= 0
        self.run += len(token)
        self.indent = -1

    def _end_run(self) -> None:
        mark, run, self.mark, self.run = self.mark, self.run, "", 0
        if not run:
            return
        if self.opening and mark == self.fence == "`":  # backticks after the fence on its line: it was a span
            self.fence, self.opening, self.ticks = "", False, self.length
        if self.fence:
            self.closing = self.first and mark == self.fence and run >= self.length
        elif self.first and run >= 3:
            self.fence, self.length, self.opening = mark, run, True
        elif mark == "`":
            self.ticks = 0 if self.ticks == run else self.ticks or run
