"""From the words of a match to the value of a fact, in the user's own language."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from nitka.layers.facts.dates import dated, resolve
from nitka.layers.facts.numbers import cardinal, number, shown
from nitka.layers.facts.rules import english, russian
from nitka.layers.facts.rules.text import HIDDEN

Shaped = tuple[str, str]
"""The value, and how it is shown in the statement."""

_LAST = re.compile(r"(?i),? (?:and|or|и|или|&) ")
_TOLD = re.compile(
    r"(?i)^(?:(?:and|also|so|but|please|oh|и|ещё|а|но|ну) )*"
    r"(?:(?:remember|note|keep in mind|запомни\w*|запиши\w*|учти\w*)(?: ещё)?(?: that|,? что|[:,])? )?"
)
_LEAD = re.compile(
    r"(?i)^(?:(?:the|a|an|my|our|some|any|all|most|both|really|very|mild|severe|"
    r"такой|такая|такие|всякие|всякую|всякий|этот|эту|эти) )+"
)
_EMPTY = re.compile(
    r"(?i)(?:it|this|that|them|these|those|you|him|her|us|me|one|ones|thing|things|stuff|idea|ideas|way|sound|look|"
    r"everything|anything|something|"
    r"nothing|everyone|job|answer|help|lot|bit|part|fact|time|chat|name|plan|option|first|second|last|rest|"
    r"watching|playing|having|doing|going|making|being|seeing|getting|trying|spending|finding|working|helping|"
    r"это|то|его|её|ее|их|тебя|вас|так|всё|все|вещь|штука|дело|идея|вариант|очень|когда|ответ|помощь|что-то|"
    r"кое-что|себя|друг друга|no|none|nil|nope|n/a|any|zero|no known|not any|known|нет|нету|никак\w+|ничего|"
    r"отсутству\w+|"
    r"год\w*|лет|месяц\w*|недел[юьи]|дней|дня|раз)"
)
_TRAIL = re.compile(
    r"(?i)(?:[\s,;:—–-]+|\s+(?:and|but|so|or|too|also|though|btw|please|lol|haha|"
    r"(?:\w+ )?(?:years?|months?|weeks?|days?) ago|"
    r"completely|entirely|totally|altogether|so much|very much|a lot|these days|at all|"
    r"совсем|а|и|но|же|ну|вот|кстати|тоже|короче|вообще))+$"
)


def shape(kind: str, text: str, today: date) -> list[Shaped]:
    """The values that these words give under a rule's `as`; none where they make no good value."""
    text = text.strip().strip(HIDDEN)
    return _SHAPES[kind](text, today) if text and HIDDEN not in text else []


def _plain(text: str, today: date) -> list[Shaped]:
    value = _unquoted(_TRAIL.sub("", _TOLD.sub("", text)))
    return [(value, value)] if value else []


def _unquoted(text: str) -> str:
    """Without full stops and without quotation marks that have no partner inside."""
    text = text.strip(" .")
    return text.strip('«»"“”') if text[:1] in '«"“' or not re.search('[«"“]', text) else text


def _thing(text: str, today: date) -> list[Shaped]:
    value = _unquoted(_LEAD.sub("", _TRAIL.sub("", text)))
    return [] if len(value) < 2 or _EMPTY.fullmatch(value) else [(value, value)]


def _things(text: str, today: date) -> list[Shaped]:
    return [shaped for part in _items(text) for shaped in _thing(part, today)]


def _role(text: str, today: date) -> list[Shaped]:
    """A calling, which is said of living beings: what the dictionary knows as a thing is none."""
    word = text.split()[-1] if text.split() else ""
    if word[:1].isupper() and russian.is_a(word, "Name"):
        return []
    thing = russian.is_known(word) and not russian.is_a(word, "anim") and not russian.is_a(word, "ADJF")
    return [] if thing else _base(text, today)


def _joined(text: str, today: date) -> list[Shaped]:
    value = ", ".join(value for value, _ in _things(text, today))
    return [(value, value)] if value else []


def _items(text: str) -> list[str]:
    """The items of a list. "A, b and c" ends with c; without "and" a comma ends the clause as a rule."""
    parts = _LAST.split(text)
    if len(parts) > 1:
        return [item for part in parts[:-1] for item in part.split(", ")] + [parts[-1].split(", ")[0]]
    return [text.split(", ")[0]]


def _base(text: str, today: date) -> list[Shaped]:
    """A common noun, put into the nominative where it is Russian and one word."""
    values = [russian.uncapitalised(value) for value, _ in _thing(text, today)]
    return [(russian.base(v), russian.base(v)) if re.fullmatch("[а-яё-]+", v) else (v, v) for v in values]


def _bases(text: str, today: date) -> list[Shaped]:
    return [shaped for part in _items(text) for shaped in _base(part, today)]


_NO_CAUSE = re.compile(
    r"(?i)(?:\w+ )*(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mornings?|weekends?|winters?|work|"
    r"working|school|homework|"
    r"\w*bullshit|nonsense|drama|questions?|meetings?|people|humans?|men|women|kids|children|liars?|fools?|idiots?|mine|"
    r"exercise|sports?|politics|commitment|losing|love|\w{3,}(?:ness|ity|ism|[^c]ation)|понедельник\w*|вторник\w*|утр[оа]|"
    r"люд(?:и|ей)|человек|дурак\w*|работ[ауы]|учёб[ауы]|школ[ауы]|вопрос\w*|совещани\w+|начальств\w+|"
    r"\w{2,}(?:ств[оаe]|ость|ости|изм|изма))"
)


def _causes(text: str, today: date) -> list[Shaped]:
    """What a body can react to: no day, no deed, no quality of people, of which it is said in jest."""
    return [
        shaped
        for shaped in _bases(text, today)
        if not _NO_CAUSE.fullmatch(shaped[0]) and not russian.is_a(shaped[0].split()[0], "INFN")
    ]


def _person(text: str, today: date) -> list[Shaped]:
    """A name where nothing but a capital tells it for one: only what the dictionary knows as a name."""
    name = text.strip('«»"“” .')
    return [(name, name)] if russian.is_a(name.split()[0], "Name", "nomn") else []


def _name(text: str, today: date) -> list[Shaped]:
    value = text.strip('«»"“” .')
    return [(value, value)] if value and not _EMPTY.fullmatch(value) else []


def _called(text: str, today: date) -> list[Shaped]:
    """A name after "I'm", where nothing but a capital tells it from what somebody is: no common word."""
    return [] if english.is_common(text.split()[0]) else _name(text, today)


def _russian_name(text: str, today: date) -> list[Shaped]:
    value = russian.nominative(text.strip('«»"“” .'))
    return [(value, value)]


def _own_name(text: str, today: date) -> list[Shaped]:
    """A name as its bearer says it, in the nominative: another case speaks of somebody else."""
    first = text.strip('«»"“” .').split()[0]
    fits = not russian.is_known(first) or russian.is_a(first, "nomn", "sing")
    return _russian_name(text, today) if fits else []


def _named(text: str, today: date) -> list[Shaped]:
    """What something is, without a verb between: only what may stand in the nominative and is no verb."""
    value = _thing(text, today)
    words = text.split()
    fits = all(not russian.is_a(word, "VERB") and russian.may_be_nominative(word) for word in words[-1:] + words[:1])
    return value if fits else []


def _turned(text: str, today: date) -> list[Shaped]:
    """What is said of a thing before it: "велосипед зелёный" is a "зелёный велосипед"."""
    thing, _, said = re.sub(" [—-] |, ", " ", text).partition(" ")
    return _thing(f"{said} {thing}".casefold(), today)


def _place(text: str, today: date) -> list[Shaped]:
    value = russian.nominative(text.strip('«»"“” .'), prefer=("Geox",))
    return [(value, value)] if len(value) > 1 and not re.fullmatch("[A-Z]{2,3}", value) else []


def _town(text: str, today: date) -> list[Shaped]:
    """A place only where the dictionary knows it as one, for patterns that fit other names as well."""
    return [shaped for shaped in _place(text, today) if russian.is_a(shaped[0].split()[-1], "Geox")]


def _age(text: str, today: date) -> list[Shaped]:
    tens = re.fullmatch(r"(?i)(\w+)-(?:0|oh?)", text)  # "the big 4-0"
    years = number(tens[1] if tens else cardinal(text))
    years = years * 10 if tens and years else years
    fits = years is not None and years == int(years) and 0 < years < 120
    return [(str(int(years)), str(int(years)))] if fits and years is not None else []


def _amount(text: str, today: date) -> list[Shaped]:
    """An amount of money, in digits where it was said in words, with the words beside it."""
    bare = re.sub(
        r"(?i)[$€£₽]|\b(?:euros?|dollars?|bucks|pounds?|quid|usd|eur|gbp|rub|р|руб\w*|евро|доллар\w*|баксов|тенге)\b\.?",
        "",
        text,
    ).strip(" .,")
    value = number(bare)
    if value is None or value < 20:
        return []
    digits = shown(value)
    return [(digits, text if digits in re.sub(r"[ ,\u00a0]", "", text) else f"{text} ({digits})")]


def _day(text: str, today: date) -> list[Shaped]:
    day = resolve(text, today)
    if day is None:
        return []
    return [(day.iso, text if day.iso == text else f"{text} ({day.iso})")]


def _dated(text: str, today: date) -> list[Shaped]:
    """Words that may speak of a passing day: the day itself where they say nothing else."""
    day = resolve(_TRAIL.sub("", text), today)
    if day is not None:
        return _day(_TRAIL.sub("", text), today)
    return [(value, value) for value, _ in _plain(dated(text, today), today)]


def _described(text: str, today: date) -> list[Shaped]:
    """A thing of which something is said: "bicycle is green" is a green bicycle, "car is a Volvo" a Volvo."""
    said = re.fullmatch(r"(?i)(?P<what>\w[\w-]*)(?:.s| is) (?P<article>an? |the )?(?P<v>.+)", text)
    if said is None:
        return _thing(text, today)
    named = said["article"] or said["v"][0].isupper()
    return _thing(said["v"] if named else f"{said['v']} {said['what']}", today)


def _birthday(text: str, today: date) -> list[Shaped]:
    """Day and month; with a year only where it is a year of birth."""
    day = resolve(text, today)
    if day is None:
        return []
    born = day.year is not None and day.year < today.year - 1
    iso = day.iso if born else day.iso[-5:]
    return [(iso, f"{text} ({iso})")]


_SHAPES: dict[str, Callable[[str, date], list[Shaped]]] = {
    "plain": _plain, "thing": _thing, "things": _things, "base": _base, "bases": _bases, "name": _name,
    "called": _called,
    "russian_name": _russian_name, "own_name": _own_name, "named": _named, "turned": _turned, "place": _place,
    "town": _town, "causes": _causes, "person": _person,
    "joined": _joined, "role": _role, "age": _age, "amount": _amount, "day": _day, "birthday": _birthday,
    "dated": _dated, "described": _described,
}  # fmt: skip
