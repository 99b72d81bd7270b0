"""Recall in the life of a conversation: the index as a fold, its vectors, and what a turn is given of it.

The index is a fold over all rows of a person, like facts: a sealed ledger with cursor and version (`shelf`), beside it
sealed segments that are only ever added, merged, or rewritten without what was forgotten (`folding`). It is opened
into memory beside the answer's path and dropped again (`memory`), and searched there by plain array arithmetic
(`asking`); what is shown is read from the rows themselves (`shown`). No plaintext of it is ever written anywhere.

It knows the facts of a person only to rank them for a question and to give them vectors.
"""

from nitka.layers.recall import installed
from nitka.recalling.asking import Recollected
from nitka.recalling.service import Recalling
from nitka.recalling.shelf import without_rows

__all__ = ["Recalling", "Recollected", "warm", "without_rows"]


def warm() -> None:
    """Opens the dictionaries, once a process."""
    installed()("words", "en")
