"""What forgetting leaves in this process and on its list, beside what it removes from the store."""

from __future__ import annotations

import asyncio
import gc

import pytest

from nitka import Nitka
from nitka.store.port import Effort
from nitka.testing import FakeModel, FixedClock, MemoryStore, memory_ring
from nitka.types import Erased, Message
from nitka.vault.keychain import Keychain

pytestmark = pytest.mark.anyio


class Large(MemoryStore):
    """A store too large to be built anew while a caller waits; it counts how often it was."""

    def __init__(self) -> None:
        super().__init__()
        self.rebuilt = 0

    async def scrub(self, effort: Effort = "short") -> bool:
        self.rebuilt += effort == "whole"
        return effort != "short"


def opened(store: MemoryStore) -> Nitka:
    return Nitka.open(store, model=FakeModel(), fold_model="offline", keys=memory_ring(), clock=FixedClock())


def in_memory(text: str) -> bool:
    """Whether any object of this process is a message with that text."""
    gc.collect()
    return any(isinstance(item, Message) and item.text == text for item in gc.get_objects())


async def test_pending_erasures_are_finished_by_one_rebuild_however_many_they_are() -> None:
    store = Large()
    async with opened(store) as nitka:
        for number in range(5):
            await nitka.say("anna", f"s{number}", text="hello")
            assert (await nitka.forget("anna", session=f"s{number}")).erasure == "pending"
        await nitka.say("boris", "s", text="hello")
        assert (await nitka.forget("boris")).erasure == "pending"
        assert (await nitka.settle()).erased == 6
        assert store.rebuilt == 1
        assert (await nitka.settle()).erased == 0
    assert store.rebuilt == 1


@pytest.mark.parametrize("turn", [None, 0])
async def test_of_two_who_forget_the_same_at_once_one_counts_it_and_the_other_has_nothing_to_do(
    turn: int | None,
) -> None:
    async with opened(MemoryStore()) as nitka:
        await nitka.say("anna", "s", text="hello")
        both = await asyncio.gather(*(nitka.forget("anna", session="s", turn=turn) for _ in range(2)))
    assert sum(erased.messages for erased in both) == 2
    assert Erased() in both


@pytest.mark.parametrize("how", ["turn", "session", "user", "replaced"])
async def test_what_was_forgotten_is_not_even_in_the_memory_of_the_process(how: str) -> None:
    """Law 9: nothing survives in any cache; opened rows stay in memory for the next turn."""
    text = "".join(["my pass", "port is in the blue drawer"])
    async with opened(MemoryStore()) as nitka:
        await nitka.say("anna", "s", text=text)
        assert in_memory(text)
        if how == "replaced":
            await nitka.say("anna", "s", text="something else", replaces=0)
        else:
            await nitka.forget("anna", session=None if how == "user" else "s", turn=0 if how == "turn" else None)
        await nitka.settle()  # a fold that was reading it meanwhile has come to its end
        assert not in_memory(text)


async def test_opened_keys_and_what_they_opened_are_dropped_when_their_time_is_over() -> None:
    now = 0.0
    async with opened(MemoryStore()) as nitka:
        await nitka.say("anna", "s", text="a text of its own")
        keychain: Keychain = nitka._vault.keychain
        keychain._clock = lambda: now + 1e9
        assert in_memory("a text of its own")
        keychain.expire()
        assert not in_memory("a text of its own")
        assert (await nitka.history("anna", "s"))[0].text == "a text of its own"
