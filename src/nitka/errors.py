"""Everything nitka raises on purpose: one root, few leaves.

The first sentence of a class's docstring is its message; what the raiser adds says where and what to do. No error
text ever holds a text, an id or a key of a user: places are named by kind and number.
"""

from __future__ import annotations


class NitkaError(Exception):
    """Nitka could not do what was asked."""

    def __init__(self, detail: str = "") -> None:
        doc = (type(self).__doc__ or "").strip().split("\n", maxsplit=1)[0]
        super().__init__(f"{doc} {detail}".strip())


class BadInput(NitkaError):
    """An argument cannot be used."""


class BadId(BadInput):
    """An id must be 1 to 512 bytes of UTF-8 without NUL and without lone surrogates; ids are never repaired."""


class BadText(BadInput):
    """A text must not be blank and must not be longer than the limit."""


class KeyReused(BadInput):
    """This turn key already belongs to a turn with another text."""


class AlreadyKnown(BadInput):
    """The handle has memory of its own or belongs to another user; nothing was linked.

    The counts are of what it has of its own; all are zero where it is another user's.
    """

    def __init__(self, detail: str = "", *, sessions: int = 0, messages: int = 0, facts: int = 0) -> None:
        super().__init__(detail)
        self.sessions = sessions
        self.messages = messages
        self.facts = facts


class OverBudget(BadInput):
    """What may never be left out of a request exceeds the budget alone."""


class Forgotten(NitkaError):
    """What this call refers to has been forgotten; nothing was written."""


class KeyMissing(NitkaError):
    """The store holds encrypted data, but there is no key ring to open it with."""


class WrongKey(NitkaError):
    """The key ring does not belong to this store; nothing was read or written."""


class Damaged(NitkaError):
    """A stored value does not open: it was altered, cut off, or moved from where it was written."""


class StoreError(NitkaError):
    """The store cannot be used."""


class StoreBusy(StoreError):
    """The store was locked by somebody else for longer than the stated wait; nothing was written."""


class ModelError(NitkaError):
    """The model gave no usable answer.

    Nothing is written of a turn that fails with it, but for pieces that were handed out before: those are kept, marked
    interrupted.
    """

    def __init__(self, detail: str = "", *, retryable: bool = False, status: int | None = None) -> None:
        super().__init__(detail)
        self.retryable = retryable
        self.status = status
