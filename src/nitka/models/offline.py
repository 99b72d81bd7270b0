"""An offline stand-in for a chat model: no network, no weights, only what the request holds.

It finds the sentence that best answers the last user message and quotes it, or says that there is none. Rules:

* Evidence is what stands in the request before the question: the user's statements, lines of memory or knowledge, and
  what the assistant said that nobody had said before. Questions are no evidence, nor are echoes: an answer that only
  repeats is never quoted.
* Newer wins: of sentences that answer about equally well, the latest is quoted. A correction ("no, make it sixty"),
  and a sentence about "it" or "her", speak of what the user spoke of just before.
* A statement is acknowledged in a word: repeating it would fill the conversation with echoes. What only a language
  model can do is declined, and what is asked about the stand-in itself is answered.
* It says what it is at the beginning of a conversation, once in an answer, and otherwise keeps to the point.

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
from nitka.models.offline_find import Query, Sentence, Source, all_of, answer_in, best, kind_of
from nitka.models.offline_words import NAME
from nitka.models.ports import Answer
from nitka.types import ChatMessage

PIECE = 3
"""Words in one piece of a streamed answer."""

QUOTED = 300
"""Characters of a sentence that are quoted at most."""

LISTED = 8
"""Statements that are listed at most."""

Intent = Literal[
    "question", "statement", "greeting", "thanks", "farewell", "overview", "topic", "task", "self", "small"
]


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
    phrases = _language(text, before)
    said = _respond(text, known, phrases)
    begun = any(message.get("role") == "assistant" for message in before) or any(s.source == "notes" for s in known)
    explained = said in (phrases.decline, phrases.self)
    return said if begun or explained else f"{said}\n\n{phrases.label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """What the stand-in says of its own accord. `quoted` are the marks around a quotation."""

    label: str
    none: str
    decline: str
    noted: str
    hello: str
    self: str
    small: str
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
    none="I have nothing that answers this.",
    self="I am an offline stand-in: no language model is connected. I find what you told me, and quote it.",
    small="All right.",
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
    none="Ответа на это у меня нет.",
    self="Я заглушка, работаю без языковой модели: нахожу то, что вы мне говорили, и цитирую.",
    small="Хорошо.",
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
    if intent == "overview":
        return _overview(sentence, known, phrases)
    if intent == "topic":
        return _about(sentence, known, phrases)
    if intent == "question":
        return _answer(sentence, known, phrases)
    return {
        "statement": phrases.noted,
        "small": phrases.small,
        "thanks": phrases.welcome,
        "farewell": phrases.bye,
        "task": phrases.decline,
        "self": phrases.self,
    }[intent]


NAME_QUESTION = "What is my name? Как меня зовут?"


def _answer(question: str, known: Sequence[Sentence], phrases: Phrases) -> str:
    for asked in clauses(question):
        if found := best(asked, known):
            return _quoted(asked, found, phrases)
    return phrases.none


def _about(question: str, known: Sequence[Sentence], phrases: Phrases) -> str:
    """All there is of a subject, or the one statement, or what comes nearest."""
    found = all_of(question, known, LISTED)
    return _listed(found, phrases) if len(found) > 1 else _answer(question, known, phrases)


def _overview(question: str, known: Sequence[Sentence], phrases: Phrases) -> str:
    """The newest statements; of "what did we agree?" those that speak of an agreement, if any do."""
    agreed = not lexicon.AGREED.isdisjoint(lexicon.words(question))
    such = [one for one in known if agreed and not lexicon.AGREED.isdisjoint(one.words)]
    return _listed(such or [one for one in known if lexicon.subjects(one.words)], phrases)


def _quoted(question: str, found: Sentence, phrases: Phrases) -> str:
    answer = answer_in(question, found)
    lead = f"{answer}{'' if answer.endswith('.') else '.'} " if answer and answer != found.text else ""
    return f"{lead}{phrases.leads[found.source]} {phrases.quote(found.text)}"


def _listed(found: Sequence[Sentence], phrases: Phrases) -> str:
    """The latest lines of memory and the user's own statements, oldest first."""
    worth = [one for one in found if one.source in ("notes", "user")]
    kept = dict.fromkeys(one.text for one in sorted(worth, key=lambda one: one.order)[-LISTED:])
    return "\n".join([phrases.overview, *(f"– {phrases.quote(text)}" for text in kept)]) if kept else phrases.none


def understand(text: str) -> tuple[Intent, str]:
    """What a message wants, and the sentence that says so: its last question, if it has one."""
    small = lexicon.words(text)
    if lexicon.SMALL.issuperset(small):
        return "small", text
    for intent, these in (("greeting", lexicon.HELLO), ("thanks", lexicon.THANKS), ("farewell", lexicon.BYE)):
        if len(small) <= 7 and these.issuperset(small):
            return intent, text  # type: ignore[return-value]  # the pairs above are intents
    sentences = [part for part in lexicon.sentences(text) if lexicon.words(part)]
    questions = [part for part in sentences if is_question(part)]
    if questions:
        return _wants(questions[-1]), questions[-1]
    tasks = [part for part in sentences if _is_task(lexicon.words(part))]
    return ("task", tasks[-1]) if tasks else ("statement", text)


def _wants(question: str) -> Intent:
    """What kind of question it is."""
    small = lexicon.words(question)
    query = Query(question)
    named = lexicon.subjects(word for word in small if word not in lexicon.ALL and word not in lexicon.ASK)
    personal = named <= lexicon.subjects(lexicon.SELF | lexicon.CAN) and (named or not lexicon.CAN.isdisjoint(small))
    if query.of_you and personal:
        return "self"
    if _asks_to_do(small):
        return "task"
    if kind_of(question) != "any":
        return "question"
    if not named:
        return "overview"
    asked = {*zip(small, small[1:], strict=False)}
    told = not lexicon.ASK.isdisjoint(small[:1]) or not lexicon.DECIDED.isdisjoint(small)
    return "topic" if told or any(word in lexicon.ABOUT for word, _ in asked) and query.yours else "question"


def _asks_to_do(small: tuple[str, ...]) -> bool:
    """ "Could you double it?", "Можешь удвоить?": a task, unless it is to tell what is known."""
    english = small[:1] in (("can",), ("could",), ("would",), ("will",)) and small[1:2] == ("you",)
    russian = small[:1] in (("можешь",), ("можете",))
    verb = (small[2:3] if english else small[1:2]) if english or russian else ()
    return bool(verb) and (verb[0] in lexicon.MAKE or verb[0] not in lexicon.KNOWS | lexicon.ASK)


def _is_task(small: tuple[str, ...]) -> bool:
    """Whether it begins with a request to make something; "make it 360 ml" changes what was said."""
    small = small[1:] if small[:1] in (("please",), ("пожалуйста",)) else small
    return bool(small) and small[0] in lexicon.MAKE and not (len(small) > 2 and small[1] in ("it", "that", "его", "ее"))


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
    told: list[frozenset[str]] = []
    for one in _statements(messages):
        if one.source == "assistant" and (is_own(one.text) or any(one.subjects <= said for said in told)):
            continue  # an echo
        told.append(one.subjects)
        yield one


def _statements(messages: Sequence[ChatMessage]) -> Iterator[Sentence]:
    topic: tuple[str, ...] = ()
    for at, message in enumerate(messages):
        role, text = message.get("role"), plain(message.get("content"))
        if role == "system":
            yield from _lines(text, at)
        elif role == "assistant" and not is_own(text):
            yield from _parts(text, "assistant", 1_000_000 + 1_000 * at, ())
        elif role == "user":
            yield from _parts(text, "user", 1_000_000 + 1_000 * at, topic)
            topic = _topic(lexicon.words(text), topic)


def _parts(text: str, source: Source, order: int, topic: tuple[str, ...]) -> Iterator[Sentence]:
    """The statements in a text; each may lean on what was spoken of before it."""
    for nth, part in enumerate(lexicon.sentences(text)):
        small = lexicon.words(part)
        asks = "?" in part if source == "notes" else is_question(part)  # "is called Anna" is a fact
        if not asks and small and not lexicon.SMALL.issuperset(small):
            about, lean = _leans(small, topic)
            yield Sentence(text=part, source=source, order=order + nth, words=small, about=about, lean=lean)
        topic = _topic(small, topic)


def _leans(small: tuple[str, ...], topic: tuple[str, ...]) -> tuple[tuple[str, ...], float]:
    """What a sentence speaks of without saying it, and how surely: a correction, or one that begins with "her"."""
    if small[0] in lexicon.CHANGED:
        return topic, 0.9
    return (topic, 0.5) if not lexicon.STANDS.isdisjoint(small[:3]) else ((), 0.0)


def _topic(small: tuple[str, ...], topic: tuple[str, ...]) -> tuple[str, ...]:
    """What was spoken of last. It is handed on through sentences that lean on it, up to a bound."""
    if not small or lexicon.SMALL.issuperset(small):
        return topic
    return (small + _leans(small, topic)[0])[:LONGEST_TOPIC]


LONGEST_TOPIC = 60
"""Words."""


def _lines(text: str, at: int) -> Iterator[Sentence]:
    """Lines of a system message: quoted ones are memory or knowledge, the others instructions; labels are neither."""
    topic: tuple[str, ...] = ()
    for nth, line in enumerate(text.splitlines()):
        quoted = line.startswith("|")
        bare = re.sub(r"^\|\s*(?:\[[^\]]{1,60}\]\s*)?", "", line).strip()
        if not lexicon.words(bare) or (not quoted and bare.endswith(":")) or re.fullmatch(r"\(.*\)|\[\d+\]", bare):
            continue
        who, bare = _speaker(bare) if quoted else ("", bare)
        source: Source = "assistant" if who in lexicon.ASSISTANT_SAID else "notes" if quoted else "prompt"
        order = (100_000 if quoted else 0) + 1_000 * at + nth
        yield from _parts(bare, source, order, topic if quoted else ())
        topic = _topic(lexicon.words(bare), topic) if quoted else ()


def _speaker(line: str) -> tuple[str, str]:
    """Who a line of memory says is speaking, and the rest of it."""
    who, mark, rest = line.partition(": ")
    known = mark and who.strip().lower() in lexicon.USER_SAID | lexicon.ASSISTANT_SAID
    return (who.strip().lower(), rest) if known else ("", line)


_OWN = tuple(
    phrase.partition("{")[0]
    for phrases in (ENGLISH, RUSSIAN)
    for phrase in (
        phrases.label,
        phrases.none,
        phrases.decline,
        phrases.noted,
        phrases.self,
        phrases.small,
        phrases.welcome,
        phrases.bye,
        phrases.overview,
        phrases.hello,
    )
)
_QUOTES = tuple(f"{lead} {phrases.quoted[0]}" for phrases in (ENGLISH, RUSSIAN) for lead in phrases.leads.values())


def is_own(text: str) -> bool:
    """Whether a text is the stand-in's own: one of its phrases, or a quotation with its lead."""
    return text.startswith(_OWN) or any(quote in text for quote in _QUOTES)


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


def _language(text: str, before: Sequence[ChatMessage]) -> Phrases:
    """The phrases of the question's language; where it has no letters, of what the user wrote last that has some."""
    earlier = (plain(message.get("content")) for message in reversed(before) if message.get("role") == "user")
    for said in (text, *earlier):
        letters = [char for char in said if char.isalpha()]
        if letters:
            return RUSSIAN if 2 * sum("\u0400" <= char <= "\u04ff" for char in letters) > len(letters) else ENGLISH
    return ENGLISH
