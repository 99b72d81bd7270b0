"""Facts and profile by a chat model.

Rules:
* The model is shown the rows and the known facts that matter to them as JSON data under a fixed prompt, never as text
  that could be read as an instruction. What it is shown is bounded: long rows are condensed, long runs of rows are
  cut into slices, one call each.
* It proposes; `layers.facts.reconcile` decides. Here only the shape of the answer is judged.
* "Nothing to remember" is an explicit empty list. Prose, an error in words, `null`, an empty or an endless answer is
  a `ModelError`; what can be repaired without guessing is repaired once (a code fence, a sentence around it, an
  answer cut off after whole facts).
* A bad item is left out and the others stand; when all are bad, the answer is. An `id` that does not exist is
  ignored: the item is then judged by its slot and value alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from nitka.errors import ModelError
from nitka.layers.facts.canon import tokens
from nitka.layers.facts.dates import local
from nitka.layers.facts.evidence import supports
from nitka.layers.facts.model import USER, Candidate, Fact
from nitka.layers.facts.slots import usual_slots
from nitka.models.extract import condense
from nitka.models.ports import ChatModel
from nitka.types import ChatMessage, Message

MESSAGE_TOKENS = 1_200  # shown of one row, about
SLICE_TOKENS = 3_000  # of rows in one call, about
KNOWN_SHOWN = 60  # known facts in one call
ANSWER_TOKENS = 1_500
ANSWER_CHARS = 60_000  # above this an answer is no list of a few facts
_ME = frozenset(("", "user", "the user", "me", "self", "i", "пользователь", "я", "юзер"))
_FIELDS = {name: {"type": "string"} for name in ("about", "slot", "value", "statement", "quote")}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "op": {"type": "string", "enum": ["assert", "retract"]},
                    **_FIELDS,
                    "row": {"type": "integer"},
                    "fact": {"type": ["integer", "null"]},
                },
                "required": ["op", *_FIELDS, "row", "fact"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["facts"],
    "additionalProperties": False,
}
PROFILE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"lines": {"type": "array", "items": {"type": "string"}}},
    "required": ["lines"],
    "additionalProperties": False,
}


class ModelExtractor:
    """Candidates and profiles through a chat model. Keeps nothing between calls."""

    def __init__(self, chat: ChatModel) -> None:
        self.name = chat.name
        self._chat = chat

    async def extract(self, messages: Sequence[Message], *, known: Sequence[Fact] = ()) -> tuple[Candidate, ...]:
        """What the user's rows among `messages` state, for `reconcile`. Raises `ModelError`; then nothing may count
        as read."""
        found: list[Candidate] = []
        for part in slices(messages):
            if any(message.role == "user" for message in part):
                shown = relevant(known, part)
                answer = await self._chat.complete(request(part, shown), max_tokens=ANSWER_TOKENS, schema=SCHEMA)
                found += read(answer.text, part, shown)
        return tuple(found)

    async def profile(
        self,
        messages: Sequence[Message],
        old: str,
        *,
        known: Sequence[Fact] = (),
        cap: int,
        count: Callable[[str], int],
    ) -> str:
        """A standing description of at most `cap` tokens by `count`, from the user's rows. Raises `ModelError`."""
        said = [{"text": _shown(message.text)} for message in messages if message.role == "user"]
        if not said:
            return old
        data = json.dumps({"profile": old, "messages": said[-40:]}, ensure_ascii=False)
        prompt = _prompt("profile").replace("{cap}", str(cap))
        asked: list[ChatMessage] = [{"role": "system", "content": prompt}, {"role": "user", "content": data}]
        answer = await self._chat.complete(asked, max_tokens=3 * cap + 200, schema=PROFILE_SCHEMA)
        return _fitted(_lines(answer.text), cap, count) or old


def slices(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """The rows in runs of about SLICE_TOKENS, in order; the row before a run goes along as its context when it is the
    assistant's."""
    run: list[Message] = []
    size = 0
    for message in messages:
        tokens_here = min(_size(message.text), MESSAGE_TOKENS)
        if run and size + tokens_here > SLICE_TOKENS:
            yield run
            run, size = ([run[-1]], 0) if run[-1].role == "assistant" else ([], 0)
        run.append(message)
        size += tokens_here
    if run:
        yield run


def relevant(known: Sequence[Fact], messages: Sequence[Message]) -> tuple[Fact, ...]:
    """The live facts that an update may land on: those that share words with the rows first, then one-valued slots,
    at most KNOWN_SHOWN."""
    spoken = {word for message in messages for word in tokens(message.text[:8_000])}

    def rank(fact: Fact) -> tuple[int, float]:
        words = set(tokens(f"{fact.value} {fact.about} {fact.slot.replace('.', ' ')}"))
        return -len(words & spoken), -fact.last_seen.timestamp()

    return tuple(sorted((fact for fact in known if fact.live), key=rank)[:KNOWN_SHOWN])


def request(messages: Sequence[Message], known: Sequence[Fact]) -> list[ChatMessage]:
    """What the model is sent: the prompt, and rows and facts as one JSON object."""
    data = {
        "facts": [{"id": at, "about": f.about, "slot": f.slot, "value": f.value} for at, f in enumerate(known)],
        "messages": [
            {"row": at, "role": m.role, "at": local(m).strftime("%A %Y-%m-%d %H:%M"), "text": _shown(m.text)}
            for at, m in enumerate(messages)
        ],
    }
    prompt = _prompt("facts").replace("{slots}", ", ".join(f"`{name}`" for name in usual_slots()))
    return [{"role": "system", "content": prompt}, {"role": "user", "content": json.dumps(data, ensure_ascii=False)}]


def read(text: str, messages: Sequence[Message], known: Sequence[Fact]) -> list[Candidate]:
    """The model's answer as candidates. Raises `ModelError` when it holds no list of facts, or only unusable ones."""
    items = _items(text)
    usable = [candidate for item in items if (candidate := _candidate(item, messages, known)) is not None]
    if items and not usable:
        raise ModelError("No fact of the answer can be used.", retryable=True)
    return usable


def _items(text: str) -> list[object]:
    if len(text) > ANSWER_CHARS:
        raise ModelError("The facts answer is far too long.", retryable=True)
    for start in (match.start() for match in re.finditer(r"[\[{]", text[:4_000])):
        found = _decoded(text, start)
        if isinstance(found, Mapping) and isinstance(found.get("facts"), list):
            return list(found["facts"])
        if isinstance(found, list) and found and all(isinstance(item, Mapping) and "slot" in item for item in found):
            return found
        if found is not None:
            break
    return _cut_off(text)


def _decoded(text: str, start: int) -> object:
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _cut_off(text: str) -> list[object]:
    """The whole facts of an answer that ends in the middle. Raises `ModelError` when there is none."""
    opened = re.search(r'"facts"\s*:\s*\[', text)
    items: list[object] = []
    at = opened.end() if opened else len(text)
    while (brace := text.find("{", at)) >= 0:
        try:
            item, at = json.JSONDecoder().raw_decode(text, brace)
        except (ValueError, RecursionError):
            break
        items.append(item)
    if not items:
        raise ModelError("The facts answer holds no list of facts.", retryable=True)
    return items


def _candidate(item: object, messages: Sequence[Message], known: Sequence[Fact]) -> Candidate | None:
    """One item as a candidate; None when it has no slot, no quote or no row."""
    if not isinstance(item, Mapping):
        return None
    about, slot, value, statement, quote = (_words(item.get(name)) for name in _FIELDS)
    row = _row(item.get("row"), quote, messages)
    meant = _meant(item.get("fact"), known)
    slot = slot.lower() or (meant.slot if meant else "")
    retract = item.get("op") == "retract"
    if row is None or not slot or not quote or not (value or retract):
        return None
    if retract and meant is not None:
        about, slot, value = meant.about, meant.slot, meant.value
    return Candidate(
        op="retract" if retract else "assert",
        slot=slot,
        value=value,
        statement=statement or value,
        about=USER if about.casefold() in _ME else about,
        quote=quote,
        seq=row.seq,
        n=row.n,
    )


def _row(number: object, quote: str, messages: Sequence[Message]) -> Message | None:
    """The row named, when it bears the quote out; else the newest row of the user's that does; else the row named,
    for `reconcile` to refuse."""
    at = int(number) if isinstance(number, str) and number.strip().isdecimal() and len(number) < 9 else number
    named = messages[at] if isinstance(at, int) and not isinstance(at, bool) and 0 <= at < len(messages) else None
    if named is not None and supports(quote, named):
        return named
    return next((message for message in reversed(messages) if supports(quote, message)), named)


def _meant(number: object, known: Sequence[Fact]) -> Fact | None:
    inside = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(known)
    return known[number] if inside and isinstance(number, int) else None


def _lines(text: str) -> list[str]:
    if len(text) > ANSWER_CHARS:
        raise ModelError("The profile answer is far too long.", retryable=True)
    for start in (match.start() for match in re.finditer(r"\{", text[:4_000])):
        found = _decoded(text, start)
        lines = found.get("lines") if isinstance(found, Mapping) else None
        if isinstance(lines, list) and (not lines or any(_words(line) for line in lines)):
            return [_words(line) for line in lines if _words(line)]
    raise ModelError("The profile answer holds no lines.", retryable=True)


def _fitted(lines: Sequence[str], cap: int, count: Callable[[str], int]) -> str:
    kept = list(lines)
    while kept and count("\n".join(kept)) > cap:
        kept.pop()
    return "\n".join(kept)


def _words(value: object) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return " ".join(value.split()) if isinstance(value, str) else ""


def _shown(text: str) -> str:
    return condense(text, room=MESSAGE_TOKENS, count=_size)


def _size(text: str) -> int:
    """Tokens, about: a quarter of the bytes; no exact count is needed to keep a row short."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4


@cache
def _prompt(name: str) -> str:
    return resources.files("nitka.models").joinpath("prompts").joinpath(f"{name}.md").read_text("utf-8")
