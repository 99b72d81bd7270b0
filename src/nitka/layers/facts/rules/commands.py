"""What the user tells the memory itself ("remember that ...", "forget ..."), and what short answers and corrections
mean.

* "Remember that S": S is stored as a note when no rule knows what it says.
* "Forget X": every fact whose words X names is taken back; a "forget" that names nothing takes back nothing.
* An answer that is nothing but a value ("in Leeds") counts only right after the assistant asked for that value; a
  bare "yes" only after a closed question about the user, in a few slots. The assistant's own words are otherwise
  never read.
* A code of the same shape as the order number given before, with other digits, corrects it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from nitka.layers.facts.canon import tokens
from nitka.layers.facts.model import USER, Candidate
from nitka.layers.facts.rules import engine, notes
from nitka.layers.facts.rules.engine import Scene
from nitka.layers.facts.rules.macros import compiled
from nitka.layers.facts.rules.modality import senses
from nitka.layers.facts.rules.shape import shape
from nitka.layers.facts.rules.text import Sentence

_TIMED = re.compile(
    r"(?i)\b\d{1,2}[:.]\d\d\b|\bat \d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\bevery\b|(?<!\w)в \d{1,2}(?!\d)"
    r"|кажд|по (?:утрам|вечерам|понед|вторн|сред|четв|пятн|субб|воскр)|утра|вечера"
)
_TOPIC_CHARS = 80
_MEANT_TO_BE_KEPT = re.compile(
    r"(?i)(?:\bthat|:|\bdown|\bnote|\bmind|\brecord|запомни|запиши|учти|в виду|заметь|отметь)"
)
_OWN = re.compile(r"(?i)(?:\w+ ){0,2}(?:i|we|my|our|me|us)\b")
_YOURS = re.compile(r"(?i)\b(?:you|your|yours|yourself)\b")
_NOT = re.compile(r"(?i)(?:\bnot|instead of|(?<!\w)не|вместо)(?: an?| the)? $")


@dataclass(frozen=True)
class _Commands:
    remember: tuple[re.Pattern[str], ...]
    not_remember: tuple[re.Pattern[str], ...]
    forget: tuple[re.Pattern[str], ...]
    not_forget: tuple[re.Pattern[str], ...]
    nothing: frozenset[str]
    asks: tuple[tuple[re.Pattern[str], re.Pattern[str], dict[str, Any]], ...]
    yes: re.Pattern[str]
    yes_slots: frozenset[str]
    alternative: re.Pattern[str]
    swap: tuple[tuple[re.Pattern[str], str], ...]


@cache
def _commands() -> _Commands:
    data = tomllib.loads(files(__package__).joinpath("commands.toml").read_text("utf-8"))

    def all_of(name: str) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(pattern, re.I | re.S) for pattern in data[name])

    return _Commands(
        remember=all_of("remember"),
        not_remember=all_of("not_remember"),
        forget=all_of("forget"),
        not_forget=all_of("not_forget"),
        nothing=frozenset(word for name in data["nothing"].split("|") for word in tokens(name)),
        asks=tuple(
            (re.compile(ask["asked"], re.I), compiled(ask["answer"], language), ask)
            for language in ("en", "ru")
            for ask in data["ask"]
        ),
        yes=re.compile(data["yes"]["said"], re.I),
        yes_slots=frozenset(data["yes"]["slots"]),
        alternative=re.compile(data["yes"]["alternative"], re.I),
        swap=tuple((re.compile(pattern, re.I), plain) for pattern, plain in data["yes"]["swap"]),
    )


def remembered(scene: Scene, spans: Sequence[tuple[int, int]]) -> Candidate | None:
    """What the user asked to be kept, when no rule has found anything in it (`spans`: what rules have used of the
    sentence)."""
    known, text = _commands(), scene.sentence.text
    match = next((m for pattern in known.remember if (m := pattern.search(text))), None)
    if match is None or any(pattern.search(text) for pattern in known.not_remember):
        return None
    start, end = match.span("rest")
    kept_out = {"kept_out", "reported", "untrue", "joke"} & senses(scene.reaches, start)
    if kept_out or any(first < end and last > start for first, last in spans):
        return None
    value = notes.note(match["rest"].strip(" \t\n.!,;"), scene.today)
    told = _MEANT_TO_BE_KEPT.search(text[match.start() : start]) or _OWN.match(value)
    if len(value) < 4 or scene.sentence.asks or not told or _YOURS.search(value):
        return None
    slot = "schedule" if _TIMED.search(value) else "note"
    quote = scene.message.text[scene.sentence.start + start : scene.sentence.start + end].strip()
    return Candidate(slot=slot, value=value, statement=value, quote=quote, seq=scene.message.seq, n=scene.message.n)


def forgotten(scene: Scene, facts: Sequence[Candidate]) -> Iterator[Candidate]:
    """What the user took back in so many words: retractions of the facts that the words after "forget" name."""
    known, text = _commands(), scene.sentence.text
    match = next((m for pattern in known.forget if (m := pattern.search(text))), None)
    if match is None or any(pattern.search(text) for pattern in known.not_forget):
        return
    topic = re.split(r"[,;:.!?]", match["rest"][:_TOPIC_CHARS].removeprefix("что я "), maxsplit=1)[0]
    named = set(tokens(topic)) - known.nothing
    quote = scene.message.text[scene.sentence.start + match.start() : scene.sentence.start + match.end()].strip()
    for fact in facts:
        words = set(tokens(f"{fact.value} {fact.statement} {fact.slot.replace('.', ' ')} {fact.about}"))
        if named & words:
            yield replace(fact, op="retract", statement="", quote=quote, seq=scene.message.seq, n=scene.message.n)


def answered(scene: Scene, question: str) -> Iterator[Candidate]:
    """What the beginning of the user's message answers to the assistant's question."""
    known = _commands()
    for asked, answer, ask in known.asks:
        match = answer.search(scene.sentence.text) if asked.search(question) else None
        if match is None or "kept_out" in senses(scene.reaches, match.start("v")):
            continue
        russian = re.search("[а-яё]", match["v"].casefold()) is not None
        for value, seen in shape(ask["as"], match["v"], scene.today):
            yield Candidate(
                slot=ask["slot"],
                value=value,
                statement=ask["say_ru" if russian else "say"].format(v=seen),
                quote=engine.quoted(scene, match.start("v"), match.end("v")),
                seq=scene.message.seq,
                n=scene.message.n,
            )
        return


def affirmed(scene: Scene, question: str) -> Iterator[Candidate]:
    """What a plain yes says after a closed question about the user: the question turned into the user's own
    sentence."""
    known = _commands()
    yes = known.yes.search(scene.sentence.text)
    if yes is None or known.alternative.search(question) or not question.rstrip().endswith("?"):
        return
    said = question.rstrip("? ")
    for pattern, plain in known.swap:
        said = pattern.sub(plain, said)
    if said == question.rstrip("? "):
        return
    quote = yes.group().strip(" \t\n,.!")
    for _, candidate, _ in engine.found(replace(scene, sentence=Sentence(said + ".", 0), mentions=()), whole=False):
        if candidate.about == USER and candidate.slot in known.yes_slots and candidate.op == "assert":
            yield replace(candidate, quote=quote)


def affirms(text: str) -> bool:
    """Whether the text begins with a plain yes."""
    return _commands().yes.search(text) is not None


def corrected(scene: Scene, facts: Sequence[Candidate]) -> Candidate | None:
    """A code of the same shape as the current order number, with other characters, takes its place."""
    said = [fact for fact in facts if fact.slot == "order.number" and fact.n == scene.message.n]
    if any(fact.value in scene.sentence.text for fact in said):
        return None
    order = next((fact for fact in reversed(facts) if fact.slot == "order.number"), None)
    if order is None:
        return None
    shape_of = _skeleton(order.value)
    for match in re.finditer(r"(?<![\w-])[\w]+(?:[-/][\w]+)*(?![\w-])", scene.sentence.text):
        if _NOT.search(scene.sentence.text, 0, match.start()):
            continue
        if match.group() != order.value and _skeleton(match.group()) == shape_of:
            quote = engine.quoted(scene, match.start(), match.end())
            statement = order.statement.replace(order.value, match.group())
            return replace(
                order, value=match.group(), statement=statement, quote=quote, seq=scene.message.seq, n=scene.message.n
            )
    return None


def _skeleton(code: str) -> str:
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "0", code)) if sum(map(str.isdigit, code)) > 2 else ""
