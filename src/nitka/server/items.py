"""A request of the Responses API as values: its input as chat messages, its options as those of the chat API. Pure.

Functions are the tools there are: a call and its output are this turn's traffic, as in the chat API. What the chat API
has no word for is refused, items and options alike; none is dropped in silence. What the model thought is the one
exception: it is never sent back and never kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from nitka.server.asked import MAX_MESSAGES
from nitka.server.errors import Refusal
from nitka.types import ChatMessage

PASSED = frozenset(
    "temperature top_p service_tier prompt_cache_key prompt_cache_retention safety_identifier top_logprobs "
    "presence_penalty frequency_penalty seed verbosity".split()
)
"""Options that the chat API has under the same name."""

WITHOUT_EFFECT = frozenset("parallel_tool_calls tool_choice truncation include stream_options max_tool_calls".split())
"""Options that say nothing where there are no tools of the upstream's own, and where every request is made to fit; the
first two say something where there are functions.
"""

MAX_TOOLS = 1_000


class ResponseBody(BaseModel):
    """A request of OpenAI's Responses API: text turns, and functions as tools."""

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
    tools: list[dict[str, Any]] | None = Field(default=None, max_length=MAX_TOOLS, description="Functions.")
    background: bool | None = None


def items_of(body: ResponseBody) -> list[dict[str, Any]]:
    """The items of the input. Raises `Refusal`."""
    given = [{"role": "user", "content": body.input}] if isinstance(body.input, str) else body.input
    if len(given) > MAX_MESSAGES or not given:
        raise Refusal(f"input: 1 to {MAX_MESSAGES:,} items.", code="invalid_value", param="input")
    return given


def goes_on(items: Sequence[Mapping[str, Any]]) -> int | None:
    """Where outputs of functions begin whose question is not here: the place of the first. None where there is none."""
    kinds = [item.get("type", "message") for item in items]
    first = kinds.index("function_call_output") if "function_call_output" in kinds else None
    asked = any(item.get("role") == "user" for item in items[:first])
    return None if asked else first


def messages_of(
    body: ResponseBody, held: Sequence[ChatMessage] = (), names: Mapping[str, str] | None = None
) -> list[ChatMessage]:
    """The turn as chat messages: instructions, what an open turn `held` so far, the input. `names` says how the
    upstream calls the calls. Raises `Refusal`.
    """
    items = items_of(body)
    made: list[ChatMessage] = [{"role": "system", "content": body.instructions}] if body.instructions else []
    made += held
    begin = (goes_on(items) or 0) if held else 0  # what stands before was held
    for at, item in enumerate(items[begin:], begin):
        known = (names or {}).get(str(item.get("call_id")))
        _add(made, {**item, "call_id": known} if known else item, f"input[{at}]")
    return made


def _add(made: list[ChatMessage], item: Mapping[str, Any], path: str) -> None:
    """Adds what an item says. The calls of one answer stand in one message."""
    kind = item.get("type", "message")
    if kind == "function_call":
        before = made[-1] if made and made[-1].get("role") == "assistant" else None
        called = [*(before.get("tool_calls", ()) if before else ()), _call(item, path)]
        made[len(made) - (before is not None) :] = [
            {"role": "assistant", "content": before.get("content") if before else None, "tool_calls": called}
        ]
    elif kind == "function_call_output":
        made.append(_output(item, made, path))
    elif kind != "reasoning":
        made.append(_message(item, path))


def _call(item: Mapping[str, Any], path: str) -> dict[str, Any]:
    texts = {name: item.get(name) for name in ("call_id", "name", "arguments")}
    wrong = next((name for name, text in texts.items() if not isinstance(text, str)), None)
    if wrong is not None:
        raise Refusal(f"{path}.{wrong}: not a string.", code="invalid_value", param=f"{path}.{wrong}")
    function = {"name": texts["name"], "arguments": texts["arguments"]}
    return {"id": texts["call_id"], "type": "function", "function": function}


def _output(item: Mapping[str, Any], made: Sequence[ChatMessage], path: str) -> dict[str, Any]:
    called = {call["id"] for message in made for call in message.get("tool_calls", ())}
    id, output = item.get("call_id"), item.get("output")
    if not isinstance(id, str) or id not in called:
        raise Refusal(
            f"{path}.call_id: its call is not here. Continue the response that asked for it (previous_response_id), or "
            "send question and call along.",
            code="unknown_call",
            param=f"{path}.call_id",
        )
    if isinstance(output, list):
        output = [_part(part, f"{path}.output[{at}]") for at, part in enumerate(output)]
    elif not isinstance(output, str):
        raise Refusal(f"{path}.output: not a string.", code="invalid_value", param=f"{path}.output")
    return {"role": "tool", "tool_call_id": id, "content": output}


def options_of(body: ResponseBody, limit: str) -> dict[str, Any]:
    """The other options in the words of the chat API; `limit` is what it calls the length of the answer. Raises
    `Refusal` for what it has no word for.
    """
    extra = {name: value for name, value in (body.model_extra or {}).items() if value is not None}
    unknown = next((name for name in extra if name not in PASSED | WITHOUT_EFFECT), None)
    if body.background:
        unknown = "background"
    if unknown is not None:
        shown = unknown if unknown.isidentifier() and len(unknown) < 40 else "An option"
        raise Refusal(f"{shown}: not supported here; text turns are.", code="unsupported_parameter", param=shown)
    options = {name: value for name, value in extra.items() if name in PASSED}
    if body.max_output_tokens is not None:
        options[limit] = body.max_output_tokens
    if body.reasoning and body.reasoning.get("effort"):
        options["reasoning_effort"] = body.reasoning["effort"]
    return options | _format((body.text or {}).get("format")) | _using(body)


def tools_of(body: ResponseBody) -> list[dict[str, Any]]:
    """The functions as the chat API defines them. Raises `Refusal` for any other tool."""
    return [_function(tool, f"tools[{at}]") for at, tool in enumerate(body.tools or ())]


def _function(tool: Mapping[str, Any], path: str) -> dict[str, Any]:
    if tool.get("type") != "function" or not isinstance(tool.get("name"), str):
        raise Refusal(f"{path}: only functions are supported here.", code="unsupported_parameter", param="tools")
    inner = {name: value for name, value in tool.items() if name != "type" and value is not None}
    return {"type": "function", "function": inner}


def _using(body: ResponseBody) -> dict[str, Any]:
    """How the functions may be used; nothing where there are none. Raises `Refusal`."""
    if not body.tools:
        return {}
    extra = body.model_extra or {}
    options: dict[str, Any] = {"tools": tools_of(body)}
    if extra.get("parallel_tool_calls") is not None:
        options["parallel_tool_calls"] = extra["parallel_tool_calls"]
    if extra.get("tool_choice") is not None:
        options["tool_choice"] = _choice(extra["tool_choice"])
    return options


def _choice(given: object) -> object:
    """Which function shall be called. Raises `Refusal`."""
    if isinstance(given, str):
        return given
    kind = given.get("type") if isinstance(given, Mapping) else None
    if isinstance(given, Mapping) and kind == "function":
        return {"type": "function", "function": {"name": given.get("name")}}
    if isinstance(given, Mapping) and kind == "allowed_tools" and isinstance(given.get("tools"), list):
        allowed = [_choice(one) for one in given["tools"]]
        return {"type": "allowed_tools", "allowed_tools": {"mode": given.get("mode"), "tools": allowed}}
    raise Refusal("tool_choice: not supported here.", code="unsupported_parameter", param="tool_choice")


def _format(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping) or given.get("type") in (None, "text"):
        return {}
    if given.get("type") == "json_schema":
        inner = {name: value for name, value in given.items() if name != "type"}
        return {"response_format": {"type": "json_schema", "json_schema": inner}}
    return {"response_format": dict(given)}


def _message(item: Mapping[str, Any], path: str) -> dict[str, Any]:
    if item.get("type", "message") != "message":
        raise Refusal(
            f"{path}: only messages, functions' calls and their outputs are supported here.",
            code="unsupported_item",
            param=path,
        )
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
