"""Numbers written in words, English and Russian (cases of Russian numerals by their stems), and amounts such as "6k"
or "38 тыщ".

Only cardinals up to the millions, and "and a half". Words that are also something else ("one", "сорок" is not, "пять"
is not) are read as numbers only where they stand beside other numbers or alone; the caller decides whether a number
is wanted at a place at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_EN = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11,
    "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18,
    "nineteen": 19, "twenty": 20,
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_RU_STEMS = (
    (r"нол(?:ь|я|е|ю|ем)", 0), (r"од(?:ин|на|но|ного|ной|ному|ну|ним)", 1), (r"дв(?:а|е|ух|ум|умя)", 2),
    (r"тр(?:и|ех|ем|емя)", 3),
    (r"четыр(?:е|ех|ем|ьмя)", 4), (r"пят(?:ь|и|ью)", 5), (r"шест(?:ь|и|ью)", 6), (r"сем(?:ь|и|ью)", 7),
    (r"вос(?:емь|ьми|емью|ьмью)", 8),
    (r"девят(?:ь|и|ью)", 9), (r"десят(?:ь|и|ью)", 10), (r"одиннадцат(?:ь|и|ью)", 11), (r"двенадцат(?:ь|и|ью)", 12),
    (r"тринадцат(?:ь|и|ью)", 13), (r"четырнадцат(?:ь|и|ью)", 14), (r"пятнадцат(?:ь|и|ью)", 15),
    (r"шестнадцат(?:ь|и|ью)", 16),
    (r"семнадцат(?:ь|и|ью)", 17), (r"восемнадцат(?:ь|и|ью)", 18), (r"девятнадцат(?:ь|и|ью)", 19),
    (r"двадцат(?:ь|и|ью)", 20),
    (r"тридцат(?:ь|и|ью)", 30), (r"сорока?", 40), (r"пят(?:ьдесят|идесяти|ьюдесятью)", 50),
    (r"шест(?:ьдесят|идесяти|ьюдесятью)", 60),
    (r"сем(?:ьдесят|идесяти|ьюдесятью)", 70), (r"вос(?:емьдесят|ьмидесяти)", 80), (r"девяност[оа]", 90),
    (r"ст[оа]", 100),
    (r"двести|двухсот", 200), (r"триста|трехсот", 300), (r"четыреста|четырехсот", 400), (r"пятьсот|пятисот", 500),
    (r"шестьсот|шестисот", 600),
    (r"семьсот|семисот", 700), (r"восемьсот|восьмисот", 800), (r"девятьсот|девятисот", 900),
)  # fmt: skip
_SCALE = (
    (re.compile(r"hundred"), 100),
    (re.compile(r"thousand|grand|тысяч(?:а|и|у|ей|ам|ами|ах)?|тыщ(?:а|и|у)?|тыс|т\.?р"), 1_000),
    (re.compile(r"million|mln|миллион(?:а|ов|у|ом)?|млн"), 1_000_000),
)
_RU = tuple((re.compile(pattern), value) for pattern, value in _RU_STEMS)
_ANY_RU = re.compile("|".join(pattern for pattern, _ in _RU_STEMS))

_SCALES = {
    "en": r"hundred|thousand|grand|million|mln",
    "ru": r"тысяч(?:а|и|у|ей|ам|ами|ах)?|тыщ(?:а|и|у)?|тыс\.?|миллион(?:а|ов|у|ом)?|млн",
}
_WORDS = {
    "en": "|".join(sorted(_EN, key=len, reverse=True)),
    "ru": "|".join(pattern.replace("е", "[её]") for pattern, _ in _RU_STEMS),
}
NUMBER_WORD = f"(?:{_WORDS['en']}|{_WORDS['ru']})"
"""A pattern for one number in a word, English or Russian, without its scale."""
_HALF = {"en": "and a half|and", "ru": "с половиной"}


def pattern(*languages: str) -> str:
    """A pattern for a number in digits or in the words of these languages ("en", "ru"), with its scale;
    case-insensitive."""
    word, scale, half = ("|".join(table[name] for name in languages) for table in (_WORDS, _SCALES, _HALF))
    return (
        rf"(?:\d{{1,3}}(?:[ ,\u00a0]\d{{3}})+(?!\d)|\d+(?:[.,]\d+)?)(?: ?(?:{scale})(?!\w)|[kк](?!\w))?"
        rf"|(?:{word})(?!\w)(?:[ -](?:{half}|{word}|{scale})(?!\w)){{0,7}}"
    )


NUMBER = pattern("en", "ru")
_NUMBERS = re.compile(rf"(?<!\w)(?:{NUMBER})(?!\w)", re.I)


def value_of(word: str) -> int | None:
    """The number a single word stands for; None when it is not one."""
    word = word.casefold().replace("ё", "е")
    if word in _EN:
        return _EN[word]
    if not _ANY_RU.fullmatch(word):
        return None
    return next((value for pattern, value in _RU if pattern.fullmatch(word)), None)


def scale_of(word: str) -> int | None:
    return next((value for pattern, value in _SCALE if pattern.fullmatch(word.casefold())), None)


def number(text: str) -> float | None:
    """The value of a number in digits or words ("11.5k", "eleven and a half thousand"); None when it is not a number
    as a whole."""
    joined = re.sub(r"(?<=\d)[ ,\u00a0](?=\d{3}(?!\d))", "", text.strip())
    joined = re.sub(r"(?<=\d)[kк]\b", " thousand", joined).replace(",", ".")
    words = [word.rstrip(".") for word in re.split(r"[ -]+", joined) if word not in ("and", "a", "с", "")]
    total, part, seen = 0.0, 0.0, False
    for word in words:
        plain, scale = _digits(word), scale_of(word)
        if scale is not None:
            part = (part or 1) * scale
            total, part = (total + part, 0.0) if scale >= 1_000 else (total, part)
        elif word in ("half", "половиной"):
            part += 0.5
        elif plain is not None:
            part += plain
        else:
            return None
        seen = True
    return total + part if seen else None


_ORDINALS = {"first": "one", "second": "two", "third": "three", "fifth": "five", "eighth": "eight", "ninth": "nine"}


def cardinal(text: str) -> str:
    """An English ordinal as the number it counts to ("twenty-first": "twenty-one"); any other text as it is."""
    words = re.sub(r"(?i)(?<=\d)(?:st|nd|rd|th)$", "", text)
    head, last = re.fullmatch(r"(?s)(.*?)([^ -]*)", words).groups()  # type: ignore[union-attr]  # matches anything
    low = last.casefold()
    plain = _ORDINALS.get(low) or re.sub(r"elfth$", "elve", re.sub(r"ieth$", "y", low)).removesuffix("th")
    return head + plain if plain in _EN else words


def _digits(word: str) -> float | None:
    return float(word) if re.fullmatch(r"\d+(?:\.\d+)?", word) else value_of(word)


def digits(words: Sequence[str]) -> list[str]:
    """The words with every run of number words written in digits: ["twenty", "five", "cats"] becomes ["25", "cats"]."""
    out: list[str] = []
    run: list[str] = []
    for word in words:
        plain = re.fullmatch(r"\d+(?:[.,]\d+)?", word) is not None
        joins = value_of(word) is not None or scale_of(word) is not None or (bool(run) and word == "half")
        if run and (plain or not joins):
            out.append(_joined(run))
            run = []
        if plain or joins:
            run.append(word)
        else:
            out.append(word)
    return [*out, _joined(run)] if run else out


def _joined(run: Sequence[str]) -> str:
    return shown(number(" ".join(run))) or " ".join(run)


def shown(value: float | None) -> str:
    """A number in its shortest digits; empty for None."""
    return "" if value is None else f"{value:.10g}" if value % 1 else str(int(value))


def amounts(text: str) -> frozenset[str]:
    """Every number of the text in its shortest digits, whether in digits or words; "38k" is 38 and 38000."""
    found = {shown(number(match.group())) for match in _NUMBERS.finditer(text)}
    found |= {str(int(run)) for run in re.findall(r"\d+", text)}
    return frozenset(found - {""})
