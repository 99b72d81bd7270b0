"""How each layer is written into a message: labels, quoting, escaping.

Rules:
* Memory and knowledge are quoted line by line: every line of data begins with `| `, and no line of ours does. So
  nothing inside a fact, a summary or a passage can pass for a label, an end mark or a role, whatever it holds. Every
  kind of line break counts.
* A fact, a summary line and a label are one line each; a passage keeps its line breaks, but not a run of blank lines
  long enough to look like the end of a page.
* What chat templates read as control tokens is broken up by one space inside quoted data, because some servers parse
  them in any text.
* Rows of the conversation are sent word for word. Only what no provider takes is replaced: half surrogate pairs and
  NUL by U+FFFD, and a blank text by a visible mark. An interrupted answer carries a mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nitka.door import is_blank, sound
from nitka.request.labels import Labels
from nitka.types import ChatMessage, Message, Passage

QUOTE = "| "
PASSAGE = "--"
BLANK_LINES = 2  # kept between two lines of a passage
SEPARATOR = "\n\n"  # between the layers that share the leading message

_CONTROL_TOKEN = re.compile(
    r"<(?=[|｜][\w▁])"  # <|im_start|> and its kin
    r"|<(?=/?(?:s|bos|eos|pad|unk|SYS|start_of_turn|end_of_turn)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS)\])"
)
# Controls, surrogates and the invisible tag characters; line breaks are gone by the time this is used.
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\U000e0000-\U000e007f\u202a-\u202e\u2066-\u2069]")


def quote(text: str) -> str:
    """Data as quoted lines, each beginning with `| `; blank runs are shortened. Empty for a blank text."""
    quoted: list[str] = []
    blank = 0
    for line in text.splitlines():
        clean = _defuse(line).rstrip()
        if clean and quoted:
            quoted += [QUOTE.rstrip()] * min(blank, BLANK_LINES)
        if clean:
            quoted.append(QUOTE + clean)
        blank = 0 if clean else blank + 1
    return "\n".join(quoted)


def one_line(text: str) -> str:
    """Data as one line without any break, control or control token."""
    if text.isprintable() and "<" not in text and "[" not in text and "  " not in text:
        return text.strip()  # nearly every line of a summary
    return " ".join(_defuse(" ".join(text.splitlines())).split())


def quote_lines(lines: Iterable[str]) -> str:
    """Statements as quoted lines, one each; blank ones go."""
    each = list(lines)
    text = "\n".join(each)
    if _is_quotable(text, len(each)):
        return QUOTE + text.replace("\n", "\n" + QUOTE)
    return "\n".join(QUOTE + clean for clean in map(one_line, each) if clean)


def _is_quotable(text: str, lines: int) -> bool:
    """Whether that many lines, joined, can be quoted as they are: nearly every summary, at a tenth of the price."""
    return (
        text.count("\n") == lines - 1
        and text.replace("\n", "").isprintable()
        and not any(sign in text for sign in _NOT_QUOTABLE)
        and text[:1] not in ("", " ", "\n")
        and text[-1] not in " \n"
    )


_NOT_QUOTABLE = ("<", "[", "  ", "\n\n", "\n ", " \n")


def fact_text(fact: Passage) -> str:
    """A fact as one quoted line, its label before it; empty when it says nothing."""
    text, label = one_line(fact.text), one_line(fact.label)
    if not text:
        return ""
    return f"{QUOTE}[{label}] {text}" if label else QUOTE + text


def passage_text(head: str, passage: Passage) -> str:
    """A passage under a line that sets it apart from the one before; empty if it is blank.

    `head` is `PASSAGE`, or the rank in the caller's list (`[1]`), so that an answer can name the passage.
    """
    text, label = quote(passage.text), one_line(passage.label)
    if not text:
        return ""
    return f"{head}\n{QUOTE}({label})\n{text}" if label else f"{head}\n{text}"


def section(label: str, items: Sequence[str], tail: str = "") -> str:
    """A labelled run of quoted items, and what is to be said after them."""
    return "\n".join([label, *items, tail] if tail else [label, *items])


def row_message(row: Message, labels: Labels) -> ChatMessage:
    """A row of the log as a chat message, word for word; its content is the very `row.text` where that can be sent."""
    text = sound(row.text)
    if is_blank(text):
        text = labels.empty
    return {"role": row.role, "content": f"{text}\n{labels.interrupted}" if row.interrupted else text}


def _defuse(line: str) -> str:
    if not line.isprintable():
        line = _INVISIBLE.sub(" ", line)
    return _CONTROL_TOKEN.sub(lambda found: found[0] + " ", line) if "<" in line or "[" in line else line
