"""The words of the offline stand-in: what it knows of English and Russian, and how it takes a text apart with that.

Everything here is small on purpose: a light stemmer, lists of words that carry no subject, groups of words that ask and
answer alike. Nothing is loaded, nothing is learned.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib import resources

from nitka.models import offline_values as values

WORD = re.compile(r"[^\W_]+")
CLAUSE = re.compile(r"[,:–—]\s+|\s(?:and|и|а)\s(?=(?:what|which|who|when|where|how|что|как|кто|когда|где|сколько)\b)")
_SENTENCE = re.compile(r"(?<=[.!?…])[\"»”)]*\s+|\n+|;\s+")

_DATA = tomllib.loads(resources.files("nitka.models").joinpath("offline.toml").read_text("utf-8"))


def _set(name: str) -> frozenset[str]:
    return frozenset(_DATA[name].replace("ё", "е").split())


EMPTY, MINE, YOURS, WEAK = _set("empty"), _set("mine"), _set("yours"), _set("weak")
HELLO, THANKS, BYE, SMALL = _set("hello"), _set("thanks"), _set("bye"), _set("small")
ASK, MAKE, OPENERS, CHANGED = _set("ask"), _set("make"), _set("openers"), _set("changed")
NUMBER_WORDS, MONEY_WORDS, AGE_WORDS = _set("numbers"), _set("moneys"), _set("ages")
DATE_WORDS, TIME_WORDS, PLACE_WORDS = _set("dates"), _set("times"), _set("places")
ALL, TURNED, TURNED_BY, ABOUT = _set("all"), _set("turned"), _set("turned_by"), _set("about")
LINKS, INITIAL, STANDS, DENIES = _set("links"), _set("initial"), _set("stands"), _set("denies")
KNOWS, SELF, CAN = _set("knows"), _set("self"), _set("can")
WH, WHAT, DECIDED, AGREED, BUT = _set("wh"), _set("what"), _set("decided"), _set("agreed"), _set("but")
USER_SAID, ASSISTANT_SAID = _set("user_said"), _set("assistant_said")
STILL_NOT = re.compile(
    r"\b(?:not|never|cannot|no longer|\w+n['’]t|не|нельзя)\b(?!.*\b(?:until|before|after|раньше|позже|до)\b)", re.I
)

_ENDS_NO_SENTENCE = re.compile(
    rf"(?<!\w)(?i:{'|'.join(map(re.escape, sorted(_DATA['short'].split())))})\.$|(?<!\w)[A-ZА-ЯЁ]\.$"
)
_REFLEXIVE = re.compile(r"(?<=[а-я]{3})(?:ся|сь)$")
_RUSSIAN_ENDS = re.compile(
    r"(?:иями|ями|ами|ого|его|ому|ему|ыми|ими|ешь|ишь|ете|ите|ует|уют|ают|яют|ала|или|ила|ыла|или|ать|ять|ить|еть|"
    r"ая|яя|ое|ее|ые|ие|ый|ий|ой|ей|ую|юю|ых|их|ым|им|ом|ем|ам|ям|ах|ях|ов|ев|ет|ит|ут|ют|ат|ят|"
    r"ал|ил|ла|ло|ли|ия|ию|ии|ью|ья|а|я|о|е|ы|и|у|ю|ь|й|л)$"
)
_FLEETING = re.compile(r"(?<=[бвгджзклмнпрстфхцчшщ])[ео](?=[кцн]$)")
_ENGLISH_ENDS = re.compile(r"(?:ingly|edly|ings|ing|edly|ied|ies|ed|es|ly|s|e|y)$")


def words(text: str) -> tuple[str, ...]:
    """The words of a text, small, `ё` as `е`."""
    return tuple(WORD.findall(text.lower().replace("ё", "е")))


def sentences(text: str) -> list[str]:
    """The sentences of a text. A full stop after "Dr", "ул" or an initial ends none."""
    whole: list[str] = []
    at = 0
    for cut in _SENTENCE.finditer(text):
        piece = text[at : cut.start()]
        if "\n" not in cut.group() and _ENDS_NO_SENTENCE.search(piece):
            continue
        whole.append(text[at : cut.start()] + cut.group().strip())
        at = cut.end()
    return [part.strip().removesuffix(";") for part in (*whole, text[at:]) if part.strip()]


def stem(word: str) -> str:
    """What forms of a word share, roughly: one ending is taken off where at least three letters stay."""
    russian = "а" <= word[-1] <= "я"
    cut = _RUSSIAN_ENDS.sub("", _REFLEXIVE.sub("", word)) if russian else _ENGLISH_ENDS.sub("", word)
    if len(cut) < 3:
        return word
    if russian and len(cut) > 4:
        return _FLEETING.sub("", cut)  # коробок, коробки: коробк
    if not russian and len(cut) > 3 and cut[-1] == cut[-2] and cut[-1] not in "sl":
        return cut[:-1]  # planned, planning: plan
    return cut


_EXACT = {word: f"={at}" for at, group in enumerate(_DATA["like"]) for word in group.replace("ё", "е").split()}
_GROUPS = {stem(word): group for word, group in reversed(_EXACT.items())}


def subject(word: str) -> str:
    """The stem of a word, or the mark of its group when several words ask and answer alike."""
    root = stem(word)
    return _EXACT.get(word) or _GROUPS.get(root, root)


NAME, HOME, PRICE, COLOUR, MAIL, AGE, DOSE = map(subject, "name home price colour email age dose".split())


def subjects(text: Iterable[str]) -> frozenset[str]:
    """What a text speaks of."""
    return frozenset(subject(word) for word in text if word not in EMPTY and word not in MINE and word not in YOURS)


def shown(text: str) -> frozenset[str]:
    """What a text speaks of without the word for it: an amount is a price, "blue" a colour."""
    signs = (
        (PRICE, values.priced(text)),
        (COLOUR, values.COLOURS.search(text)),
        (MAIL, values.MAIL.search(text)),
        (DOSE, values.DOSE.search(text)),
        (HOME, values.STREET.search(text)),
        (AGE, next(values.found("age", text), None)),
    )
    return frozenset(what for what, sign in signs if sign)
