"""What the command line says, one table per language.

Rules: a text is chosen by the locale's language, English where there is none of that language. Counts stand after a
colon or a dash, so that no language needs its plurals here. What is filled in is a number, a path or a name of ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from nitka.cli.texts.english import ENGLISH
from nitka.cli.texts.russian import RUSSIAN
from nitka.cli.texts.table import Texts

__all__ = ["ENGLISH", "RUSSIAN", "Texts", "is_spoken", "said", "texts_for"]

TABLES: Mapping[str, Texts] = {"en": ENGLISH, "ru": RUSSIAN}


def texts_for(locale: str) -> Texts:
    """The table for a locale's name ("ru_RU.UTF-8", "ru"); English where it names no language of ours."""
    return TABLES.get(_language(locale), ENGLISH)


def is_spoken(locale: str) -> bool:
    """Whether a locale's name is of a language that there is a table for."""
    return _language(locale) in TABLES


def _language(locale: str) -> str:
    return re.split(r"[_.@-]", locale)[0].lower()


def said(texts: Texts, reason: str) -> str:
    """A reason of a receipt in this language; unchanged where the table does not know it."""
    for pattern, form in texts.reasons.items():
        if found := re.fullmatch(pattern, reason):
            return found.expand(form)
    return reason
