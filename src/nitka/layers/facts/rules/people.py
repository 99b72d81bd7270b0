"""Who is who: people and animals that the user has named, and whom a pronoun means.

A mention is a relation of the user's with or without a name ("my brother Lyle", "внуку"), or a name that is known
already. Relations of somebody else ("her husband", "my sister's twins") are not the user's and make no mention.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from nitka.layers.facts.canon import name_key
from nitka.layers.facts.model import USER, Fact
from nitka.layers.facts.numbers import pattern as number_pattern
from nitka.layers.facts.rules import russian
from nitka.layers.facts.rules.macros import expanded
from nitka.layers.facts.rules.strangers import strangers
from nitka.layers.facts.rules.text import Sentence

_RU_NAME = (
    expanded("(?-i:«?{NO_NAME}", "ru") + r"[А-ЯЁ][а-яё]+(?:-[А-ЯЁ][а-яё]+)?"
    r"(?: [А-ЯЁ][а-яё]+(?:вич|вича|вичу|вичем|вна|вны|вне|вной|вну|чна|чны|чне|чной))?»?)"
)
_NAME = expanded("{NAME}", "en")


@dataclass(frozen=True, slots=True)
class Person:
    """A person or an animal. `word` is the relation as said ("brother", "внук"); `slot` where its name goes, "" for a
    bare name."""

    name: str  # "" while unknown
    word: str
    slot: str
    gender: str = ""
    kind: str = ""  # of an animal: what it is

    @property
    def is_pet(self) -> bool:
        return self.slot.startswith("pet")

    @property
    def label(self) -> str:
        return self.name or self.word


@dataclass(frozen=True, slots=True)
class Mention:
    """A person at a place in a sentence. `subject` says whether the form allows it to be one (Russian: the
    nominative)."""

    start: int
    end: int
    person: Person
    subject: bool = True
    fresh: bool = False  # a name was given here


def cast_of(facts: Iterable[Fact]) -> tuple[Person, ...]:
    """The people known from the facts."""
    people = []
    for fact in facts:
        head, *rest = fact.slot.split(".")
        if fact.live and fact.about == USER and head in ("family", "person", "pet") and len(rest) == (head != "pet"):
            word = rest[-1] if rest else ""
            people.append(Person(fact.value, word, fact.slot, _gender(word, fact.value)))
    return tuple(people)


def joined(cast: Sequence[Person], mentions: Sequence[Mention]) -> tuple[Person, ...]:
    """The cast with those just mentioned at its end, the last one last."""
    out = list(cast)
    for mention in mentions:
        out = [person for person in out if name_key(person.label) != name_key(mention.person.label)]
        out.append(mention.person)
    return tuple(out)


def mentions(sentence: Sentence, cast: Sequence[Person], *, grouped: bool = False) -> tuple[Mention, ...]:
    """Everybody mentioned in the sentence, in order; of overlapping readings the longest.

    `grouped`: children have just been spoken of, so that "Odette is nine" names one of them.
    """
    text = sentence.text
    together = _several(text)
    found = [*together, *(mention for reader in (_related, _animals, _bare) for mention in reader(text))]
    found += _listed(text, cast) if grouped else []
    found += _known(text, cast)
    found = [mention for mention in found if not _of_another(mention, found, text)]
    kept: list[Mention] = []
    several = set(map(id, together))
    for mention in sorted(found, key=lambda m: (id(m) not in several, -(m.end - m.start), m.start)):
        if all(mention.end <= other.start or mention.start >= other.end for other in kept):
            kept.append(_recognised(mention, cast))
    return tuple(sorted(kept, key=lambda m: m.start))


def _of_another(mention: Mention, found: Sequence[Mention], text: str) -> bool:
    """Whether this is somebody's somebody ("муж моей сестры"): neither of the two is a relation of the user's."""
    for other in found:
        first, second = sorted((mention, other), key=lambda m: m.start)
        between = text[first.end : second.start] if first.end < second.start else "-"
        if between.isspace() and not second.subject and not first.person.name and first.person.slot[:3] != "pet":
            return True
    return False


def meant(pronoun: str, cast: Sequence[Person], *, near: bool = False) -> Person | None:
    """Whom a pronoun of the third person means: the one last mentioned whom it fits; one without a name only when
    `near`."""
    word = pronoun.casefold()
    if word in ("they", "они"):
        return None  # of several nothing single is said
    wanted = "m" if word in _HE else "f" if word in _SHE else ""
    fits = [person for person in reversed(cast) if not wanted or person.gender in ("", wanted)]
    return next((person for person in fits if person.name or near), next(iter(fits), None))


def is_pronoun(word: str) -> bool:
    """Whether the word stands for somebody named before."""
    return word.casefold() in _HE | _SHE | {"they", "who", "они"}


def group(text: str) -> bool:
    """Whether the text speaks of several children, so that a bare name may be one of them."""
    return _table().group.search(text) is not None


_HE = frozenset(("he", "him", "his", "он", "ему", "него", "его", "нему"))
_SHE = frozenset(("she", "her", "она", "ей", "неё", "нее", "её", "ее", "ней"))


@dataclass(frozen=True)
class _Table:
    relations: tuple[tuple[re.Pattern[str], str, str, str], ...]  # forms, word, slot, gender
    nominative: re.Pattern[str]
    group: re.Pattern[str]
    pet: re.Pattern[str]
    related: tuple[re.Pattern[str], ...]
    bare: tuple[re.Pattern[str], ...]
    animals: tuple[re.Pattern[str], ...]
    listed_en: re.Pattern[str]
    listed_ru: re.Pattern[str]
    several: tuple[tuple[re.Pattern[str], str, str], ...]


@cache
def _table() -> _Table:
    data = tomllib.loads(files(__package__).joinpath("relations.toml").read_text("utf-8"))
    en, ru = _forms(data["en"]), _forms(data["ru"])
    nominative = "|".join(entry["nom"] for entry in data["ru"].values())
    rows = [
        (re.compile(re.sub(r"\(\?=[^)]*\)", "", entry["forms"]), re.I), word, entry["slot"], entry["gender"])
        for part in (data["en"], data["ru"])
        for word, entry in part.items()
    ]
    return _Table(
        relations=tuple(rows),
        nominative=re.compile(nominative, re.I),
        group=re.compile(rf"(?i)\b(?:{data['groups']['en']}|{data['groups']['ru']})\b"),
        pet=re.compile(rf"(?i)(?:{data['pets']['en']}|{data['pets']['ru']})"),
        related=tuple(re.compile(pattern, re.I) for pattern in _related_patterns(en, ru)),
        bare=tuple(re.compile(pattern, re.I) for pattern in _bare_patterns(en, ru)),
        listed_en=re.compile(
            rf"(?i)(?P<name>{_NAME})(?: is|['’]s| just turned| turned|,| \()(?: only| already)? ?(?:aged )?"
            rf"(?:{number_pattern('en')})(?!\w)"
        ),
        listed_ru=re.compile(rf"(?i)(?P<name>{_RU_NAME})(?:,| \(|е|у)? (?:{number_pattern('ru')})(?: лет| год\w*)"),
        several=tuple(
            (re.compile(_several_pattern(words, name), re.I), word, slot)
            for words, name, word, slot in (
                (data["groups"]["en"], _NAME, "child", "family.child"),
                (data["groups"]["ru"], _RU_NAME, "ребёнок", "family.child"),
                (data["groups"]["pets_en"], _NAME, "pet", "pet"),
                (data["groups"]["sisters_en"], _NAME, "sister", "family.sister"),
                (data["groups"]["brothers_en"], _NAME, "brother", "family.brother"),
                (data["groups"]["sisters_ru"], _RU_NAME, "сестра", "family.sister"),
                (data["groups"]["brothers_ru"], _RU_NAME, "брат", "family.brother"),
                (data["groups"]["pets_ru"], _RU_NAME, "питомец", "pet"),
            )
        ),
        animals=tuple(
            re.compile(pattern, re.I) for pattern in _animal_patterns(data["pets"]["en"], data["pets"]["ru"])
        ),
    )


def _forms(part: dict[str, Any]) -> str:
    return "(?P<rel>" + "|".join(entry["forms"] for entry in part.values()) + ")"


def _related_patterns(en: str, ru: str) -> list[str]:
    return [
        rf"(?<![\w’'-])(?:(?P<own>my|our|his|her|their|your|the|a|an)\s+(?:(?!{en[8:-1]})[\w-]+\s+)?)?{en}"
        rf"(?:,? (?:is |who['’]?s )?(?:called|named) |['’]s name(?: is|['’]s) |,? )(?P<name>{_NAME})",
        rf"(?P<name>{_NAME})(?:, | is |['’]s )(?P<own>my|our)(?: [\w-]+)?? {en}\b(?!['’]s)",
        rf"\b(?P<own>my|our)(?: [\w-]+)? {en}(?: is|['’]s) (?P<name>{_NAME})(?=\s*(?:[,.!;)]|$))",
        rf"(?<!\w)(?:(?P<own>мо[йяеюи]\w?\w?|наш\w?\w?|тво\w+|ваш\w*|его|её|ее|их)\s+)?{ru}(?: (?:мо[йяеюи]|наш\w?))?"
        rf"(?:,? (?:зовут|звать|по имени) |[ ,]{{1,2}})(?P<name>{_RU_NAME})",
        rf"(?<!\w)(?:зовут|звать) {ru} (?P<name>{_RU_NAME})",
        rf"(?P<name>{_RU_NAME}), (?P<own>мо[йяеюи]\w?|наш\w?\w?) {ru}\b",
        rf"(?<!\w){ru}\b[^.!?]{{0,60}}?\b(?:она|он|е[её]|его)(?: у меня| у нас)?(?: зовут)? (?P<name>{_RU_NAME})",
        rf"(?<!\w)(?P<rel>(?:старш|младш|средн)\w+),?(?: -| —)? (?P<name>{_RU_NAME})",
    ]


def _bare_patterns(en: str, ru: str) -> list[str]:
    return [
        rf"(?<![\w’'])(?P<own>my|our)\s+(?:(?!{en[8:-1]})[\w-]+\s+)?{en}\b(?!['’]s \w|-)",
        rf"(?<!\w)(?:(?P<own>мо[йяеюи]\w?\w?|наш\w?\w?|тво\w+|ваш\w*|его|её|ее|их)\s+)?{ru}(?!\w)(?!-)",
    ]


def _animal_patterns(en: str, ru: str) -> list[str]:
    one, two = rf"(?P<kind>{en})", rf"(?P<kind>{ru})"
    return [
        rf"(?<![\w’'])(?:(?P<own>my|our|his|her|their|your|the|a|an)\s+(?:[\w-]+\s+){{0,2}}?)?{one}"
        rf"(?:,? (?:who['’]?s |is )?(?:called|named) |['’]s name(?: is|['’]s) |, |,? (?:is )?)(?P<name>{_NAME})",
        rf"(?P<name>{_NAME}),? (?:is )?(?P<own>my|our)(?: [\w-]+){{0,2}}? {one}\b",
        rf"(?P<name>{_NAME})(?: is|['’]s) an? (?:[\w-]+ ){{0,2}}?{one}\b",
        rf"\b(?P<own>my|our) (?:[\w-]+ )?{one}\b(?!['’]s \w)",
        rf"(?<!\w)(?:(?P<own>тво\w+|ваш\w*|его|её|ее|их|сосед\w*)\s+)?{two}(?!\w)(?: {two.replace('kind', 'more')})?"
        rf"(?:,? (?:зовут|звать|по кличке|кличка|по имени|имя|назвал[аи]?) |[ ,—-]{{1,3}})(?P<name>{_RU_NAME})"
        rf"(?:[ ,(—-]{{1,3}}(?P<last>{ru})(?!\w))?",
        rf"(?P<name>{_RU_NAME})(?: —| -)(?: это)? {two}(?!\w)",
        rf"(?<!\w){two}(?!\w)[^.!?]{{0,30}}?\b(?:назвал[аи]?|зовут|кличка|по кличке) (?P<name>{_RU_NAME})",
    ]


def _related(text: str) -> list[Mention]:
    return [mention for pattern in _table().related for m in pattern.finditer(text) if (mention := _relative(m, text))]


def _bare(text: str) -> list[Mention]:
    return [mention for pattern in _table().bare for m in pattern.finditer(text) if (mention := _relative(m, text))]


_CALLED = re.compile(r"(?i)зовут|звать|назвал|кличк|по имени|имя")
_ANOTHERS = re.compile(
    r"(?i)['’]s (?:\w+ )?$|\b(?:he|she|they) (?:has|have|had|bought|got|adopted|owns?|keeps?) (?:[\w-]+ ){0,3}$"
    r"|\b(?:my|our) (?!(?:wife|husband|partner|son|daughter|kids?|child|children|family|boys?|girls?)\b)[\w-]+"
    r"(?: [\w-]+)?(?: has| had| got| bought| adopted| owns| keeps) (?:[\w-]+ ){0,3}$"
    r"|\bof mine has (?:[\w-]+ ){0,3}$"
    r"|\b(?:babysit\w*|(?:pet|dog|cat)-?sit\w*|look\w* after|walk\w*|mind\w*|met|saw|know|knew"
    r"|feed\w*) (?:an? |the )?(?:[\w-]+ )?$"
    r"|(?<!\w)у (?!меня|нас)[а-яё]+ (?:(?!меня|нас|есть|живёт|был)[а-яё]+ ){0,2}(?:есть |живёт |был[аи]? )?$"
    r"|(?<!\w)(?:сосед|чуж|мамин|папин|бабушкин|дедушкин|сестрин|подругин|хозяйск)[а-яё]* (?:[а-яё]+ )?$"
    r"|(?<!\w)(?:(?:сижу|посижу|сидим) с|присматрива\w+ за|встретил[аи]?|видел[аи]?) (?:[а-яё]+ )?$"
)
_FOREIGN = re.compile(r"(?i)his|her|their|your|тво\w+|ваш\w*|его|её|ее|их|сосед\w*")


def _relative(match: re.Match[str], text: str) -> Mention | None:
    groups = match.groupdict()
    if (groups.get("own") and _FOREIGN.fullmatch(groups["own"])) or re.search(r"['’]s $", text[: match.start()]):
        return None
    rel = groups["rel"]
    word, slot, gender = _relation(rel)
    cyrillic = rel[0] >= "Ѐ"
    owned = re.search(r"[\w-]+(?= $)", text[: match.start()]) if cyrillic else None
    if owned and _table().pet.fullmatch(owned.group()) and _table().nominative.fullmatch(rel) is None:
        return None  # the animal of somebody's
    subject = not cyrillic or _table().nominative.fullmatch(rel) is not None or rel.casefold().endswith(("ая", "ий"))
    name = _clean(groups.get("name") or "", plain=subject or _CALLED.search(match.group()) is not None)
    if name and not _may_be_name(name):
        return None
    word = word if "_" not in word and word != "other" else rel.casefold()
    person = Person(name, word, slot, gender or _gender("", name))
    return Mention(match.start(), match.end(), person, subject, fresh=bool(name))


def slot_of(word: str) -> str | None:
    """Where the name of such a relation of the user's goes ("жены": family.wife); None where the word is none."""
    return next((slot for forms, _, slot, _ in _table().relations if forms.fullmatch(word)), None)


def _relation(rel: str) -> tuple[str, str, str]:
    for forms, word, slot, gender in _table().relations:
        if forms.fullmatch(rel):
            return word, slot, gender
    return "ребёнок", "family.child", "f" if rel.casefold().endswith(("ая", "ей", "ую")) else "m"


def _animals(text: str) -> list[Mention]:
    out = []
    for pattern in _table().animals:
        for match in pattern.finditer(text):
            groups = match.groupdict()
            foreign = groups.get("own") and _FOREIGN.fullmatch(groups["own"])
            before = text[: match.start("kind")]
            if foreign or _ANOTHERS.search(before) or strangers(text[: match.start()]):
                continue
            plain = russian.is_a(groups["kind"], "nomn") or _CALLED.search(match.group()) is not None
            name = _clean(groups.get("name") or "", plain=plain)
            kind = groups.get("last") or groups.get("more") or groups["kind"]
            person = Person(
                name, kind, "pet", _gender("", name), russian.base(kind) if kind[0] >= "Ѐ" else kind.casefold()
            )
            out.append(Mention(match.start(), match.end(), person, fresh=bool(name)))
    return out


def _listed(text: str, cast: Sequence[Person]) -> list[Mention]:
    known = {name_key(person.name) for person in cast}
    return [
        Mention(
            match.start(),
            match.end("name"),
            Person(match["name"], word, "family.child", _gender("", match["name"])),
            fresh=True,
        )
        for pattern, word in ((_table().listed_en, "child"), (_table().listed_ru, "ребёнок"))
        for match in pattern.finditer(text)
        if name_key(match["name"]) not in known
    ]


def _several_pattern(words: str, name: str) -> str:
    return (
        rf"(?<![\w’'])(?:(?P<own>his|her|their|your|тво\w+|ваш\w*|его|её|их)\s+)?(?:{words})(?!\w)"
        rf"(?:[,:]| now| are| named| called| зовут| —| -){{0,3}} "
        rf"(?P<names>{name}(?:, {name}){{0,4}},? (?:and|и) {name})"
    )


def _several(text: str) -> list[Mention]:
    """Names given in one breath: "two dogs, Bruno and Daisy"."""
    out: list[Mention] = []
    if not any(joint in text.casefold() for joint in (" and ", " и ")):
        return out
    for pattern, word, slot in _table().several:
        for match in pattern.finditer(text):
            before = text[: match.start()]
            if match["own"] or re.search(r"['’]s $", before) or _ANOTHERS.search(before) or strangers(before):
                continue
            for name in re.finditer(rf"(?:{_NAME}|{_RU_NAME})", match["names"]):
                start = match.start("names") + name.start()
                person = Person(name.group(), word, slot, _gender("", name.group()))
                out.append(Mention(start, start + len(name.group()), person, fresh=True))
    return out


def _known(text: str, cast: Sequence[Person]) -> list[Mention]:
    out = []
    for person in cast:
        first = person.name.split()[0] if person.name else ""
        if len(first) < 2:
            continue
        short = len(first) < 4
        stem = first if first[0] < "Ѐ" or (short and first[-1] not in "ая") else first[:-1]
        ending = "(?:['’]s)?" if stem == first else "(?:[аяеуюиы]|[оеё][йю])" if short else "[а-яё]{0,3}"
        for match in re.finditer(rf"(?<!\w){re.escape(stem)}{ending}(?!\w)", text):
            whole = re.sub(r"['’]s$", "", match.group())
            out.append(Mention(match.start(), match.start() + len(whole), person, subject=whole == first))
    return out


def _recognised(mention: Mention, cast: Sequence[Person]) -> Mention:
    """A bare relation whose name is known means that person, where there is only one of the kind."""
    if mention.person.name:
        return mention
    same = [person for person in cast if person.name and person.slot == mention.person.slot]
    return replace(mention, person=same[0]) if len(same) == 1 else mention


def _clean(name: str, *, plain: bool) -> str:
    """The name without marks; a Russian one in the nominative, which it is in already where its neighbours are
    (`plain`)."""
    name = name.strip('«»"“” ')
    if not re.search("[А-Яа-яЁё]", name):
        return re.sub(r"['’]s$", "", name)
    return (
        name if plain and russian.may_be_nominative(name) else russian.nominative(name, prefer=("Name", "Patr", "Surn"))
    )


def _may_be_name(name: str) -> bool:
    """A person is not called like a place: only the dictionary can know, and without it every capital word passes."""
    first = name.split()[0]
    if first[0] < "Ѐ":
        return True
    return (
        not russian.is_known(first)
        or any(russian.is_a(first, mark) for mark in ("Name", "Surn", "Patr"))
        or not russian.is_a(first, "Geox")
    )


def _gender(word: str, name: str) -> str:
    for forms, known, _, gender in _table().relations:
        if word and gender and (known == word or forms.fullmatch(word)):
            return gender
    return russian.gender(name) if name and name[0] >= "Ѐ" else ""
