"""An answer in the words of the Responses API: its object, its items, and its events. Pure.

An answer that asks for functions has their calls as items. In a stream they come whole, at its end: the id of a call
holds the turn, and all calls with it (`nitka.server.response_ids`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nitka.server.errors import Refusal
from nitka.server.items import ResponseBody
from nitka.server.stream import event


@dataclass(slots=True)
class Call:
    """A function that an answer wants called, as far as it has come. `shown` is how the client shall call it, where
    that is not the upstream's `id`.
    """

    item: str
    place: int  # among the items
    id: str = ""
    shown: str = ""
    name: str = ""
    arguments: str = ""

    def as_item(self) -> dict[str, Any]:
        said = {"call_id": self.shown or self.id, "name": self.name, "arguments": self.arguments}
        return {"type": "function_call", "id": self.item, **said, "status": "completed"}

    def as_traffic(self) -> dict[str, Any]:
        """As the chat API has it."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


class Answer:
    """The items of an answer in the order in which they began: its text, and the calls it asks for."""

    def __init__(self, item: str) -> None:
        self.text = ""
        self.calls: list[Call] = []
        self.text_at: int | None = None  # where the text stands among the items
        self._item = item
        self._by_index: dict[int, Call] = {}

    @property
    def size(self) -> int:
        return len(self.calls) + (self.text_at is not None)

    def say(self, text: str) -> bool:
        """Adds words; whether they are the first."""
        first = self.text_at is None
        self.text_at = self.size if first else self.text_at
        self.text += text
        return first

    def call(self, given: object) -> None:
        """Adds what a message or a chunk says of calls."""
        for part in given if isinstance(given, list) else ():
            if isinstance(part, Mapping):
                function = part.get("function")
                function = function if isinstance(function, Mapping) else {}
                name = _text(function.get("name"))
                call = self._called(_text(part.get("id")), part.get("index"), begins=bool(name))
                call.name = call.name or name
                call.arguments += _text(function.get("arguments"))

    def _called(self, id: str, index: object, *, begins: bool) -> Call:
        """The call that is meant: some upstreams number them, some name them, some do both. A number that is used
        again begins another where it comes with another id and a name.
        """
        found = next((call for call in self.calls if id and call.id == id), None)
        if found is None and isinstance(index, int) and not (id and begins):
            found = self._by_index.get(index)
        if found is None and not id and not isinstance(index, int) and self.calls:
            found = self.calls[-1]
        if found is None:
            found = Call(f"{self._item.replace('msg_', 'fc_', 1)}{len(self.calls)}", self.size)
            self.calls.append(found)
        found.id = found.id or id or found.item.replace("fc_", "call_", 1)
        if isinstance(index, int):
            self._by_index[index] = found
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What stays the same in every form of one response."""

    id: str
    item: str
    at: int
    model: str
    conversation: str | None
    previous: str | None
    body: ResponseBody

    def response(self, answer: Answer | None, *, status: str, finish: str = "", usage: object = None) -> dict[str, Any]:
        """The response object."""
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(finish)
        status = "incomplete" if reason and status == "completed" else status
        extra = self.body.model_extra or {}
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.at,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": self.body.instructions,
            "max_output_tokens": self.body.max_output_tokens,
            "model": self.model,
            "output": self.items(answer, status) if answer and status in ("completed", "incomplete") else [],
            "parallel_tool_calls": extra.get("parallel_tool_calls") is not False,
            "previous_response_id": self.previous,
            "conversation": {"id": self.conversation} if self.conversation else None,
            "reasoning": {"effort": None, "summary": None},
            "store": self.body.store is not False,
            "temperature": extra.get("temperature"),
            "text": self.body.text or {"format": {"type": "text"}},
            "tool_choice": extra.get("tool_choice") or "auto",
            "tools": self.body.tools or [],
            "top_p": extra.get("top_p"),
            "truncation": "disabled",
            "usage": usage_of(usage),
            "metadata": self.body.metadata or {},
        }

    def items(self, answer: Answer, status: str) -> list[dict[str, Any]]:
        """The output. An answer without a word has a message too, unless it has calls."""
        items = [call.as_item() for call in answer.calls]
        if answer.text_at is not None or not items:
            items.insert(answer.text_at or 0, self.message(answer.text, status))
        return items

    def message(self, text: str, status: str) -> dict[str, Any]:
        content = [self.part(text)] if status != "in_progress" else []
        return {"type": "message", "id": self.item, "status": status, "role": "assistant", "content": content}

    def part(self, text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


class Events:
    """The events of one streamed response, numbered."""

    def __init__(self, frame: Frame) -> None:
        self.answer = Answer(frame.item)
        self._frame = frame
        self._number = 0

    def begin(self) -> bytes:
        """Everything before the first word or call."""
        opening = self._frame.response(None, status="in_progress")
        return self._event("response.created", response=opening) + self._event("response.in_progress", response=opening)

    def words(self, text: str) -> bytes:
        """Words of the answer."""
        opening = self._open_text() if self.answer.say(text) else b""
        return opening + self._at("response.output_text.delta", delta=text, logprobs=[])

    def end(self, *, finish: str, usage: object) -> bytes:
        """Everything after the last word."""
        answer = self.answer
        said = self._open_text() if not answer.size and answer.say("") else b""
        whole = self._frame.response(answer, status="completed", finish=finish, usage=usage)
        for place, item in enumerate(whole["output"]):
            call = next((call for call in answer.calls if call.place == place), None)
            said += self._close_text(answer.text) if call is None else self._call(call)
            said += self._event("response.output_item.done", output_index=place, item=item)
        return said + self._event(f"response.{whole['status']}", response=whole)

    def failed(self, error: Refusal) -> bytes:
        """The end of a stream that broke off."""
        told = {"code": error.code or "server_error", "message": str(error)}
        whole = {**self._frame.response(None, status="failed"), "error": told}
        return self._event("error", param=error.param, **told) + self._event("response.failed", response=whole)

    def _open_text(self) -> bytes:
        item = self._frame.message("", "in_progress")
        added = self._event("response.output_item.added", output_index=self.answer.text_at or 0, item=item)
        return added + self._at("response.content_part.added", part=self._frame.part(""))

    def _close_text(self, text: str) -> bytes:
        done = self._at("response.output_text.done", text=text, logprobs=[])
        return done + self._at("response.content_part.done", part=self._frame.part(text))

    def _call(self, call: Call) -> bytes:
        """A call from its beginning to its last argument."""
        begun = {**call.as_item(), "arguments": "", "status": "in_progress"}
        at = {"item_id": call.item, "output_index": call.place}
        return (
            self._event("response.output_item.added", output_index=call.place, item=begun)
            + self._event("response.function_call_arguments.delta", **at, delta=call.arguments)
            + self._event("response.function_call_arguments.done", **at, name=call.name, arguments=call.arguments)
        )

    def _at(self, kind: str, **more: Any) -> bytes:
        place = self.answer.text_at or 0
        return self._event(kind, item_id=self._frame.item, output_index=place, content_index=0, **more)

    def _event(self, kind: str, **more: Any) -> bytes:
        value = {"type": kind, "sequence_number": self._number, **more}
        self._number += 1
        return event(value, name=kind)


def usage_of(given: object) -> dict[str, Any] | None:
    """The chat API's count in the words of the Responses API."""
    if not isinstance(given, Mapping):
        return None
    asked, said = _count(given, "prompt_tokens"), _count(given, "completion_tokens")
    cached = _count(given.get("prompt_tokens_details"), "cached_tokens")
    thought = _count(given.get("completion_tokens_details"), "reasoning_tokens")
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": asked + said,
    }


def _count(given: object, name: str) -> int:
    value = given.get(name) if isinstance(given, Mapping) else None
    return value if isinstance(value, int) else 0


def _text(given: object) -> str:
    return given if isinstance(given, str) else ""
