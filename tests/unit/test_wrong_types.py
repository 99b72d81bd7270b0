"""What is of no use as an argument is refused by an error of ours that says so, and nothing is written."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nitka import BadInput, Budget, Limits, Nitka
from nitka.testing import FakeModel, MemoryStore, memory_ring

pytestmark = pytest.mark.anyio

CIRCLE: dict[str, Any] = {}
CIRCLE["self"] = CIRCLE
DEEP: dict[str, Any] = {}
inner = DEEP
for _ in range(100_000):
    inner["in"] = inner = {}

USELESS: dict[str, list[Any]] = {
    "budget": [1.5, float("nan"), float("inf"), "8000", b"8", [], Budget(total="x"), Budget(total=9, answer=0.5)],  # type: ignore[arg-type]
    "replaces": [1.5, "2", b"2", [], -1],
    "tools": [5, object(), [CIRCLE], [DEEP], [{1, 2}, CIRCLE]],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in USELESS.items() for value in values])
async def test_a_useless_argument_is_refused(name: str, value: Any) -> None:
    """Each is a `BadInput`, and no row is written."""
    async with Nitka.open(MemoryStore(), model=FakeModel(), keys=memory_ring()) as nitka:
        with pytest.raises(BadInput):
            async with nitka.turn("anna", "s", text="hello", **{name: value}) as turn:
                turn.answer("hello")
        assert await nitka.history("anna", "s") == ()


ASKED: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("recall", (None,), {}),
    ("recall", ("tea",), {"k": "a"}),
    ("recall", ("tea",), {"k": 0}),
    ("recall", ("tea",), {"k": True}),
    ("recall", ("tea",), {"budget": -1}),
    ("facts", (), {"about": 5}),
    ("forget", (), {"fact": 5}),
    ("forget", (), {"about": 5}),
    ("forget", (), {"about": ""}),
    ("forget", (), {"about": "user"}),
    ("set_fact", ("home.city", 5), {}),
    ("set_fact", ("home.city", "x" * 10_000), {}),
    ("set_fact", ("health.allergy", "nuts"), {}),
    ("set_fact", ("home.city", "Leeds"), {"at": "2024"}),
]


@pytest.mark.parametrize(("name", "positional", "named"), ASKED)
async def test_a_useless_argument_about_what_is_known_is_refused(
    name: str, positional: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """Each is a `BadInput` that says so, also what would have found or done nothing in silence."""
    exclude = ("health",)
    async with Nitka.open(MemoryStore(), model=FakeModel(), keys=memory_ring(), exclude=exclude) as nitka:
        with pytest.raises(BadInput):
            await getattr(nitka, name)("anna", *positional, **named)
        assert await nitka.facts("anna") == ()


async def test_a_giant_message_is_read_by_the_watch_after_it_is_written() -> None:
    """The lock that all writers wait for is not held while rules are matched; the watch catches up."""
    limits = Limits(close_seconds=60)
    async with Nitka.open(
        MemoryStore(), model=FakeModel(), keys=memory_ring(), watch={"": "test"}, limits=limits
    ) as it:
        giant = "Where are your parents now? " * 1_000
        reply = await it.say("anna", "s", text=giant)
        assert reply.alerts == ()
        for _ in range(300):
            if await it.watch_memory("anna", "s"):
                break
            await asyncio.sleep(0.1)
        await it.settle()
        assert await it.watch_memory("anna", "s")
