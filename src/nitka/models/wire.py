"""OpenAI's chat protocol as values: what is asked, what comes back, and what is wrong with it. No network here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

from nitka.errors import ModelError
from nitka.models.think import strip_think
from nitka.types import ChatMessage

_FORMS = ("json_schema", "json_object", "words")
_FINAL = frozenset("context_length_exceeded model_not_found invalid_api_key content_filter".split())
_WORD = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_FENCE = re.compile(r"\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*", re.DOTALL)


class Failure(Exception):
    """One attempt failed: the error to raise, whether to ask again, and the pause in seconds that the server wants."""

    def __init__(self, error: ModelError, *, again: bool = False, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error, self.again, self.after = error, again, after


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What a server said when it refused. `words` are only searched for names of parameters and never shown."""

    type: str = ""
    code: str = ""
    param: str = ""
    status: int = 0  # some gateways put the status in the code
    words: str = ""

    @classmethod
    def read(cls, body: bytes) -> Complaint:
        """From an error's body, whatever it holds."""
        try:
            return cls.of(json.loads(body))
        except (ValueError, RecursionError):
            return cls(words=body.decode("utf-8", "replace"))

    @classmethod
    def of(cls, value: object) -> Complaint:
        error = value.get("error", value) if isinstance(value, Mapping) else value
        told = error if isinstance(error, Mapping) else {}
        code = told.get("code")
        return cls(
            type=_word(told.get("type")),
            code=_word(code),
            param=_word(told.get("param")),
            status=code if type(code) is int else 0,
            words=str(value),
        )

    def names(self, *parameters: str) -> bool:
        return any(name in self.param or name in self.words for name in parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a server wants to be asked."""

    limit: str = "max_tokens"
    form: str = _FORMS[0]

    def after(self, complaint: Complaint, status: int, form: bool) -> Dialect | None:
        """The dialect to try after a refusal; None when the refusal was about something else."""
        if status not in (400, 422) or complaint.code in _FINAL:
            return None
        if self.limit == "max_tokens" and complaint.names("max_completion_tokens", "max_tokens"):
            return replace(self, limit="max_completion_tokens")
        if form and self.form != _FORMS[-1]:
            return replace(self, form=_FORMS[_FORMS.index(self.form) + 1])
        return None


def body(
    dialect: Dialect,
    model: str,
    messages: Sequence[ChatMessage],
    max_tokens: int,
    *,
    schema: Mapping[str, Any] | None = None,
    stream: bool = False,
) -> bytes:
    """A request as the server gets it. Lone surrogates become U+FFFD, since JSON on the wire is UTF-8."""
    asked: dict[str, Any] = {"model": model, "messages": [*map(dict, messages)], dialect.limit: max_tokens}
    if stream:
        asked["stream"] = True
    if schema is not None:
        if dialect.form == "json_schema":
            inner = {"name": "answer", "schema": schema, "strict": _closed(schema)}
            asked["response_format"] = {"type": "json_schema", "json_schema": inner}
        else:
            asked["messages"] = [*map(dict, _with_schema(messages, schema))]
        if dialect.form == "json_object":
            asked["response_format"] = {"type": "json_object"}
    text = json.dumps(asked, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _with_schema(messages: Sequence[ChatMessage], schema: Mapping[str, Any]) -> list[ChatMessage]:
    """The messages with the schema in words, in the leading system message: some servers take no second one."""
    words = f"Answer with JSON alone, valid for this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"
    first = messages[0] if messages else {}
    if first.get("role") == "system" and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{words}"}, *messages[1:]]
    return [{"role": "system", "content": words}, *messages]


def _closed(schema: object) -> bool:
    """Whether OpenAI's strict mode takes a schema: every object closed, every property required."""
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" or "properties" in schema:
            properties = schema.get("properties", {})
            if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
                return False
        return all(_closed(inner) for inner in schema.values())
    return all(_closed(inner) for inner in schema) if isinstance(schema, list | tuple) else True


def refused(status: int, complaint: Complaint, after: float | None = None) -> Failure:
    """The failure that a status stands for. A used-up quota comes as 429 but does not come back by waiting."""
    spent = "insufficient_quota" in (complaint.type, complaint.code)
    again = (status in (408, 409, 429) or status >= 500) and not spent
    told = ", ".join(word for word in (f"HTTP {status}", complaint.type, complaint.code) if word)
    return Failure(ModelError(f"{told}.", retryable=again, status=status), again=again, after=after)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The pause a server asks for, in seconds (RFC 9110, 10.2.3). A date is measured against the server's own clock."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value, re.ASCII):
        return float(value)
    try:
        until, now = parsedate_to_datetime(value), parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):
        return None


def parsed(data: bytes | str) -> Mapping[str, Any]:
    """A JSON object, and no error in the dress of an answer. Raises `Failure`."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise Failure(ModelError("The answer is not JSON.", retryable=True)) from None
    if not isinstance(value, Mapping):
        raise Failure(ModelError("The answer is not a JSON object.", retryable=True))
    if value.get("error"):
        complaint = Complaint.of(value)
        if complaint.status >= 400:
            raise refused(complaint.status, complaint)
        told = ", ".join(word for word in (complaint.type, complaint.code) if word) or "no type"
        raise Failure(ModelError(f"The server sent an error in place of an answer: {told}.", retryable=True))
    return value


def answer(value: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    """The text of a whole answer, without reasoning, and what it cost. Raises `Failure` when there is none."""
    choice = _choice(value)
    seen = Seen(done=True)
    text = strip_think(seen.take({"choices": [{**choice, "delta": choice.get("message")}]})).strip()
    seen.check(bool(text))
    usage = value.get("usage")
    counts = usage if isinstance(usage, Mapping) else {}
    return text, {str(key): count for key, count in counts.items() if type(count) is int}


def json_only(text: str) -> str:
    """The JSON of an answer that was asked for as JSON, without the fence that some models put around it."""
    fenced = _FENCE.fullmatch(text)
    inner = (fenced[1] if fenced else text).strip()
    try:
        json.loads(inner)
    except (ValueError, RecursionError):
        raise Failure(ModelError("The model was asked for JSON and wrote something else.", retryable=True)) from None
    return inner


@dataclass(slots=True)
class Seen:
    """What a streamed answer has shown so far besides its text."""

    done: bool = False
    finish: str = ""
    reasoned: bool = False  # something was written; when none of it was an answer, it was reasoning
    refused: bool = False

    def take(self, value: Mapping[str, Any]) -> str:
        """The text of one piece, reasoning tags and all."""
        choice = _choice(value)
        delta = choice.get("delta")
        delta = delta if isinstance(delta, Mapping) else {}
        self.finish = _word(choice.get("finish_reason")) or self.finish
        text = _text(delta.get("content"))
        self.reasoned |= bool(delta.get("reasoning_content") or delta.get("reasoning") or text.strip())
        self.refused |= bool(delta.get("refusal"))
        return text

    def check(self, spoke: bool) -> None:
        """Raise `Failure` unless the answer said something and came to its end."""
        if not (self.done or self.finish):
            raise Failure(ModelError("The stream broke off before its end.", retryable=True), again=not spoke)
        if not spoke:
            raise Failure(ModelError(self._silence(), retryable=self.finish in ("", "stop") and not self.reasoned))

    def _silence(self) -> str:
        if self.refused:
            return "The model refused."
        if self.finish == "length":
            return "The room for the answer was used up before it began."
        if self.reasoned:
            return "There was only reasoning."
        return f"The answer is empty{f' ({self.finish})' if self.finish else ''}."


def _choice(value: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


def _text(content: object) -> str:
    """Content as a text: a string, or a list of parts of which the texts count."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "".join(text for text in texts if isinstance(text, str))


def _word(value: object) -> str:
    """A short identifier, or nothing: only such may stand in an error."""
    return value if isinstance(value, str) and _WORD.fullmatch(value) else ""
