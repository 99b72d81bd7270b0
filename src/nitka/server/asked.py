"""What a chat completion request asks, as nitka sees it. Pure.

Of the client's messages are used: system and developer messages before the question; the question, which is the
trailing run of user messages, joined; and everything after it, which is this turn's tool traffic. What stands before
the question is the client's own copy of a history that is kept here: it is counted, and not used.

Pictures, sounds and files go to the model with the question; what is kept of them is "[image]", "[audio]",
"[file: name]".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from nitka.door import is_blank, sound
from nitka.server.errors import Refusal
from nitka.types import ChatMessage, Request

SYSTEM = ("system", "developer")
ROLES = frozenset((*SYSTEM, "user", "assistant", "tool", "function"))
MAX_MESSAGES = 10_000
OWN = frozenset(("user", "metadata", "nitka", "messages", "n"))
"""Fields of a request that are ours, or that are sent in another form."""


class Extension(BaseModel):
    """What a client may ask of nitka in the body, in the field `nitka`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    receipt: bool = Field(default=False, description="Send the whole receipt back, in the field `nitka`.")


class ChatBody(BaseModel):
    """A request of OpenAI's chat API. Every field that is not named here is passed on as it is."""

    model_config = ConfigDict(extra="allow")

    messages: list[dict[str, Any]] = Field(min_length=1, max_length=MAX_MESSAGES)
    model: str | None = None
    stream: bool | None = None
    n: int | None = None
    user: str | None = Field(default=None, description="Whose conversation it is; or the header X-Nitka-User.")
    metadata: dict[str, Any] | None = Field(
        default=None, description="`session_id` names the session; or the header X-Nitka-Session."
    )
    tools: list[dict[str, Any]] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    nitka: Extension | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One turn, read out of a request."""

    text: str  # of the question, as it is kept
    content: tuple[Any, ...] = ()  # the question's parts as they were sent, where they are not all text
    media: int = 0  # how many of them are not text
    system: str = ""
    traffic: tuple[ChatMessage, ...] = ()
    ignored: int = 0  # messages that were not used


def read(messages: Sequence[Mapping[str, Any]]) -> Asked:
    """The turn in a list of messages. Raises `Refusal`, naming the place and never the text."""
    for at, message in enumerate(messages):
        role = message.get("role")
        if not isinstance(role, str) or role not in ROLES:
            raise _unfit(f"messages[{at}].role", "not a role of the chat API")
    said = [at for at, message in enumerate(messages) if message["role"] == "user"]
    if not said:
        raise _unfit("messages", "there is no message of the user")
    run = _run(messages, said)
    lead = [at for at in range(run[-1]) if messages[at]["role"] in SYSTEM]
    parts = [part for at in run for part in _parts(messages[at].get("content"), f"messages[{at}].content")]
    texts = [_words(part) for part in parts]
    media = sum(not isinstance(part.get("text"), str) for part in parts)
    return Asked(
        text="\n".join(texts) if media else "\n\n".join(texts),
        content=tuple(parts) if media else (),
        media=media,
        system="\n\n".join(filter(None, (_plain(messages[at], at) for at in lead))),
        traffic=tuple(messages[run[-1] + 1 :]),
        ignored=run[-1] + 1 - len(run) - len(lead),
    )


def _run(messages: Sequence[Mapping[str, Any]], said: Sequence[int]) -> list[int]:
    """The trailing user messages with nothing but system messages between them."""
    run = [said[-1]]
    for at in range(said[-1] - 1, -1, -1):
        role = messages[at]["role"]
        if role == "user":
            run.append(at)
        elif role not in SYSTEM:
            break
    return run[::-1]


def _parts(content: object, path: str) -> list[Mapping[str, Any]]:
    """Content as parts. Blank texts are left out."""
    if isinstance(content, str):
        return [] if is_blank(content) else [{"type": "text", "text": sound(content)}]
    if not isinstance(content, list):
        raise _unfit(path, "neither a text nor a list of parts")
    parts: list[Mapping[str, Any]] = []
    for at, part in enumerate(content):
        if not isinstance(part, Mapping):
            raise _unfit(f"{path}[{at}]", "not an object")
        text = part.get("text")
        if not isinstance(text, str):
            parts.append(part)
        elif not is_blank(text):
            parts.append({**part, "text": sound(text)})
    return parts


def _words(part: Mapping[str, Any]) -> str:
    """What is kept of a part."""
    text = part.get("text")
    if isinstance(text, str):
        return text
    kind = str(part.get("type", ""))
    if "image" in kind:
        return "[image]"
    if "audio" in kind:
        return "[audio]"
    file = part.get("file")
    name = (file if isinstance(file, Mapping) else part).get("filename")
    return f"[file: {sound(name)}]" if isinstance(name, str) and not is_blank(name) else "[file]"


def _plain(message: Mapping[str, Any], at: int) -> str:
    """The text of a system message."""
    content = message.get("content")
    if content is None:
        return ""
    parts = _parts(content, f"messages[{at}].content")
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def sent(asked: Asked, request: Request) -> list[ChatMessage]:
    """The packed messages as they go to the model: the question with its pictures and files."""
    messages = list(request.messages)
    if asked.content:
        question = messages[request.asked]
        whole = question.get("content") == asked.text
        words = [{"type": "text", "text": question.get("content")}]
        rest = [part for part in asked.content if not isinstance(part.get("text"), str)]
        messages[request.asked] = {**question, "content": list(asked.content) if whole else words + rest}
    return messages


def forwarded(body: ChatBody, messages: Sequence[ChatMessage], *, model: str) -> dict[str, Any]:
    """The request that goes upstream: the client's, with other messages and without what is ours."""
    known = {name: getattr(body, name) for name in ChatBody.model_fields if name in body.model_fields_set - OWN}
    asked = {**(body.model_extra or {}), **known, "model": body.model or model, "messages": list(messages)}
    rest = {key: value for key, value in (body.metadata or {}).items() if key != "session_id"}
    return {**asked, "metadata": rest} if rest else asked


def _unfit(path: str, what: str) -> Refusal:
    return Refusal(f"{path}: {what}.", code="invalid_value", param=path)
