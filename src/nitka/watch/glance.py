"""The first look at a message: its words and what they are marked with, before tokens, sentences and clauses exist.

Only for plain messages: letters, blanks and ordinary marks, in one script; no digit, address, link or letters spelled
apart. Of such a message the words are those that `tokens` and `lexicon` find, and nothing else in it can name anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nitka.watch.latin import plain_latin
from nitka.watch.lexicon import Lexicon, Looked, look
from nitka.watch.normalise import QUOTES
from nitka.watch.tokens import STRETCH, repairs

_SIMPLE = re.compile(r"[ !\"%-/:-?A-~\n\t\rа-яА-ЯёЁ«»—–…’‘“”„]*\Z")
_SPECIAL = re.compile(r"https?:|www\.|\S\.\w|(?<!\w)[^\W\d_][ .\-_*·•][^\W\d_](?:[ .\-_*·•]|\Z)")
_LATIN = re.compile("[a-z]")
_PIECE = re.compile(r"\w+(?:'[^\W\d_]+)?|(?!(?<=\w)-(?=\w))[^\w\s]|\n")


MARKS = frozenset("!\"%&'()*+,-./:;<=>?[\\]^{|}~\n«»—–…“”„")


def glance(text: str, lexicon: Lexicon) -> Looked | None:
    """Look once; None if the message is not plain, or may be one script in the spelling of another. Linear."""
    if not _SIMPLE.match(text):
        return None
    folded = text.lower().translate(QUOTES)
    if _SPECIAL.search(folded) or (not folded.isascii() and _LATIN.search(folded)):
        return None
    forms = _PIECE.findall(folded)
    known, met = lexicon.known, lexicon.words
    strange = [i for i, form in enumerate(forms) if form not in met and form not in MARKS and form not in known]
    return None if strange and _changed(forms, strange, lexicon) else look(forms, lexicon)


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
