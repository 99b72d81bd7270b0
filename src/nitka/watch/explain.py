"""Alerts in plain sentences: "asked where the parents are, 2 messages ago; now asks for the camera". English and
Russian.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nitka.watch.types import Alert, Evidence, FlagKind

LANGUAGES = ("en", "ru")


def explain(alert: Alert, kinds: Mapping[str, FlagKind], language: str) -> str:
    """One sentence: what came before, oldest first, and what completes it now. Flags without words in the language
    show their name.
    """
    pieces: dict[str, None] = {}
    for one in sorted(alert.evidence, key=lambda e: -e.messages_ago):
        pieces[_piece(one, kinds, language)] = None
    return "; ".join(_now_once(list(pieces), language))


def _piece(one: Evidence, kinds: Mapping[str, FlagKind], language: str) -> str:
    words = kinds[one.flag].words.get(language) if one.flag in kinds else None
    past, present = words or (one.flag, one.flag)
    if one.messages_ago == 0:
        return f"{'сейчас' if language == 'ru' else 'now'} {present}"
    return f"{past}, {_ago(one.messages_ago, language)}"


def _now_once(pieces: Sequence[str], language: str) -> list[str]:
    """ "now" is said once."""
    word = "сейчас " if language == "ru" else "now "
    said, out = False, []
    for piece in pieces:
        out.append(piece.removeprefix(word) if said else piece)
        said = said or piece.startswith(word)
    return out


def _ago(count: int, language: str) -> str:
    if language != "ru":
        return f"{count} message{'' if count == 1 else 's'} ago"
    tens, ones = count % 100, count % 10
    if ones == 1 and tens != 11:
        word = "сообщение"
    elif 2 <= ones <= 4 and not 12 <= tens <= 14:
        word = "сообщения"
    else:
        word = "сообщений"
    return f"{count} {word} назад"
