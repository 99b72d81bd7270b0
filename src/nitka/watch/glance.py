"""The first look at a message: its words and what they are marked with, before tokens, sentences and clauses exist.

Only for plain messages: letters, blanks and ordinary marks, in one script; no digit, address, link or letters spelled
apart. Of such a message the words are those that `tokens` and `lexicon` find, and nothing else in it can name anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from nitka.watch.lexicon import Lexicon, phrases_at, plain_latin
from nitka.watch.normalise import QUOTES
from nitka.watch.tokens import STRETCH, repairs

_SIMPLE = re.compile(r"[ !\"%-/:-?A-~\n\t\rа-яА-ЯёЁ«»—–…’‘“”„]*\Z")
_SPECIAL = re.compile(r"https?:|www\.|\S\.\w|(?<!\w)[^\W\d_][ .\-_*·•][^\W\d_](?:[ .\-_*·•]|\Z)")
_LATIN = re.compile("[a-z]")
_PIECE = re.compile(r"\w+(?:'[^\W\d_]+)?|(?!(?<=\w)-(?=\w))[^\w\s]|\n")
_MARKS = frozenset("!\"%&'()*+,-./:;<=>?[\\]^{|}~\n«»—–…“”„")


class Glance(NamedTuple):
    """The words of a message in the form they are looked up in, and what all of it is marked with."""

    words: Sequence[str]
    marks: int


def glance(text: str, lexicon: Lexicon) -> Glance | None:
    """Look once; None if the message is not plain, or may be one script in the spelling of another. Linear."""
    if not _SIMPLE.match(text):
        return None
    folded = text.lower().translate(QUOTES)
    if _SPECIAL.search(folded) or (not folded.isascii() and _LATIN.search(folded)):
        return None
    forms = _PIECE.findall(folded)
    known = lexicon.known
    strange = [i for i, form in enumerate(forms) if form not in known and form not in _MARKS]
    if strange and _changed(forms, strange, lexicon):
        return None
    return Glance([form for form in forms if form not in _MARKS], _marks(forms, lexicon))


def _changed(forms: list[str], strange: Sequence[int], lexicon: Lexicon) -> bool:
    """Repair the words nobody knows; whether one of those left may be a word of another script."""
    known, left = lexicon.known, []
    for place in strange:
        form = forms[place]
        if not form.isalpha() or STRETCH.search(form):
            form = forms[place] = next((r for r in repairs(form) if r in known), form)
        if form.isascii() and form not in known:
            left.append(form)
    if not left:
        return False
    spelled = lexicon.spelled.table()
    return bool(spelled) and any(plain_latin(form) in spelled for form in left)


def _marks(forms: Sequence[str], lexicon: Lexicon) -> int:
    known, words, marks, last = lexicon.known, lexicon.words, 0, len(forms) - 1
    for place, form in enumerate(forms):
        if form in known:
            word = words[form]
            marks |= word.marks
            if word.phrases is not None and place < last:
                for phrase, _ in phrases_at(forms, place, word.phrases):
                    marks |= phrase.marks
    return marks
