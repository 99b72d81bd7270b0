"""Facts: durable statements of the user's, one current value a slot, each with the words it rests on.

`reconcile` is the one way in, for what a model proposes and for what the offline rules (`extract`) propose; both are
pure.
"""

from nitka.layers.facts.forget import RestsOn, rests_on, touches, without_rows
from nitka.layers.facts.model import USER, Candidate, Fact, Key, Seen, current, key_of
from nitka.layers.facts.reconcile import (
    AHEAD,
    BY_HAND,
    Change,
    Reconciled,
    not_ahead,
    reconcile,
    retract_by_hand,
    set_by_hand,
)
from nitka.layers.facts.rules import extract
from nitka.layers.facts.slots import CATEGORIES, Category, category_of, is_many

__all__ = [
    "AHEAD",
    "BY_HAND",
    "CATEGORIES",
    "USER",
    "Candidate",
    "Category",
    "Change",
    "Fact",
    "Key",
    "Reconciled",
    "RestsOn",
    "Seen",
    "category_of",
    "current",
    "extract",
    "is_many",
    "key_of",
    "not_ahead",
    "reconcile",
    "rests_on",
    "retract_by_hand",
    "set_by_hand",
    "touches",
    "without_rows",
]
