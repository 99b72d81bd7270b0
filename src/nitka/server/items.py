"""The Responses API as values: its input as chat messages, its options as those of the chat API, an answer as its
object and its events. Pure.

Text turns only: a response that asks for tools would be continued by an id alone, and nothing is kept of a turn that
is not answered. Tools are refused, as is every option that the chat API has no word for; none is dropped in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from nitka.server.asked import MAX_MESSAGES
from nitka.server.errors import Refusal
from nitka.server.stream import event

PASSED = frozenset(
    "temperature top_p service_tier prompt_cache_key prompt_cache_retention safety_identifier top_logprobs "
    "presence_penalty frequency_penalty seed verbosity".split()
)
"""Options that the chat API has under the same name."""

WITHOUT_EFFECT = frozenset("parallel_tool_calls tool_choice truncation include stream_options max_tool_calls".split())
"""Options that say nothing where there are no tools, and where every request is made to fit."""


class ResponseBody(BaseModel):
    """A request of OpenAI's Responses API: text turns."""

    model_config = ConfigDict(extra="allow")

    input: str | list[dict[str, Any]] = Field(max_length=20_000_000)
    model: str | None = None
    instructions: str | None = None
    conversation: str | dict[str, Any] | None = Field(default=None, description="Names the session.")
    previous_response_id: str | None = Field(default=None, max_length=4_000)
    stream: bool | None = None
    store: bool | None = Field(default=None, description="false: nothing is kept.")
    user: str | None = Field(default=None, description="Whose conversation it is; or the header X-Nitka-User.")
    metadata: dict[str, Any] | None = None
    max_output_tokens: int | None = None
    text: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    background: bool | None = None


def messages_of(body: ResponseBody) -> list[dict[str, Any]]:
    """The input as chat messages, instructions first. Raises `Refusal`."""
    given = [{"role": "user", "content": body.input}] if isinstance(body.input, str) else body.input
    if len(given) > MAX_MESSAGES or not given:
        raise Refusal(f"input: 1 to {MAX_MESSAGES:,} items.", code="invalid_value", param="input")
    lead = [{"role": "system", "content": body.instructions}] if body.instructions else []
    return lead + [_message(item, f"input[{at}]") for at, item in enumerate(given) if item.get("type") != "reasoning"]


def options_of(body: ResponseBody, limit: str) -> dict[str, Any]:
    """The other options in the words of the chat API; `limit` is what it calls the length of the answer. Raises
    `Refusal` for what it has no word for.
    """
    extra = {name: value for name, value in (body.model_extra or {}).items() if value is not None}
    unknown = next((name for name in extra if name not in PASSED | WITHOUT_EFFECT), None)
    if body.tools or body.background:
        unknown = "tools" if body.tools else "background"
    if unknown is not None:
        shown = unknown if unknown.isidentifier() and len(unknown) < 40 else "An option"
        raise Refusal(f"{shown}: not supported here; text turns are.", code="unsupported_parameter", param=shown)
    options = {name: value for name, value in extra.items() if name in PASSED}
    if body.max_output_tokens is not None:
        options[limit] = body.max_output_tokens
    if body.reasoning and body.reasoning.get("effort"):
        options["reasoning_effort"] = body.reasoning["effort"]
    return options | _format((body.text or {}).get("format"))


def _format(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping) or given.get("type") in (None, "text"):
        return {}
    if given.get("type") == "json_schema":
        inner = {name: value for name, value in given.items() if name != "type"}
        return {"response_format": {"type": "json_schema", "json_schema": inner}}
    return {"response_format": dict(given)}


def _message(item: Mapping[str, Any], path: str) -> dict[str, Any]:
    if item.get("type", "message") != "message":
        raise Refusal(f"{path}: only messages are supported here.", code="unsupported_item", param=path)
    content = item.get("content")
    if isinstance(content, list):
        content = [_part(part, f"{path}.content[{at}]") for at, part in enumerate(content)]
    return {"role": item.get("role"), "content": content}


def _part(part: object, path: str) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if isinstance(part, Mapping) and kind in ("input_text", "output_text", "text"):
        return {"type": "text", "text": part.get("text")}
    if isinstance(part, Mapping) and kind == "input_image":
        inner = {"url": part.get("image_url"), "detail": part.get("detail")}
        return {"type": "image_url", "image_url": {name: value for name, value in inner.items() if value is not None}}
    if isinstance(part, Mapping) and kind == "input_file":
        return {"type": "file", "file": {name: value for name, value in part.items() if name != "type"}}
    if isinstance(part, Mapping) and kind == "refusal":
        return {"type": "text", "text": part.get("refusal")}
    raise Refusal(f"{path}: not a kind of content that is known here.", code="invalid_value", param=path)


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

    def response(self, text: str, *, status: str, finish: str = "", usage: object = None) -> dict[str, Any]:
        """The response object."""
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(finish)
        status = "incomplete" if reason and status == "completed" else status
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
            "output": [self.message(text, status)] if status in ("completed", "incomplete") else [],
            "parallel_tool_calls": True,
            "previous_response_id": self.previous,
            "conversation": {"id": self.conversation} if self.conversation else None,
            "reasoning": {"effort": None, "summary": None},
            "store": self.body.store is not False,
            "temperature": (self.body.model_extra or {}).get("temperature"),
            "text": self.body.text or {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": (self.body.model_extra or {}).get("top_p"),
            "truncation": "disabled",
            "usage": usage_of(usage),
            "metadata": self.body.metadata or {},
        }

    def message(self, text: str, status: str) -> dict[str, Any]:
        """The one item of the output."""
        content = [self.part(text)] if status != "in_progress" else []
        return {"type": "message", "id": self.item, "status": status, "role": "assistant", "content": content}

    def part(self, text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


class Events:
    """The events of one streamed response, numbered."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._number = 0

    def begin(self) -> bytes:
        """Everything before the first word."""
        opening = self._frame.response("", status="in_progress")
        return b"".join(
            (
                self._event("response.created", response=opening),
                self._event("response.in_progress", response=opening),
                self._event("response.output_item.added", output_index=0, item=self._frame.message("", "in_progress")),
                self._at("response.content_part.added", part=self._frame.part("")),
            )
        )

    def delta(self, text: str) -> bytes:
        return self._at("response.output_text.delta", delta=text, logprobs=[])

    def end(self, text: str, *, finish: str, usage: object) -> bytes:
        """Everything after the last word."""
        whole = self._frame.response(text, status="completed", finish=finish, usage=usage)
        item = self._frame.message(text, whole["status"])
        return b"".join(
            (
                self._at("response.output_text.done", text=text, logprobs=[]),
                self._at("response.content_part.done", part=self._frame.part(text)),
                self._event("response.output_item.done", output_index=0, item=item),
                self._event(f"response.{whole['status']}", response=whole),
            )
        )

    def failed(self, error: Refusal) -> bytes:
        """The end of a stream that broke off."""
        told = {"code": error.code or "server_error", "message": str(error)}
        whole = {**self._frame.response("", status="failed"), "error": told}
        return self._event("error", param=error.param, **told) + self._event("response.failed", response=whole)

    def _at(self, name: str, **more: Any) -> bytes:
        return self._event(name, item_id=self._frame.item, output_index=0, content_index=0, **more)

    def _event(self, name: str, **more: Any) -> bytes:
        value = {"type": name, "sequence_number": self._number, **more}
        self._number += 1
        return event(value, name=name)


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
