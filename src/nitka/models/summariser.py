"""The summariser that asks a chat model.

Rules:
* The model is shown the present lines, numbered, and the new messages, all as JSON data under a fixed prompt. It
  answers which lines to add and which positions are replaced; it cannot touch anything else.
* "Nothing to add" is an explicit empty list. Anything that is not the asked-for object (prose, an error in words, a
  cut-off or empty answer, `null`) is a `ModelError`, so that a failure never becomes a summary and never passes for
  silence.
* What can be repaired without guessing is: a code fence, a sentence before or after the object, a bare string as a
  line, a number in quotes. A bad item is left out and the others stand; if all are bad, the answer is.
* Caps, ranges and duplicates are put right by `layers.summary.advance`; here only lengths are bounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from nitka.door import sound
from nitka.errors import ModelError
from nitka.models.extract import condense
from nitka.models.extract.lexicon import certain_language
from nitka.models.ports import ChatModel
from nitka.types import ChatMessage, Line, Message, Proposal

MESSAGE_TOKENS = 1_500  # shown of one message, about; a longer one is condensed in the middle
FULL_CHARS = 400
GIST_CHARS = 160
ANSWER_CHARS = 100_000  # above this an answer is no list of a few lines
OBJECTS_TRIED = 20  # opening braces at which the answer may begin
LINE = {
    "type": "object",
    "properties": {
        "full": {"type": "string"},
        "gist": {"type": "string"},
        "first": {"type": "integer"},
        "last": {"type": "integer"},
    },
    "required": ["full", "gist", "first", "last"],
    "additionalProperties": False,
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "add": {"type": "array", "items": LINE},
        "replaced": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["add", "replaced"],
    "additionalProperties": False,
}


class ModelSummariser:
    """`Summariser` through a chat model. Keeps nothing between calls."""

    def __init__(self, chat: ChatModel) -> None:
        self.name = chat.name
        self._chat = chat

    async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
        """Lines to add for `messages` and which of `lines` they replace; `cap` tokens is the room of the whole summary.

        Raises `ModelError`; an answer that cannot be used is retryable.
        """
        if not messages:
            return Proposal()
        answer = await self._chat.complete(request(lines, messages, cap=cap), max_tokens=3 * cap + 300, schema=SCHEMA)
        return read(answer.text, lines=len(lines), first=messages[0].seq, last=messages[-1].seq)


@cache
def _prompt() -> str:
    return resources.files("nitka.models").joinpath("prompts").joinpath("summary.md").read_text("utf-8")


def request(lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> list[ChatMessage]:
    """What the model is sent: the prompt, and lines and messages as one JSON object."""
    data = {
        "language": certain_language("\n".join(message.text[:2_000] for message in messages)) or "that of the messages",
        "lines": [{"n": at, "text": line.text} for at, line in enumerate(lines)],
        "messages": [{"seq": m.seq, "role": m.role, "text": _shown(m.text)} for m in messages],
    }
    return [
        {"role": "system", "content": _prompt().replace("{cap}", str(cap))},
        {"role": "user", "content": json.dumps(data, ensure_ascii=False)},
    ]


def _shown(text: str) -> str:
    return condense(text, room=MESSAGE_TOKENS, count=_size)


def _size(text: str) -> int:
    """Tokens, about: a quarter of the bytes, since no exact count is needed to keep a message short."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4


def read(text: str, *, lines: int, first: int, last: int) -> Proposal:
    """The model's answer as a proposal for `lines` present lines and the rows `first..last`. Raises `ModelError`."""
    answer = _object(text)
    add, replaced = answer.get("add"), answer.get("replaced", [])
    if not isinstance(add, list) or not isinstance(replaced, list):
        raise ModelError("The summary answer has another shape.", retryable=True)
    usable = [line for line in (_line(item, first, last) for item in add) if line is not None]
    if add and not usable:
        raise ModelError("No line of the summary answer can be used.", retryable=True)
    positions = {at for at in map(_number, replaced) if at is not None and 0 <= at < lines}
    return Proposal(add=tuple(usable), replaced=tuple(sorted(positions)))


def _object(text: str) -> Mapping[str, Any]:
    """The first JSON object in the answer that has the asked-for list; what stands around it is talk."""
    if len(text) > ANSWER_CHARS:
        raise ModelError("The summary answer is far too long.", retryable=True)
    for found in _objects(text):
        if "add" in found:
            return found
    raise ModelError("The summary answer holds no JSON object with lines to add.", retryable=True)


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(OBJECTS_TRIED):
        if at < 0:
            return
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found
        at = text.find("{", end)


def _line(item: object, first: int, last: int) -> Line | None:
    """One line as answered; None when it says nothing. Rows that do not exist become the whole slice."""
    fields: Mapping[str, Any] = item if isinstance(item, Mapping) else {"full": item}
    full, gist = _words(fields.get("full")), _words(fields.get("gist"))
    if not full and not gist:
        return None
    a, b = _number(fields.get("first")), _number(fields.get("last"))
    inside = a is not None and b is not None and first <= a <= b <= last
    rows = (a, b) if inside and a is not None and b is not None else (first, last)
    return Line(full=_cut(full or gist, FULL_CHARS), gist=_cut(gist or full, GIST_CHARS), first=rows[0], last=rows[1])


def _words(value: object) -> str:
    """One clean line. JSON can hold halves of a surrogate pair, which no row could keep."""
    return " ".join(sound(value).split()) if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 12:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _cut(text: str, size: int) -> str:
    """At most `size` characters, ended after a clause if one ends in the second half, else after a word, with a
    mark.
    """
    if len(text) <= size:
        return text
    head = text[: size - 1]
    clause = max(head.rfind(mark) for mark in (". ", "; ", ", ", "。", "，"))
    at = clause if clause > size // 2 else head.rfind(" ")
    return head[: at if at > 0 else size - 1].rstrip(" ,;:–—-") + "…"
