"""What the user tells the memory itself ("remember that ...", "forget ..."), and what short answers and corrections
mean.

* "Remember that S": S is stored as a note when no rule knows what it says.
* "Forget X": every fact whose words X names is taken back; a "forget" that names nothing takes back nothing.
* An answer that is nothing but a value ("in Leeds") counts only right after the assistant asked for that value; a
  bare "yes" only after a closed question about the user, in a few slots. The assistant's own words are otherwise
  never read.
* "Forget everything you know about me" takes back all that is known of the user.
* "Correction: Hull", "No, Hull", "*Hull", "I meant Hull, not Leeds": the value named as the old one, or else the only
  value of its kind that the user's message just before taught, gives way to the new one.
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
from nitka.layers.facts.rules import engine, notes, russian
from nitka.layers.facts.rules.engine import Scene
from nitka.layers.facts.rules.macros import compiled
from nitka.layers.facts.rules.modality import senses
from nitka.layers.facts.rules.shape import shape
from nitka.layers.facts.rules.text import Sentence
from nitka.layers.facts.slots import is_many, within

_TIMED = re.compile(
    r"(?i)\b\d{1,2}[:.]\d\d\b|\bat \d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\bevery\b|(?<!\w)в \d{1,2}(?!\d)"
    r"|кажд|по (?:утрам|вечерам|понед|вторн|сред|четв|пятн|субб|воскр)|утра|вечера"
)
_TOPIC_CHARS = 80
_JUST_BEFORE = 2  # rows between the user's messages that follow each other, the assistant's counted
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
    forget_all: tuple[re.Pattern[str], ...]
    topics: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]
    amend: tuple[re.Pattern[str], ...]
    amend_weak: tuple[re.Pattern[str], ...]


@cache
def _commands() -> _Commands:
    data = tomllib.loads(files(__package__).joinpath("commands.toml").read_text("utf-8"))

    def all_of(name: str) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(pattern, re.I | re.S) for pattern in data[name])

    def amending(name: str) -> tuple[re.Pattern[str], ...]:
        value = f"(?:{data['amend']['value']})"
        return tuple(re.compile(pattern.replace("{V}", value), re.I) for pattern in data["amend"][name])

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
        forget_all=all_of("forget_all"),
        topics=tuple((re.compile(rf"(?<!\w)(?:{word})", re.I), tuple(slots)) for word, slots in data["topics"].items()),
        amend=amending("said"),
        amend_weak=amending("weak"),
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
    if any(pattern.search(text) for pattern in known.forget_all):
        mine = (fact for fact in facts if fact.about == USER and fact.op == "assert")
        yield from (_retracted(fact, text.strip(), scene) for fact in mine)
        return
    match = next((m for pattern in known.forget if (m := pattern.search(text))), None)
    if match is None or any(pattern.search(text) for pattern in known.not_forget):
        return
    topic = re.split(r"[,;:.!?]", match["rest"][:_TOPIC_CHARS].removeprefix("что я "), maxsplit=1)[0]
    named = set(tokens(topic)) - known.nothing
    quote = scene.message.text[scene.sentence.start + match.start() : scene.sentence.start + match.end()].strip()
    meant = [slot for words, slots in known.topics if words.search(topic) for slot in slots]
    own = _OWN.search(match["rest"]) or re.match(r"(?i)(?:про |о |об )?мо", match["rest"])
    for fact in facts:
        words = set(tokens(f"{fact.value} {fact.statement} {fact.slot.replace('.', ' ')} {fact.about}"))
        called = own and fact.about == USER and any(within(fact.slot, slot) for slot in meant)
        if named & words or called:
            yield _retracted(fact, quote, scene)


def _retracted(fact: Candidate, quote: str, scene: Scene) -> Candidate:
    return replace(fact, op="retract", statement="", quote=quote, seq=scene.message.seq, n=scene.message.n)


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


def corrected(scene: Scene, facts: Sequence[Candidate], *, asked: bool = False) -> list[Candidate]:
    """What takes the place of a value just said; also a code of the same shape as the current order number. `asked`:
    the assistant has just asked something, so that a bare "no, Hull" may be the answer."""
    code = _recoded(scene, facts)
    return _amended(scene, facts, asked=asked) or ([code] if code else [])


def _amended(scene: Scene, facts: Sequence[Candidate], *, asked: bool) -> list[Candidate]:
    known = _commands()
    patterns = known.amend if asked else (*known.amend, *known.amend_weak)
    match = next((m for pattern in patterns if (m := pattern.search(scene.sentence.text))), None)
    if match is None or scene.sentence.asks or any(fact.n == scene.message.n for fact in facts):
        return []
    value = russian.nominative(match["v"].strip(" .,"), prefer=("Geox",))
    fitting = [fact for fact in _meant(match, scene, facts) if _alike(fact.value, value) and fact.value != value]
    if len(fitting) != 1:
        return []
    old, quote = fitting[0], engine.quoted(scene, match.start("v"), match.end("v"))
    statement = old.statement.replace(old.value, value)
    new = replace(old, value=value, statement=statement, quote=quote, seq=scene.message.seq, n=scene.message.n)
    return [_retracted(old, quote, scene), new] if is_many(old.slot) else [new]


def _meant(match: re.Match[str], scene: Scene, facts: Sequence[Candidate]) -> list[Candidate]:
    """The facts that a correction may speak of: those with the old value it names, or those just told."""
    told = [fact for fact in facts if fact.op == "assert" and not within(fact.slot, "pet")]
    old = match.groupdict().get("old")
    if old:
        names = set(tokens(old)) | set(tokens(russian.nominative(old, prefer=("Geox",))))
        return [fact for fact in told if names & set(tokens(fact.value))]
    last = max((fact.n for fact in facts), default=-1)
    return [fact for fact in told if fact.n == last and scene.message.n - last <= _JUST_BEFORE]


def _alike(one: str, two: str) -> bool:
    """Whether two values are of one kind: both numbers, or both names."""
    return (one[0].isdigit() and two[0].isdigit()) or (one[0].isupper() and two[0].isupper())


def _recoded(scene: Scene, facts: Sequence[Candidate]) -> Candidate | None:
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
