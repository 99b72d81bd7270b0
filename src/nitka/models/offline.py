"""An offline stand-in for a chat model: no network, no weights, only what the request holds.

It finds the sentence that best answers the last user message and quotes it, or says that there is none. Rules:

* Evidence is what stands in the request before the question: the user's and the assistant's own statements, and lines
  of memory or knowledge. Questions are no evidence, nor is the message that is being answered.
* Newer wins: of sentences that answer about equally well, the latest is quoted. A correction ("no, make it sixty")
  speaks of what the user spoke of just before.
* A statement is acknowledged, not answered. What only a language model can do is declined.
* It says what it is at the beginning of a conversation and where it has no answer, and otherwise keeps to the point.

It is a pure function of the messages: the same request gets the same answer.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nitka import estimate
from nitka.errors import ModelError
from nitka.models import offline_words as lexicon
from nitka.models.offline_find import NAME, Sentence, answer_in, best, kind_of
from nitka.models.ports import Answer
from nitka.types import ChatMessage

PIECE = 3
"""Words in one piece of a streamed answer."""

QUOTED = 300
"""Characters of a sentence that are quoted at most."""

Intent = Literal["question", "statement", "greeting", "thanks", "farewell", "overview", "task"]


class OfflineChat:
    """A chat model that answers from the request alone; see `nitka.models.ports.ChatModel`."""

    name = "offline"

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: Mapping[str, Any] | None = None
    ) -> Answer:
        """The whole answer. Raises `ModelError` when JSON is asked for: there is no model that could write it."""
        if schema is not None:
            raise ModelError("The offline stand-in writes no JSON.")
        return Answer(text=shorten(reply(messages), max_tokens))

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str]:
        """The same answer in pieces of a few words."""
        text = shorten(reply(messages), max_tokens)
        for piece in re.findall(rf"(?:\S+\s*){{1,{PIECE}}}", text):
            yield piece

    async def close(self) -> None:
        """Nothing is held."""


def reply(messages: Sequence[ChatMessage]) -> str:
    """The stand-in's answer to a request. Raises `ModelError` when the request asks nothing."""
    asked = next((at for at in reversed(range(len(messages))) if messages[at].get("role") == "user"), None)
    text = "" if asked is None else plain(messages[asked].get("content")).strip()
    if asked is None or not text:
        raise ModelError("The request holds no message of a user.")
    before = [*messages[:asked], *(message for message in messages[asked + 1 :] if message.get("role") != "user")]
    known = list(evidence(before))
    phrases = RUSSIAN if _is_russian(text) else ENGLISH
    said = _respond(text, known, phrases)
    begun = any(message.get("role") == "assistant" for message in before) or any(s.source == "notes" for s in known)
    return said if begun or phrases.label in said else f"{said}\n\n{phrases.label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """What the stand-in says of its own accord. `quoted` are the marks around a quotation."""

    label: str
    none: str
    decline: str
    noted: str
    hello: str
    welcome: str
    bye: str
    overview: str
    quoted: str
    leads: Mapping[str, str]

    def quote(self, text: str) -> str:
        text = text if len(text) <= QUOTED else f"{text[: QUOTED - 1].rsplit(' ', 1)[0]}…"
        return f"{self.quoted[0]}{text}{self.quoted[1]}"


ENGLISH = Phrases(
    label="(Offline stand-in: no language model is connected, so I only find sentences in what I was given.)",
    none="I have nothing that answers this. (Offline stand-in: I only find sentences in what I was given.)",
    decline="That takes a language model, and none is connected: offline I only find sentences in what I was given.",
    noted="Noted.",
    hello="Hello{name}! Tell me something to keep in mind, or ask about what was said.",
    welcome="You're welcome.",
    bye="Goodbye!",
    overview="This is what I have:",
    quoted='""',
    leads={"user": "You said:", "assistant": "I said:", "notes": "From memory:", "prompt": "From my instructions:"},
)

RUSSIAN = Phrases(
    label="(Автономный режим: языковая модель не подключена, я лишь нахожу фразы в том, что мне передали.)",
    none="Ответа на это у меня нет. (Автономный режим: я лишь нахожу фразы в том, что мне передали.)",
    decline="Для этого нужна языковая модель, а она не подключена: я лишь нахожу фразы в том, что мне передали.",
    noted="Записано.",
    hello="Здравствуйте{name}! Расскажите, что запомнить, или спросите о том, что уже говорилось.",
    welcome="Пожалуйста.",
    bye="До свидания!",
    overview="Вот что у меня есть:",
    quoted="«»",
    leads={"user": "Вы сказали:", "assistant": "Я говорил:", "notes": "Из памяти:", "prompt": "Из моих указаний:"},
)


def _respond(text: str, known: Sequence[Sentence], phrases: Phrases) -> str:
    intent, sentence = understand(text)
    if intent == "greeting":
        found = best(NAME_QUESTION, known)
        name = answer_in(NAME_QUESTION, found) if found else ""
        return phrases.hello.format(name=f", {name}" if name else "")
    if intent == "statement":
        return f"{phrases.noted} {phrases.quote(' '.join(text.split()))}"
    if intent == "overview":
        return _overview(known, phrases)
    if intent == "question":
        for asked in clauses(sentence):
            if found := best(asked, known):
                return _quoted(asked, found, phrases)
        return phrases.none
    return {"thanks": phrases.welcome, "farewell": phrases.bye, "task": phrases.decline}[intent]


NAME_QUESTION = "What is my name? Как меня зовут?"


def _quoted(question: str, found: Sentence, phrases: Phrases) -> str:
    answer = answer_in(question, found)
    lead = f"{answer}{'' if answer.endswith('.') else '.'} " if answer and answer != found.text else ""
    return f"{lead}{phrases.leads[found.source]} {phrases.quote(found.text)}"


def _overview(known: Sequence[Sentence], phrases: Phrases) -> str:
    """The latest lines of memory and the user's own statements, oldest first."""
    worth = [one for one in known if one.source in ("notes", "user") and lexicon.subjects(one.words)]
    kept = dict.fromkeys(one.text for one in sorted(worth, key=lambda one: one.order)[-8:])
    return "\n".join([phrases.overview, *(f"– {phrases.quote(text)}" for text in kept)]) if kept else phrases.none


def understand(text: str) -> tuple[Intent, str]:
    """What a message wants, and the sentence that says so: its last question, if it has one."""
    small = lexicon.words(text)
    for intent, these in (("greeting", lexicon.HELLO), ("thanks", lexicon.THANKS), ("farewell", lexicon.BYE)):
        if 0 < len(small) <= 7 and these.issuperset(small):
            return intent, text  # type: ignore[return-value]  # the pairs above are intents
    sentences = [part for part in lexicon.SENTENCE.split(text) if lexicon.words(part)]
    questions = [part for part in sentences if is_question(part)]
    if questions:
        small = lexicon.words(questions[-1])
        named = lexicon.subjects(word for word in small if word not in lexicon.ALL and word not in lexicon.ASK)
        return ("overview" if not named and kind_of(questions[-1]) == "any" else "question"), questions[-1]
    tasks = [part for part in sentences if (first := lexicon.words(part)[:1]) and first[0] in lexicon.MAKE]
    return ("task", tasks[-1]) if tasks else ("statement", text)


def clauses(question: str) -> Iterator[str]:
    """A question whole, and then its parts that ask: "how old am I, do you remember?" asks the first of its two."""
    yield question
    parts = lexicon.CLAUSE.split(question)
    if len(parts) > 1:
        yield from (part for part in parts if lexicon.subjects(lexicon.words(part)) or kind_of(part) != "any")


def is_question(sentence: str) -> bool:
    """Whether a sentence asks: by its mark, its first word, or a request to tell."""
    small = lexicon.words(sentence)
    if not small:
        return False
    if sentence.rstrip(" \"'»”)").endswith("?"):
        return True
    if sentence.rstrip().endswith(("!", "…")) and small[0] not in lexicon.ASK:
        return False
    if small[0] in ("а", "и", "and", "so", "but"):
        small = small[1:] or small
    named = small[0] == "как" and NAME in lexicon.subjects(small)
    turned = small[0] in lexicon.TURNED and bool(lexicon.TURNED_BY.intersection(small[1:2]))
    asks = small[0] in lexicon.ASK or small[0] in lexicon.OPENERS
    return asks or named or turned or (small[0] == "когда" and "," not in sentence)


def evidence(messages: Sequence[ChatMessage]) -> Iterator[Sentence]:
    """All that may answer, with its place in time: instructions, then memory, then the conversation."""
    topic: tuple[str, ...] = ()
    for at, message in enumerate(messages):
        role, text = message.get("role"), plain(message.get("content"))
        if role == "system":
            yield from _lines(text, at)
        elif role in ("user", "assistant"):
            parts = [part.strip() for part in lexicon.SENTENCE.split(text) if part.strip()]
            for nth, part in enumerate(parts):
                small = lexicon.words(part)
                if is_question(part) or not small or _is_own(part):
                    continue
                about = topic if role == "user" and small[0] in lexicon.CHANGED else ()
                order = 1_000_000 + 1_000 * at + nth
                yield Sentence(
                    text=part, source="user" if role == "user" else "assistant", order=order, words=small, about=about
                )
            if role == "user":
                small = lexicon.words(text)
                topic = topic + small if small and small[0] in lexicon.CHANGED else small


def _lines(text: str, at: int) -> Iterator[Sentence]:
    """Lines of a system message: quoted ones are memory or knowledge, the others instructions; labels are neither."""
    for nth, line in enumerate(text.splitlines()):
        quoted = line.startswith("|")
        bare = re.sub(r"^\|\s*(?:\[[^\]]{1,60}\]\s*)?", "", line).strip()
        if not lexicon.words(bare) or (not quoted and bare.endswith(":")) or re.fullmatch(r"\(.*\)|\[\d+\]", bare):
            continue
        for part in lexicon.SENTENCE.split(bare):
            small = lexicon.words(part)
            if small and not is_question(part):
                order = (100_000 if quoted else 0) + 1_000 * at + nth
                yield Sentence(text=part, source="notes" if quoted else "prompt", order=order, words=small)


def _is_own(sentence: str) -> bool:
    """Whether a sentence is one of the stand-in's own phrases, which tell nothing."""
    return any(
        sentence.strip("() ") in phrases.none + phrases.label + phrases.decline for phrases in (ENGLISH, RUSSIAN)
    )


def plain(content: object) -> str:
    """The text of a message's content."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def shorten(text: str, tokens: int) -> str:
    """The text within a number of tokens, whatever tokenizer counts them; cut at a word, with a mark."""
    if estimate.count(text) * (1 + estimate.MARGIN) <= tokens:
        return text
    words = re.findall(r"\S+\s*", text)
    low, high = 1, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        fits = estimate.count("".join(words[:middle]) + "…") * (1 + estimate.MARGIN) <= tokens
        low, high = (middle, high) if fits else (low, middle - 1)
    return "".join(words[:low]).rstrip() + "…"


def _is_russian(text: str) -> bool:
    letters = [char for char in text if char.isalpha()]
    return 2 * sum("\u0400" <= char <= "\u04ff" for char in letters) > len(letters)
