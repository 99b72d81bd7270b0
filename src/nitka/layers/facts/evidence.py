"""Evidence: a fact rests on words that the user really said, and secrets are not facts.

A quote counts when it occurs in the user's row after NFC and white-space folding. What the assistant said is never
evidence.
"""

from __future__ import annotations

from nitka.layers.facts.canon import fold
from nitka.types import Message


def occurs(quote: str, text: str) -> bool:
    """Whether the quote is really in the text, whatever the Unicode form and the white space."""
    wanted = fold(quote)
    return bool(wanted) and wanted in fold(text)


def supports(quote: str, message: Message) -> bool:
    """Whether this row is evidence for a fact with this quote: the user's own row, and the words are in it."""
    return message.role == "user" and occurs(quote, message.text)
