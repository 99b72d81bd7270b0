"""Which language a message is in. For the report only: what is matched is decided by the caller's `language`, never
by this.
"""

from __future__ import annotations

from collections.abc import Iterable

from nitka.watch.lexicon import Lexicon

_CYRILLIC_ONLY = "ru"


def identify(forms: Iterable[str], codes: tuple[str, ...], lexicon: Lexicon) -> str:
    """The code of the language that most of these words belong to; empty when nothing is known of any. `forms` are a
    message's words as they are looked up.
    """
    if len(codes) == 1:
        return codes[0] if any(True for _ in forms) else ""
    latin = cyrillic = known = 0
    for form in forms:
        if "а" <= form[0] <= "я":
            cyrillic += 1
        elif form.isascii():
            latin += 1
            known += form in lexicon.known
    if cyrillic > latin:
        return _CYRILLIC_ONLY if _CYRILLIC_ONLY in codes else ""
    return "en" if known and known * 2 >= latin and "en" in codes else ""
