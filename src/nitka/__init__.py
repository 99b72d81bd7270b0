"""nitka: conversation state for models that remember nothing.

    async with Nitka.open("sqlite:///nitka.db", model="openai:gpt-5-mini") as nitka:
        reply = await nitka.say("anna", "web-1", text="What did we decide about the cake?")

What is promised: the names below, `nitka.sync`, `nitka.watch` and `nitka.testing`. Everything else may
change.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nitka.app import Nitka
    from nitka.errors import (
        AlreadyKnown,
        BadId,
        BadInput,
        BadText,
        Damaged,
        Forgotten,
        KeyMissing,
        KeyReused,
        ModelError,
        NitkaError,
        OverBudget,
        StoreBusy,
        StoreError,
        WrongKey,
    )
    from nitka.tokens import Counter
    from nitka.turn import Stream, Turn
    from nitka.types import (
        Adopted,
        Alert,
        Budget,
        Entry,
        Erased,
        Fact,
        Handle,
        Limits,
        Line,
        Message,
        Passage,
        PastValue,
        Profile,
        Recalled,
        Receipt,
        Reply,
        Request,
        SessionInfo,
        Settled,
        Summary,
        User,
    )

__all__ = [
    "Adopted",
    "Alert",
    "AlreadyKnown",
    "BadId",
    "BadInput",
    "BadText",
    "Budget",
    "Counter",
    "Damaged",
    "Entry",
    "Erased",
    "Fact",
    "Forgotten",
    "Handle",
    "KeyMissing",
    "KeyReused",
    "Limits",
    "Line",
    "Message",
    "ModelError",
    "Nitka",
    "NitkaError",
    "OverBudget",
    "Passage",
    "PastValue",
    "Profile",
    "Recalled",
    "Receipt",
    "Reply",
    "Request",
    "SessionInfo",
    "Settled",
    "StoreBusy",
    "StoreError",
    "Stream",
    "Summary",
    "Turn",
    "User",
    "WrongKey",
]

_HOMES = (
    {name: "nitka.errors" for name in __all__}
    | {
        name: "nitka.types"
        for name in (
            "Adopted",
            "Alert",
            "Budget",
            "Entry",
            "Erased",
            "Fact",
            "Handle",
            "Limits",
            "Line",
            "Message",
            "Passage",
            "PastValue",
            "Profile",
            "Recalled",
            "Receipt",
            "Reply",
            "Request",
            "SessionInfo",
            "Settled",
            "Summary",
            "User",
        )
    }
    | {"Counter": "nitka.tokens", "Nitka": "nitka.app", "Stream": "nitka.turn", "Turn": "nitka.turn"}
)


def __getattr__(name: str) -> object:
    """A public name is loaded when it is first used, so that `nitka.watch` does not pay for the rest (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
