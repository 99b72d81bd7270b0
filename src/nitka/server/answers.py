"""What an answer of the chat API says, whole or in chunks, and answers that we make ourselves. Pure.

An answer that asks for tools is no answer yet: the turn goes on in the client's next call. One that says nothing, or
that a filter cut off, is passed on and not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from nitka.door import is_blank
from nitka.models.think import strip_think
from nitka.types import Receipt

Body = Mapping[str, Any]

_TOOLS = ("tool_calls", "function_call")


@dataclass(slots=True)
class Heard:
    """What an answer has said so far. `text` is as it came, reasoning blocks and all."""

    text: str = ""
    wants_tools: bool = False
    finish: str = ""

    def chunk(self, value: Body) -> str:
        """Takes one chunk of a stream; the text in it."""
        return self._take(_choice(value), "delta")

    def whole(self, value: Body) -> str:
        """Takes a whole answer; its text."""
        return self._take(_choice(value), "message")

    def _take(self, choice: Body, field: str) -> str:
        said = choice.get(field)
        said = said if isinstance(said, Mapping) else {}
        finish = choice.get("finish_reason")
        self.finish = finish if isinstance(finish, str) else self.finish
        self.wants_tools |= self.finish in _TOOLS or any(said.get(name) for name in _TOOLS)
        text = text_of(said.get("content"))
        self.text += text
        return text

    @property
    def is_kept(self) -> bool:
        """Whether this is an answer to keep."""
        return not self.wants_tools and self.finish != "content_filter" and not is_blank(strip_think(self.text))


def text_of(content: object) -> str:
    """Content as a text: a string, or a list of parts of which the texts count."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "".join(text for text in texts if isinstance(text, str))


def with_text(value: Body, text: str) -> dict[str, Any]:
    """A whole answer with another text."""
    choice = dict(_choice(value))
    choice["message"] = {"role": "assistant", "content": text}
    return {**value, "choices": [choice]}


def said_before(head: Body, text: str) -> dict[str, Any]:
    """A whole answer that was given before; what it cost was told then."""
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    return {**head, "choices": [choice], "usage": usage}


def short(receipt: Receipt, ignored: int = 0) -> str:
    """A receipt as a header: a dictionary of RFC 9651."""
    sums: dict[str, int] = {}
    for entry in receipt.entries:
        name = entry.layer if entry.outcome in ("sent", "gist", "condensed") else entry.outcome
        sums[name] = sums.get(name, 0) + (entry.tokens if name == entry.layer else entry.count)
    told = {"used": receipt.used, "room": receipt.room, "head": receipt.head, "cursor": receipt.cursor, **sums}
    return ", ".join(f"{name}={count}" for name, count in (told | {"ignored": ignored}).items())


def full(receipt: Receipt, ignored: int = 0) -> dict[str, Any]:
    """A receipt as JSON."""
    return {**asdict(receipt), "used": receipt.used, "ignored": ignored}


def message_of(value: Body, field: str = "message") -> Body:
    """What an answer, or a chunk of one ("delta"), says."""
    said = _choice(value).get(field)
    return said if isinstance(said, Mapping) else {}


def _choice(value: Body) -> Body:
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}
