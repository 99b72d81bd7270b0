"""Token counters: how large a text, a message or a tool definition is for the model.

Rules. A counter is a value that is handed around: a name, a margin and a pure function. The real count never exceeds
`count * (1 + margin)`; an exact counter has margin 0. What a message costs beyond its texts (envelope, names, tool
calls) is priced here, in one place. A picture or a file has the same bounded price in every form in which the
providers take it, and its payload is never read as text: OpenAI's `image_url`, `input_image`, `file` and
`input_audio`, Anthropic's `source`, Gemini's `inline_data`, also nested in a tool's result. A payload that stands
inside a plain string IS text for the model, and is priced as such.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from typing import Any

import nitka.estimate
from nitka.config import tiktoken_tables
from nitka.errors import BadInput
from nitka.types import ChatMessage

MESSAGE_TOKENS = 4
"""Around one message: three for its marks and one for its role (OpenAI's cookbook, "How to count tokens")."""

REQUEST_TOKENS = 3
"""Around the whole list: the marks that open the answer (same source)."""

MEDIA_TOKENS = 1_445
"""A picture or a file, whatever its form: the most that OpenAI's tile formula asks for one picture in high detail
(85 + 8 tiles of 170)."""

TOOL_TOKENS = 8
"""Around one tool definition, and once around the list."""

ENCODING = "o200k_base"

REMEMBERED_CHARS = 32_768
"""Of the texts whose sizes one `KnownSizes` keeps; a text that takes a quarter of that alone is counted anew."""


@dataclass(frozen=True, slots=True)
class Counter:
    """Says how many tokens a text has; the real number is at most `count(text) * (1 + margin)`.

    `name` is stored beside what was measured with it. `count` takes any `str`, lone surrogates included, and is pure.
    """

    name: str
    margin: float
    count: Callable[[str], int] = field(repr=False)

    def room(self, tokens: int) -> int:
        """How far this counter may go so that `tokens` real ones are never exceeded."""
        return int(tokens / (1 + self.margin))


def exact() -> Counter:
    """OpenAI's o200k_base, from `bpe-openai`, or from `tiktoken` if its tables are on this machine.

    Nothing is ever downloaded. Raises `BadInput` when neither is there.
    """
    count = _bpe_openai(ENCODING) or _tiktoken(ENCODING)
    if count is None:
        raise BadInput("No exact tokenizer is installed: nitka[tokens] brings one.")
    return Counter(ENCODING, 0.0, count)


def estimate() -> Counter:
    """An estimate by script that needs no tables; see `nitka.estimate` for what its margin holds for."""
    return Counter(nitka.estimate.NAME, nitka.estimate.MARGIN, nitka.estimate.count)


@functools.cache
def default_counter() -> Counter:
    """The exact counter if there is one, else the estimate."""
    try:
        return exact()
    except BadInput:
        return estimate()


class KnownSizes:
    """A count that remembers the sizes of the last few texts. It holds what a user wrote, so it may live only where
    that may: beside the user's opened key (`vault.keychain.Recent`).
    """

    __slots__ = ("_chars", "_known", "plain")

    def __init__(self, count: Callable[[str], int]) -> None:
        self.plain = count
        self._known: OrderedDict[str, int] = OrderedDict()
        self._chars = 0

    @property
    def bytes(self) -> int:
        """About how much room it takes."""
        return 2 * self._chars + 100 * len(self._known)

    def __call__(self, text: str) -> int:
        tokens = self._known.get(text)
        if tokens is None:
            tokens = self.plain(text)
            if len(text) <= REMEMBERED_CHARS // 4:
                self._remember(text, tokens)
        return tokens

    def _remember(self, text: str, tokens: int) -> None:
        self._known[text] = tokens
        self._chars += len(text)
        with contextlib.suppress(KeyError):  # another thread lets go too; single steps of an OrderedDict are safe
            while self._chars > REMEMBERED_CHARS:
                oldest, _ = self._known.popitem(last=False)
                self._chars -= len(oldest)


def count_label(count: Callable[[str], int], text: str) -> int:
    """The size of a text of ours, remembered for everybody. Never to be used for what a user wrote: it would stay in
    memory.
    """
    return _count_label(count.plain if isinstance(count, KnownSizes) else count, text)


@functools.lru_cache(maxsize=1_024)
def _count_label(count: Callable[[str], int], text: str) -> int:
    return count(text)


def count_message(counter: Counter, message: ChatMessage) -> int:
    """The price of one message in the counter's tokens: envelope, role, name, content, tool calls, tool results."""
    named = 1 if message.get("name") else 0
    return MESSAGE_TOKENS + named + sum(_price(counter, value) for key, value in message.items() if key != "role")


def count_messages(counter: Counter, messages: Iterable[ChatMessage]) -> int:
    """The price of a whole list of messages, with what opens the answer."""
    return REQUEST_TOKENS + sum(count_message(counter, message) for message in messages)


def count_tools(counter: Counter, tools: Sequence[Mapping[str, Any]]) -> int:
    """The price of tool definitions, as compact JSON: what providers make of them is not larger. None cost nothing."""
    if not tools:
        return 0
    try:
        return TOOL_TOKENS + sum(TOOL_TOKENS + counter.count(_json(tool)) for tool in tools)
    except (TypeError, ValueError, RecursionError):
        raise BadInput("tools is a list of definitions that JSON can hold, not too deep and without circles.") from None


_MEDIA_TYPES = frozenset(
    "image image_url input_image output_image image_file file input_file input_audio audio video video_url input_video "
    "media document".split()
)
_MEDIA_KEYS = frozenset(
    "image_url inline_data inlineData file_data fileData input_audio file_url video_url blob".split()
)
_MEDIA_PARTS = ("image", "video", "audio", "document")
_CAPTIONS = ("text", "title", "context")
_TEXTS = frozenset("text content arguments input output".split())
_ENVELOPE = _TEXTS | frozenset("type role id function name tool_calls tool_call_id call_id tool_use_id index".split())
_UNPRICED = frozenset(("type", "index", "cache_control"))


def _price(counter: Counter, value: object) -> int:
    """The price of anything that JSON can hold. A loop and not a recursion: nesting is the caller's to choose."""
    total, todo = 0, [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            total += counter.count(item)
        elif isinstance(item, bytes | bytearray):
            total += MEDIA_TOKENS
        elif isinstance(item, Mapping):
            price, inner = _open(counter, item)
            total += price
            todo += inner
        elif isinstance(item, Sequence):
            total += len(item)
            todo += item
        elif item is not None:
            total += 1 + counter.count(str(item))
    return total


def _open(counter: Counter, part: Mapping[str, Any]) -> tuple[int, list[object]]:
    """The price of a mapping itself, and what in it is still to be priced."""
    if _is_media(part):
        return MEDIA_TOKENS, [text for key in _CAPTIONS if isinstance(text := part.get(key), str)]
    price, inner = 0, []
    for key, value in part.items():
        price += 0 if key in _ENVELOPE else 2 + counter.count(str(key))
        if key not in _TEXTS and isinstance(value, str) and _is_data_url(value):
            price += MEDIA_TOKENS
        elif key not in _UNPRICED:
            inner.append(value)
    return price, inner


def _is_media(part: Mapping[str, Any]) -> bool:
    """Whether a part stands for a picture, a sound or a file. A document whose source is text is text."""
    source = part.get("source")
    if isinstance(source, Mapping) and "type" in source:
        return source["type"] not in ("text", "content")
    kind = part.get("type")
    if isinstance(kind, str) and kind in _MEDIA_TYPES:
        return True
    return not _MEDIA_KEYS.isdisjoint(part) or any(isinstance(part.get(key), Mapping) for key in _MEDIA_PARTS)


def _is_data_url(text: str) -> bool:
    """Whether a whole string is one `data:` URL (RFC 2397) in base64."""
    return text[:5] == "data:" and ";base64," in text[:200] and " " not in text[:300]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _whole(text: str) -> str:
    """Valid Unicode: halves of a pair that stand together are joined, a lone one becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _safe(count: Callable[[str], int]) -> Callable[[str], int]:
    """Let a tokenizer that takes only valid Unicode take any `str`."""

    def counted(text: str) -> int:
        try:
            return count(text)
        except UnicodeEncodeError:
            return count(_whole(text))

    return counted


@functools.cache
def _bpe_openai(encoding: str) -> Callable[[str], int] | None:
    """The native half of `bpe-openai`, loaded alone where that is possible.

    Its Python half unpacks every vocabulary it ships when it is imported: 1.5 s and 60 MB, against 0.2 s for the
    native module, which carries its tables inside. Where the file is not found, the package is imported after all.
    """
    spec = importlib.util.find_spec("bpe_openai")
    if spec is None:
        return None
    module = sys.modules.get("bpe_openai._bindings")
    found = PathFinder.find_spec("_bindings", list(spec.submodule_search_locations or ()))
    if module is None and found is not None and found.origin:
        alone = importlib.util.spec_from_file_location("bpe_openai._bindings", found.origin)
        if alone is not None and alone.loader is not None:
            module = importlib.util.module_from_spec(alone)
            alone.loader.exec_module(module)
    if module is None:
        module = importlib.import_module("bpe_openai._bindings")
    count: Callable[[str], int] = module.tokenizer_for_encoding(encoding).count
    return _safe(count)


@functools.cache
def _tiktoken(encoding: str) -> Callable[[str], int] | None:
    """`tiktoken`, only when its table lies in its cache folder: otherwise it would go to the network."""
    if importlib.util.find_spec("tiktoken") is None or not tiktoken_tables(encoding).is_file():
        return None
    encode: Callable[[str], Sequence[int]] = importlib.import_module("tiktoken").get_encoding(encoding).encode_ordinary
    return _safe(lambda text: len(encode(text)))
