"""This turn's own tool traffic: what the loop has appended after the question, made valid for a strict provider.

Rules:
* A call message and all its results are one group. Results stand right after their call, one per call, in the order
  of the calls, wherever the loop had put them.
* A result without a call before it, a second result of one call (the newest counts), an empty message, and a call
  that cannot be sent (no id, no name, cut off inside its arguments) are left out. Each is counted by its reason;
  nothing goes in silence.
* A call without a result is waiting if nothing follows its group; it is kept as it is. Otherwise it was interrupted,
  and is closed with a result that says so.
* Mending twice changes nothing more.

Messages are in the form of OpenAI's chat API ("Chat Completions", `tool_calls` and role `tool`); its older
`function_call` is refused.
"""

from __future__ import annotations

import json
from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nitka.door import is_blank, sound
from nitka.errors import BadInput
from nitka.request.labels import Labels
from nitka.types import ChatMessage, Request

ROLES = frozenset(("system", "developer", "user", "assistant", "tool"))

HEAD = 12  # characters by which a condensed question is known

ORPHAN = "a result without a call"
REPEATED = "a second result of one call"
EMPTY = "an empty message"
BROKEN = "a call that cannot be sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Messages ready to be sent, and what was done to get there."""

    messages: tuple[ChatMessage, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason -> number of messages or calls
    closed: int = 0  # interrupted calls that were given a result
    waiting: int = 0  # calls at the end that still wait for theirs


@dataclass(slots=True)
class _Group:
    """A message, and if it makes calls, their results by id. Lives only inside `mend`."""

    message: ChatMessage
    calls: list[Mapping[str, Any]]
    results: dict[str, ChatMessage] = field(default_factory=dict)


def after(request: Request, question: str, messages: Sequence[object]) -> tuple[ChatMessage, ...]:
    """What follows the question in the loop's list.

    The question is the last user's message with the text that `request` sent; failing that, the last one that is the
    whole question or a condensed form of it, since a loop may go on with a list that was packed later. Messages may
    be mappings, or objects of a client library with `model_dump`. Raises `BadInput` when the question is not there.
    """
    chat = [_mapping(message) for message in messages]
    sent, whole = _text_of(request.messages[request.asked]), sound(question)
    said = [(at, _text_of(message)) for at, message in enumerate(chat) if message.get("role") == "user"]
    found = [at for at, text in said if text == sent] or [at for at, text in said if _is_form(text, whole)]
    if not found:
        raise BadInput("The messages to pack again do not hold this turn's question as it was sent.")
    return tuple(chat[found[-1] + 1 :])


def mend(messages: Iterable[ChatMessage], labels: Labels) -> Traffic:
    """The same traffic, valid for a strict provider. Raises `BadInput` for a message whose role no chat API has."""
    left_out: Tally[str] = Tally()
    groups = _gather(messages, labels, left_out)
    sent: list[ChatMessage] = []
    closed = waiting = 0
    for group in groups:
        unanswered = [call for call in group.calls if call["id"] not in group.results]
        last = group is groups[-1]
        waiting += len(unanswered) if last else 0
        closed += 0 if last else len(unanswered)
        sent.append(group.message)
        for call in group.calls:
            if call["id"] in group.results:
                sent.append(group.results[call["id"]])
            elif not last:
                sent.append({"role": "tool", "tool_call_id": call["id"], "content": labels.no_result})
    return Traffic(messages=tuple(sent), left_out=dict(left_out), closed=closed, waiting=waiting)


def _gather(messages: Iterable[ChatMessage], labels: Labels, left_out: Tally[str]) -> list[_Group]:
    """Groups in order, each result with the newest call of its id."""
    groups: list[_Group] = []
    open_calls: dict[str, _Group] = {}
    for message in messages:
        if message.get("role") not in ROLES:
            raise BadInput("A message of the tool traffic has a role that chat APIs do not know (use tool_calls).")
        if message["role"] == "tool":
            _answer(message, open_calls, labels, left_out)
            continue
        group = _Group(_with_content(message), _calls(message))
        open_calls.update((call["id"], group) for call in group.calls)
        groups.append(group)
    return [group for group in map(lambda group: _settle(group, left_out), groups) if group is not None]


def _answer(message: ChatMessage, open_calls: Mapping[str, _Group], labels: Labels, left_out: Tally[str]) -> None:
    call_id = message.get("tool_call_id")
    group = open_calls.get(call_id) if isinstance(call_id, str) else None
    if group is None or not isinstance(call_id, str):
        left_out[ORPHAN] += 1
        return
    if call_id in group.results:
        left_out[REPEATED] += 1
    content = _content(message.get("content"))
    group.results[call_id] = {**message, "content": labels.empty_result if content is None else content}


def _settle(group: _Group, left_out: Tally[str]) -> _Group | None:
    """The group without calls that cannot be sent; none if nothing is left of it."""
    asked = group.message.get("tool_calls") or ()
    usable = [call for call in group.calls if _is_whole(call) or call["id"] in group.results]
    if len(asked) > len(usable):
        left_out[BROKEN] += len(asked) - len(usable)
    bare = {key: value for key, value in group.message.items() if key != "tool_calls"}
    if usable:
        calls = [_with_arguments(call) for call in usable]
        return _Group({**bare, "tool_calls": calls}, calls, group.results)
    if bare["content"] is not None:
        return _Group(bare, [])
    if not asked:
        left_out[EMPTY] += 1
    return None


def _calls(message: ChatMessage) -> list[Mapping[str, Any]]:
    """The calls of a message that have an id and a name, each id once."""
    named: dict[str, Mapping[str, Any]] = {}
    if message["role"] == "assistant":
        for call in message.get("tool_calls") or ():
            body = _body(call)
            if isinstance(call.get("id"), str) and call["id"] and body.get("name"):
                named.setdefault(call["id"], call)
    return list(named.values())


def _body(call: Mapping[str, Any]) -> Mapping[str, Any]:
    body = call.get("function") or call.get("custom") or {}
    return body if isinstance(body, Mapping) else {}


def _is_whole(call: Mapping[str, Any]) -> bool:
    """Whether the arguments are complete JSON (or plain text, of a tool that takes text)."""
    arguments = _body(call).get("arguments")
    if not isinstance(arguments, str) or is_blank(arguments):
        return True
    try:
        json.loads(arguments)
    except ValueError:
        return False
    return True


def _with_arguments(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """The call with arguments that every provider can read: an answered call may have had a text that was not JSON."""
    if "function" not in call:
        return call
    body = _body(call)
    arguments = body.get("arguments")
    if isinstance(arguments, str) and not is_blank(arguments):
        arguments = sound(arguments)
        if not _is_whole(call):
            arguments = json.dumps({"text": arguments}, ensure_ascii=False)
    elif isinstance(arguments, Mapping):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {**call, "function": {**body, "arguments": arguments or "{}"}}


def _with_content(message: ChatMessage) -> ChatMessage:
    return {**message, "content": _content(message.get("content"))}


def _content(content: object) -> str | list[Any] | None:
    """The content without what no provider takes; nothing if it is blank."""
    if isinstance(content, str):
        return None if is_blank(content) else sound(content)
    if content is None:
        return None
    if isinstance(content, Sequence):
        return [kept for part in content if (kept := _part(part)) is not None] or None
    return sound(json.dumps(content, ensure_ascii=False, default=str))


def _part(part: object) -> object:
    if not isinstance(part, Mapping) or not isinstance(part.get("text"), str):
        return part
    return None if is_blank(part["text"]) else {**part, "text": sound(part["text"])}


def _is_form(text: str, whole: str) -> bool:
    """Whether a text is the question, whole or condensed: a condensed one begins as the whole does."""
    return text == whole or (len(text) < len(whole) and len(text) >= HEAD and text[:HEAD] == whole[:HEAD])


def _text_of(message: ChatMessage) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else ()
    return "".join(part.get("text", "") for part in parts if isinstance(part, Mapping))


def _mapping(message: object) -> ChatMessage:
    if isinstance(message, Mapping):
        return message
    dump = getattr(message, "model_dump", None)
    if dump is None:
        raise BadInput("A message to pack again is neither a mapping nor a client library's message.")
    dumped: ChatMessage = dump(exclude_none=True)
    return dumped
