"""Ages and numbers, in digits or in words: "I'm thirteen", «мне тридцать семь», "14 yo".

Number words are grammar concepts `N0` to `N90` of a lexicon. An age is a number that a person has: after "I am" or
«мне», or before "years old" with the speaker in the clause; never before another unit ("I'm 12 minutes away").
"""

from __future__ import annotations

from typing import NamedTuple

from nitka.watch.clauses import NUMERALS, Clause, Reading
from nitka.watch.tokens import MARK, NUMBER, WORD

MINOR, ADULT = range(6, 18), range(18, 100)


def number_at(reading: Reading, place: int) -> tuple[int, int]:
    """The whole number at token `place` and the index after it; (-1, place) when there is none. Below 100 only for
    words.
    """
    token = reading.tokens[place]
    if token.kind == NUMBER:
        return (
            (int(token.form), place + 1)
            if token.form.isascii() and token.form.isdigit() and len(token.form) < 4
            else (-1, place)
        )
    value = _word_value(reading, place)
    if value < 0:
        return -1, place
    following = _word_value(reading, place + 1) if place + 1 < len(reading.tokens) else -1
    if value >= 20 and value % 10 == 0 and 0 < following < 10:
        return value + following, place + 2
    return value, place + 1


def _word_value(reading: Reading, place: int) -> int:
    for name in reading.grammar[place]:
        if name in NUMERALS:
            return int(name[1:])
    return -1


class Age(NamedTuple):
    """An age in tokens `[start, end)`. `whose`: "I", "YOU", or empty where nothing but the number is said."""

    value: int
    start: int
    end: int
    whose: str


def ages(reading: Reading, clause: Clause) -> list[Age]:
    """Each age that the speaker gives as their own or as the reader's in this clause, and numbers that stand alone."""
    found = []
    after = clause.start
    for place in reading.numbers_in(clause.start, clause.end):
        if after <= place:
            value, after = number_at(reading, place)
            if value in MINOR or value in ADULT:
                subject = _owner(reading, clause, place, after)
                if subject >= 0:
                    whose = "YOU" if "YOU" in reading.grammar[subject] and "I" not in reading.grammar[subject] else "I"
                    found.append(Age(value, min(subject, place), after, whose))
                elif _alone(reading, clause, place, after):
                    found.append(Age(value, place, after, ""))
    return found


def _alone(reading: Reading, clause: Clause, place: int, end: int) -> bool:
    """Whether the clause says nothing beside the number: "13", "thirteen, why?", «мне 13», "13 u?"."""
    return all(
        start <= index < stop or reading.tokens[index].kind == MARK or reading.grammar[index]
        for start, stop in ((place, end),)
        for index in range(clause.start, clause.end)
    ) and not any(
        "IF" in words or "HE" in words or "SHE" in words for words in reading.grammar[clause.start : clause.end]
    )


def _owner(reading: Reading, clause: Clause, place: int, end: int) -> int:
    """The token of the person whose age this is, speaker or reader, or -1."""
    after = reading.grammar[end] if end < clause.end else frozenset()
    years = "YEARS" in after
    if after & {"HAVEAGE", "TOYOU"} and _ends_there(reading, clause, end + 1):
        asked = (i for i in range(clause.start, place) if "TOYOU" in reading.grammar[i])
        return next(asked, end)  # «14 мне», «четырнадцать тебе?», «тебе 14 исполнилось?»
    if end < clause.end and not years and not _closes(reading, end, after):
        return -1
    apart = place > clause.start and reading.tokens[place - 1].form == ","  # "I'm a driver, 35"
    for index in range(place - 1, max(clause.start, place - 6) - 1, -1):
        found = _subject(reading, clause, index, place, years)
        if found is not None:
            return found
        if not reading.grammar[index] and reading.tokens[index].kind == WORD and not years and not apart:
            return -1
    return -1


def _ends_there(reading: Reading, clause: Clause, place: int) -> bool:
    """Whether nothing but fillers and times follows: «14 мне уже», not «14 мне дай»."""
    return all(
        reading.tokens[i].kind == MARK or reading.grammar[i] & {"FILLER", "YEARS", "BE", "PREP", "THAT", "AND"}
        for i in range(place, min(clause.end, place + 3))
    )


def _subject(reading: Reading, clause: Clause, index: int, place: int, years: bool) -> int | None:
    """The token itself if its age the number is; -1 if it is somebody else's; None if the token tells nothing."""
    words = reading.grammar[index]
    if "HAVEAGE" in words or ("I" in words and "BE" in words):
        return -1 if _not_now(reading, index, place) else index
    if _is_reader(reading, clause, index, place):
        return index
    if words & {"YOU", "YOUR", "HE", "SHE", "THEY", "HIS", "PERSON"}:
        return -1
    if "I" in words:
        english = reading.forms[index].isascii()  # «я ждал семь лет»: a Russian age needs «мне»
        return index if english and (years or _copula(reading, index, place)) else -1
    return None


def _not_now(reading: Reading, subject: int, place: int) -> bool:
    return any("WAS" in reading.grammar[i] or "NOT" in reading.grammar[i] for i in range(subject, place))


def _is_reader(reading: Reading, clause: Clause, index: int, place: int) -> bool:
    """Whether "you are" stands here before the number, in either order."""
    words = reading.grammar[index]
    if "TOYOU" in words:
        return clause.question
    return "YOU" in words and ("BE" in words or _copula(reading, max(clause.start, index - 1), place))


def _copula(reading: Reading, subject: int, place: int) -> bool:
    return any("BE" in reading.grammar[i] or "TURNED" in reading.grammar[i] for i in range(subject, place))


def _closes(reading: Reading, place: int, words: frozenset[str]) -> bool:
    """Whether what follows a number leaves it an age: punctuation, "too", "and", a filler; not a noun."""
    if reading.tokens[place].kind == MARK:
        return reading.tokens[place].form not in "%:/$€₽"
    return bool(words & {"FILLER", "AND", "THAT", "IF", "TOO", "I", "YOU", "BE", "WH", "AFTERAGE", "HAVEAGE"})


def self_ages(reading: Reading, clause: Clause) -> list[tuple[int, int, int]]:
    """(age, first token, token after) for each age that the speaker gives as their own in this clause."""
    return [(age.value, age.start, age.end) for age in ages(reading, clause) if age.whose == "I"]
