"""Which language a message is in. For the report only: what is matched is decided by the caller's `language`, never
by this.
"""

from __future__ import annotations

from nitka.watch.clauses import Reading
from nitka.watch.lexicon import Lexicon
from nitka.watch.tokens import WORD

_CYRILLIC_ONLY = "ru"


def identify(text: str, reading: Reading, codes: tuple[str, ...], words: Lexicon) -> str:
    """The code of the language that most words of the message belong to; empty when nothing is known of any."""
    if len(codes) == 1:
        return codes[0] if any(t.kind == WORD for t in reading.tokens) else ""
    latin = cyrillic = known = 0
    for token, form in zip(reading.tokens, reading.forms, strict=True):
        if token.kind == WORD:
            if form[0] >= "а" and form[0] <= "я":
                cyrillic += 1
            elif form.isascii():
                latin += 1
                known += form in words.known
    if cyrillic > latin:
        return _CYRILLIC_ONLY if _CYRILLIC_ONLY in codes else ""
    return "en" if known and known * 2 >= latin and "en" in codes else ""
