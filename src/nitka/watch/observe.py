"""Observations: which flags the clauses of a message show.

Each clause becomes a set of keys: its concepts, its grammar, `act:concept` for what somebody is to do, and features
that begin with `#`. A pattern is met when one key of each of its groups is there and none of those it forbids.
Nothing that is quoted or retold is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nitka.watch.acts import AFTER, FIRST, act_of
from nitka.watch.ages import MINOR, Age, ages
from nitka.watch.clauses import Clause, Reading, Sentence
from nitka.watch.memory import Antecedent
from nitka.watch.strength import settled
from nitka.watch.tokens import MARK, NUMBER, WORD
from nitka.watch.types import MARKS_OF_STRENGTH, NORMAL, THIN, THIN_MARK, Pattern, Sighting

Keys = dict[str, tuple[int, int]]  # key -> its tokens
REQUESTS = frozenset({"ask", "want", "tell", "joint", "invite"})
_AFTER_SUM = frozenset({"FILLER", "AND", "THAT", "IF", "PLEASE", "TO", "UNTIL", "NOT", "I", "YOU", "ME"})
_ME, _READER = frozenset({"I", "MY", "ME"}), frozenset({"YOU", "YOUR"})
_OF_READER = frozenset({"ask", "tell", "q2", "do2", "did2", "invite"})
_TOLD = frozenset({"#reader", "OR"})  # what is told of these without a full stop may be a question
_LEADING = frozenset({"FILLER", "AND", "PLEASE", "GREETING", "YOUR"})
_WISHES = ("NEED", "WANT", "GIVEME", "LET", "LETS")
_NAME = 3  # words of a name or a rank between an office and the pause after it
_OF_SPEAKER = frozenset({"do1", "did1", "offer", "refuse"})
_THIRD = frozenset({"HE", "SHE", "THEY", "HIS"})


@dataclass(frozen=True, slots=True)
class Index:
    """Patterns by one key of the group that is rarest in talk."""

    by_key: Mapping[str, tuple[Pattern, ...]]
    wide: Mapping[str, tuple[Pattern, ...]]
    vetoes: Mapping[str, frozenset[str]]
    persons: frozenset[str]
    things: frozenset[str]
    after: frozenset[str] = frozenset()  # flags that some pattern wants the other side to have just shown
    usual: Mapping[str, int] = field(default_factory=dict)  # strength of a flag's idioms that state none
    hushes: Mapping[str, frozenset[str]] = field(default_factory=dict)  # keys of a clause in which no idiom counts
    doings: frozenset[str] = frozenset()  # flags of what the acting side does


def index(
    patterns: Iterable[Pattern],
    vetoes: Mapping[str, Iterable[str]],
    parents: Mapping[str, Sequence[str]],
    usual: Mapping[str, int],
    hushes: Mapping[str, Iterable[str]],
    doings: Iterable[str] = (),
) -> Index:
    """Index the patterns. Persons and things are the concepts under `person` and `topic`."""
    clause: dict[str, list[Pattern]] = {}
    wide: dict[str, list[Pattern]] = {}
    after: set[str] = set()
    for pattern in patterns:
        after.update(k.partition(":")[2] for k in _all_keys(pattern) if k.startswith(f"{AFTER}:"))
        for key in min(pattern.groups, key=_commonness):
            (wide if pattern.wide else clause).setdefault(key, []).append(pattern)
    return Index(
        {k: tuple(v) for k, v in clause.items()},
        {k: tuple(v) for k, v in wide.items()},
        {flag: frozenset(keys) for flag, keys in vetoes.items()},
        frozenset(c for c, above in parents.items() if "person" in above),
        frozenset(c for c, above in parents.items() if "topic" in above),
        frozenset(after),
        usual,
        {flag: frozenset(keys) for flag, keys in hushes.items()},
        frozenset(doings),
    )


def _all_keys(pattern: Pattern) -> Iterator[str]:
    for group in (*pattern.groups, pattern.never):
        yield from group


def _commonness(group: tuple[str, ...]) -> tuple[int, int]:
    grammar = sum(1 for key in group if key[0] == "#" or key.isupper())
    return (grammar, len(group))


@dataclass(slots=True)
class Mentions:
    """The person and the thing last spoken of, while a message is read."""

    speaker: str
    person: Antecedent | None = None
    thing: Antecedent | None = None

    def concepts(self) -> tuple[str, str]:
        """What person and thing are, or empty."""
        return self.person.concept if self.person else "", self.thing.concept if self.thing else ""

    def last(self) -> tuple[Antecedent, ...]:
        return tuple(a for a in (self.person, self.thing) if a is not None)


def observe(
    reading: Reading,
    whole: Sequence[Sentence],
    patterns: Index,
    mentions: Mentions,
    *,
    after: Iterable[str] = (),
    matters: Callable[[Sentence, Mentions], bool] | None = None,
) -> tuple[list[Sighting], tuple[Antecedent, ...]]:
    """The sightings of a message in order, and the antecedents after it. `after` names flags that the other side has
    just shown: what an answer of one word means depends on them. `matters` tells which sentences to look at.
    """
    answered = [f"{AFTER}:{flag}" for flag in after]
    found: list[Sighting] = []
    everything: set[str] = set()
    for number, sentence in enumerate(whole):
        if matters is not None and not matters(sentence, mentions):
            continue
        wide: Keys = {}
        before = ""
        for clause in sentence.clauses:
            if clause.retold:
                before = ""
                continue
            keys, before = clause_keys(reading, clause, before)
            for key in answered:
                keys[key] = (clause.start, clause.start + 1)
            _resolve(keys, reading, clause, mentions)
            _remember(keys, patterns, mentions)
            found.extend(_matches(keys, patterns.by_key, reading, number))
            found.extend(_idioms(reading, clause, number, keys, patterns))
            for key, place in keys.items():
                wide.setdefault(key, place)
        if patterns.wide and len(sentence.clauses) > 0:
            found.extend(_matches(wide, patterns.wide, reading, number))
        everything.update(wide)
    vetoes = patterns.vetoes
    found = [s for s in found if s.flag not in vetoes or vetoes[s.flag].isdisjoint(everything)]
    found = settled(found, patterns.doings, patterns.usual)
    found.sort(key=lambda s: (s.order, s.flag))
    return found, mentions.last()


def clause_keys(reading: Reading, clause: Clause, before: str) -> tuple[Keys, str]:
    """The keys of one clause and the act of its last verb."""
    keys: Keys = {}
    at = reading.at
    for place in range(clause.start, clause.end):
        if at[place]:
            before = _token_keys(keys, reading, clause, place, before)
    _head(keys, reading, clause)
    _features(keys, reading, clause)
    return keys, before


def _head(keys: Keys, reading: Reading, clause: Clause) -> None:
    """What a clause opens with, if a pause follows within three words: "Fraud department, Anna speaking"."""
    place = clause.start
    while place < clause.end and (reading.tokens[place].kind == MARK or reading.grammar[place] & _LEADING):
        place += 1
    if place == clause.end:
        return
    for concept, form, width in reading.at[place]:
        end = place + width
        if not form and concept.islower() and _pause_near(reading, clause, end):
            keys.setdefault(f"{FIRST}:{concept}", (place, end))


def _pause_near(reading: Reading, clause: Clause, place: int) -> bool:
    end = min(place + _NAME + 1, len(reading.tokens))
    near = range(place, end)
    stop = next((i for i in near if reading.tokens[i].kind == MARK), -1 if end < len(reading.tokens) else end)
    return stop >= 0 and not any(reading.verb[i] for i in range(place, stop))


def _token_keys(keys: Keys, reading: Reading, clause: Clause, place: int, before: str) -> str:
    """Add the keys of one token; returns its act if it has one, else `before`."""
    acts: dict[str, str] = {}
    for concept, form, width in reading.at[place]:
        span = (place, place + width)
        if concept not in keys:
            keys[concept] = span
        if form and form != "x":
            act = acts.get(form)
            if act is None:
                act = acts[form] = act_of(reading, clause, place, form, before)
            keys.setdefault(f"{act}:{concept}", span)
            if act in REQUESTS and clause.subordinate != "IF":
                keys.setdefault("#req", span)
    return next((act for act in acts.values() if act != "none"), before)


def _features(keys: Keys, reading: Reading, clause: Clause) -> None:
    here = (clause.start, clause.start + 1)
    if clause.question:
        keys["#question"] = here
    if clause.subordinate == "IF":
        keys["#if"] = here
    if "NONEED" in keys or ("NOT" in keys and not _answer_only(reading, clause)):
        keys["#neg"] = keys.get("NOT", here)
    if clause.brief:
        keys["#brief"] = here
    _persons(keys)
    if clause.question or (clause.open and not _TOLD.isdisjoint(keys) and "#self" not in keys and "#if" not in keys):
        keys["#maybe"] = here
    for place in reading.links_in(clause.start, clause.end):
        keys["#link"] = (place, place + 1)
    _nominal(keys, reading, clause)
    _numbers(keys, reading, clause)


def _answer_only(reading: Reading, clause: Clause) -> bool:
    """Whether the only negation is an answer before a pause: "no, I have two others who want it"."""
    places = [i for i in range(clause.start, clause.end) if "NOT" in reading.grammar[i]]
    first = next((i for i in range(clause.start, clause.end) if reading.tokens[i].kind != MARK), -1)
    return places == [first] and first + 1 < clause.end and reading.tokens[first + 1].kind == MARK


def _persons(keys: Keys) -> None:
    """Who is spoken of: by a pronoun, or by what a verb says of its doer."""
    for name, words in (("#me", _ME), ("#reader", _READER), ("#third", _THIRD)):
        if not words.isdisjoint(keys):
            keys[name] = next(keys[w] for w in sorted(words) if w in keys)
    done = [(key.partition(":")[0], place) for key, place in keys.items() if ":" in key]
    for name, acts in (("#reader", _OF_READER), ("#self", _OF_SPEAKER)) if done else ():
        for act, place in done:
            if act in acts:
                keys.setdefault(name, place)
                break
    if "#me" in keys:
        keys["#self"] = keys["#me"]


def _nominal(keys: Keys, reading: Reading, clause: Clause) -> None:
    """A wish without a verb of doing: "need your code", "your code please", «давай фото», «можно фото?», "code?"."""
    if "#neg" in keys or "#if" in keys:
        return
    wishes = [k for k in _WISHES if k in keys]
    if clause.question and "CAN" in keys:
        wishes.append("CAN")
    if wishes and "HE" not in keys and "THEY" not in keys and "SHE" not in keys:
        keys.setdefault("#req", keys[wishes[0]])
        return
    verbal = True in reading.verb[clause.start : clause.end]
    if not verbal and ("PLEASE" in keys or clause.question):
        keys.setdefault("#req", (clause.start, clause.start + 1))


def _numbers(keys: Keys, reading: Reading, clause: Clause) -> None:
    places = reading.numbers_in(clause.start, clause.end)
    if not places:
        return
    keys["#number"] = (clause.start, clause.end)
    for age in ages(reading, clause):
        keys[_age_key(age)] = (age.start, age.end)
    if any(_sum(reading, clause, p) for p in places):
        keys["#sum"] = keys["#number"]
    here = (reading.tokens[p].form for p in places)
    if any(4 <= len(form) <= 8 and form.isdigit() for form in here):
        keys["#digits"] = keys["#number"]


def _sum(reading: Reading, clause: Clause, place: int) -> bool:
    """Whether a bare number of 20 or more may be a sum of money: no unit and no noun follows it."""
    token, end = reading.tokens[place], place + 1
    if token.kind != NUMBER or not token.form.replace(",", "").replace(".", "").isdigit() or len(token.form) < 2:
        return False
    if len(token.form) == 2 and token.form < "20":
        return False
    if end >= clause.end or reading.tokens[end].kind == MARK:
        return end >= clause.end or reading.tokens[end].form not in ":%/"
    after = reading.grammar[end]
    return not after.isdisjoint(_AFTER_SUM) or any(hit.concept == "money" for hit in reading.at[end])


def _age_key(age: Age) -> str:
    if age.whose == "YOU":
        return "#age_of_reader"
    return f"#{'minor' if age.value in MINOR else 'adult'}_{'self' if age.whose else 'number'}"


# Pronouns and objects left out.


def _resolve(keys: Keys, reading: Reading, clause: Clause, mentions: Mentions) -> None:
    """Add the concept that a pronoun, or an object left out, stands for."""
    person, thing = mentions.person, mentions.thing
    if person and "person" not in keys and person.owner != (mentions.speaker or "?"):
        pronoun = "SHE" if person.form == "f" else "HE" if person.form == "m" else "THEY"
        place = keys.get(pronoun) or (keys.get("THEY") if person.form else keys.get("SHE") or keys.get("HE"))
        if place:
            keys.setdefault(person.concept, place)
            keys.setdefault("#named", place)
    if thing and "topic" not in keys and "handover" in keys:
        if "IT" in keys and thing.ago <= 3:
            keys.setdefault(thing.concept, keys["IT"])
        elif thing.ago <= 2 and _no_object(reading, clause, keys["handover"][1]):
            keys.setdefault(thing.concept, keys["handover"])


def _no_object(reading: Reading, clause: Clause, start: int) -> bool:
    """Whether nothing after the verb could be its object."""
    for place in range(start, clause.end):
        token = reading.tokens[place]
        if token.kind == NUMBER or (token.kind == WORD and not reading.grammar[place]):
            return False
    return True


def _remember(keys: Keys, patterns: Index, mentions: Mentions) -> None:
    for concept in keys:
        if concept in patterns.persons and "#named" not in keys:
            form = "f" if "female" in keys else "m" if "male" in keys else ""
            mentions.person = Antecedent("person", concept, form, _owner(keys, mentions.speaker))
        elif concept in patterns.things:
            mentions.thing = Antecedent("thing", concept, "", _owner(keys, mentions.speaker))
    if "#sum" in keys and "money" in patterns.things and "topic" not in keys:
        mentions.thing = Antecedent("thing", "money", "", _owner(keys, mentions.speaker))


def _owner(keys: Keys, speaker: str) -> str:
    if not speaker:
        return ""
    return "~" + speaker if "YOUR" in keys else speaker if "MY" in keys else ""


# Matching.


def _matches(
    keys: Keys, patterns: Mapping[str, tuple[Pattern, ...]], reading: Reading, sentence: int
) -> Iterator[Sighting]:
    for key in keys:
        for pattern in patterns.get(key, ()):
            place = met(pattern, keys)
            if place:
                yield _sighting(pattern.flag, place, reading, sentence, pattern.strength)


def met(pattern: Pattern, keys: Keys) -> tuple[int, int] | None:
    start, end = 1 << 30, 0
    for group in pattern.groups:
        for key in group:
            place = keys.get(key)
            if place is not None:
                start, end = min(start, place[0]), max(end, place[1])
                break
        else:
            return None
    return None if any(key in keys for key in pattern.never) else (start, end)


def _sighting(flag: str, place: tuple[int, int], reading: Reading, sentence: int, strength: int) -> Sighting:
    tokens = reading.tokens
    return Sighting(flag, tokens[place[0]].start, tokens[place[1] - 1].end, sentence, place[0], strength)


def idiom(concept: str, usual: Mapping[str, int]) -> tuple[str, int]:
    """The flag of `!flag`, and how strongly the phrase shows it: `!flag?` weakly, `!flag!` strongly."""
    if concept[-1] == THIN_MARK:
        return concept[1:-1], THIN if usual.get(concept[1:-1], NORMAL) == NORMAL else usual[concept[1:-1]]
    mark = MARKS_OF_STRENGTH.get(concept[-1], 0)
    flag = concept[1:-1] if mark else concept[1:]
    return flag, mark or usual.get(flag, NORMAL)


def _idioms(reading: Reading, clause: Clause, number: int, keys: Keys, patterns: Index) -> Iterator[Sighting]:
    """Flags said outright by a phrase, unless denied just before it, or something in the clause takes it back."""
    if clause.subordinate == "IF":
        return
    for place in range(clause.start, clause.end):
        for hit in reading.at[place]:
            if hit.concept[0] == "!" and not _denied(reading, clause.start, place):
                flag, strength = idiom(hit.concept, patterns.usual)
                if not any(key in keys for key in patterns.hushes.get(flag, ())):
                    yield _sighting(flag, (place, place + hit.width), reading, number, strength)


def _denied(reading: Reading, first: int, place: int) -> bool:
    for i in range(place - 1, max(first, place - 3) - 1, -1):
        if reading.tokens[i].kind == MARK:
            return False
        if "NOT" in reading.grammar[i] or "NONEED" in reading.grammar[i]:
            return True
    return False
