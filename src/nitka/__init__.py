"""nitka: conversation state for models that remember nothing.

    async with Nitka.open("sqlite:///nitka.db", model="openai:gpt-5-mini") as nitka:
        reply = await nitka.say("anna", "web-1", text="What did we decide about the cake?")

What is promised: the names below, `nitka.sync`, `nitka.watch`, `nitka.testing` and `nitka.integrations`. Everything
else may change.
"""

from nitka.app import Nitka
from nitka.errors import (
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
from nitka.types import Budget, Limits, Message, Passage, Receipt, Reply, Request, SessionInfo, Summary, User

__all__ = [
    "BadId",
    "BadInput",
    "BadText",
    "Budget",
    "Damaged",
    "Forgotten",
    "KeyMissing",
    "KeyReused",
    "Limits",
    "Message",
    "ModelError",
    "Nitka",
    "NitkaError",
    "OverBudget",
    "Passage",
    "Receipt",
    "Reply",
    "Request",
    "SessionInfo",
    "StoreBusy",
    "StoreError",
    "Summary",
    "User",
    "WrongKey",
]
