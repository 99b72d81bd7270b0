"""About whom a question asks and a statement tells, so that nobody's fact answers for somebody else.

A question about somebody ("Where does Lena live?", "my sister's tea") is not answered by a statement that is about the
user, or about a third one, and does not speak of them; one about the user ("Where do I live?") not by a statement about
somebody else. Where the subject cannot be told, nothing is ruled out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nitka.layers.facts.rules import people, russian
from nitka.layers.facts.rules.text import Sentence
from nitka.models import offline_words as lexicon

_ASKED = re.compile(  # in the place of the subject, or of an owner
    r"(?:\b(?i:do|does|did|is|was|has|had|can|could|will|would|should|am|are) |(?<=\w)[’']s )(?P<a>[A-Z][\w-]+)"
    r"|(?P<b>\b[\w-]+)(?=[’']s [\w-])"
)
_TELLS = re.compile(
    r"\W*(?:(?i:and|but|so|well|actually|also|now),? )*"
    r"(?P<a>(?!(?:The|This|That|It|There|Here|What|In|On|At|And|But)\b)[A-Z][\w-]+)"
    r"(?= (?:(?:also|now|really|still|just) )?(?:is|was|has|had|can|cannot|will|would|does|did|\w{2,}s)\b|[’']s )"
)
_NOTED = re.compile(r"(?P<a>[^\W\d_][\w’'-]*(?: [A-ZА-ЯЁ][\w’'-]*)?): ")  # a line of memory: "Corin: lives in York"
_THIRD = re.compile(r"(?i)\W*(?P<a>he|she|they|он|она|они|у (?:него|неё|нее|них)|ему|ей|им)(?!\w)")
_RUSSIAN = re.compile("[А-ЯЁа-яё]+(?:-[А-ЯЁа-яё]+)?")
_WHO = re.compile(r"(?i)\b(?:who|whom|whose|кто|кого|кому|кем|чей|чья|чьё|чьи)\b")
_ONESELF = frozenset("i we me us myself я мы мне меня мной нам нас нами".split())
_HEAD = 60  # characters in which a statement says of whom it is


def asked_of(question: str) -> frozenset[str]:
    """The words for those, not the user, about whom a question asks."""
    found = {one.person.name or one.person.word for one in people.mentions(Sentence(question, 0), ())}
    for match in _ASKED.finditer(question):
        word = match["a"] or match["b"]
        found |= {word} if word[0].isupper() and not match.start("b") == 0 or people.slot_of(word) else set()
    return frozenset(found | {word.group() for word in _names(question)})


def of_oneself(question: str) -> bool:
    """Whether it asks about the one who asks, as "who calls me?" and "what is my cat called?" do not."""
    return not _WHO.search(question) and not _ONESELF.isdisjoint(lexicon.words(question))


def called(asked: frozenset[str], told: Iterable[str]) -> frozenset[str]:
    """The names that these statements give to relations which were asked about: "my husband Igor"."""
    slots = {people.slot_of(word) for word in asked} - {None}
    spoken = (one.person for text in told for one in people.mentions(Sentence(text, 0), ()))
    return frozenset(person.name for person in spoken if person.name and person.slot in slots)


def told_of(text: str, *, note: bool) -> str | None:
    """Of whom a statement is: "" of the user, too, the word for somebody else, None where that cannot be told. `note`:
    it is a line of memory, which is the user's where it names nobody."""
    head = text[:_HEAD]
    noted = _NOTED.match(head) if note else None
    if note:
        named = noted is not None and (noted["a"][0].isupper() or people.slot_of(noted["a"]) is not None)
        return noted["a"] if noted is not None and named else ""
    places = sorted(_subjects(head))
    return next((who for _, who in places if not who), places[0][1]) if places else None


def _subjects(text: str) -> Iterator[tuple[int, str]]:
    """Who may be the subject, with their places; "" for the user."""
    others = people.mentions(Sentence(text, 0), ())
    yield from ((one.start, one.person.label) for one in others if one.subject or _opens(text, one.start))
    for word in lexicon.WORD.finditer(text):
        inside = any(one.start <= word.start() < one.end for one in others)
        if not inside and word.group().lower().replace("ё", "е") in lexicon.MINE:
            yield word.start(), ""
    yield from ((word.start(), "") for word in _RUSSIAN.finditer(text) if russian.is_a(word.group(), "1per"))
    for pattern in (_TELLS, _THIRD):
        yield from ((match.start("a"), match["a"]) for match in [pattern.match(text)] if match)
    yield from ((word.start(), word.group()) for word in _names(text) if _may_be_subject(text, word))


def _may_be_subject(text: str, name: re.Match[str]) -> bool:
    return russian.may_be_nominative(name.group()) or _opens(text, name.start())


def _opens(text: str, place: int) -> bool:
    """Whether nothing but "у" stands before: "у сына аллергия", "сыну нельзя"."""
    return re.fullmatch(r"(?i)\W*(?:(?:а|и|но) )?(?:у )?", text[:place]) is not None


def _names(text: str) -> list[re.Match[str]]:
    capitals = (word for word in _RUSSIAN.finditer(text) if word.group()[0].isupper())
    return [word for word in capitals if russian.is_known(word.group()) and russian.is_a(word.group(), "Name")]
