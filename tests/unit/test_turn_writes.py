"""How often a turn is sent to the store: again where the outcome is unknown, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from nitka import ModelError, Nitka, StoreBusy, StoreError
from nitka.store.port import NOBODY, Scope, Step
from nitka.testing import FakeModel, MemoryStore, memory_ring

pytestmark = pytest.mark.anyio


class Moody(MemoryStore):
    """A memory store whose next changes fail as it is told, before or after they took effect."""

    def __init__(self, *moods: tuple[type[StoreError], bool]) -> None:
        super().__init__()
        self.moods = list(moods)
        self.changes = 0

    async def change(self, scope: Scope, step: Step) -> Any:
        if scope.session == NOBODY:  # what folds write of a person
            return await super().change(scope, step)
        self.changes += 1
        error, after = self.moods.pop(0) if self.moods else (None, True)
        done = await super().change(scope, step) if after else None
        if error is not None:
            raise error()
        return done


async def said(store: Moody) -> list[str]:
    """The texts that are stored after one turn, whatever became of it."""
    async with Nitka.open(store, model=FakeModel(lambda _: "fine"), keys=memory_ring()) as nitka:
        try:
            await nitka.say("anna", "s", text="hello")
        finally:
            store.moods.clear()
            texts = [message.text for message in await nitka.history("anna", "s")]
        return texts


async def test_a_busy_store_is_not_waited_for_twice() -> None:
    store = Moody((StoreBusy, False), (StoreBusy, False))
    with pytest.raises(StoreBusy):
        await said(store)
    assert store.changes == 1


@pytest.mark.parametrize("after", [False, True])
async def test_an_unknown_outcome_is_made_sure_of(after: bool) -> None:
    store = Moody((StoreError, after))
    assert await said(store) == ["hello", "fine"]
    assert store.changes == 2


@pytest.mark.parametrize("after", [False, True])
async def test_an_unknown_outcome_stays_unknown_when_the_store_is_busy_then(after: bool) -> None:
    """Not `StoreBusy`, which would say that nothing was written."""
    store = Moody((StoreError, after), (StoreBusy, False))
    with pytest.raises(StoreError) as caught:
        await said(store)
    assert not isinstance(caught.value, StoreBusy)


@pytest.mark.parametrize("pieces", [0, 2])
async def test_a_model_s_error_says_nothing_of_what_was_written(pieces: int) -> None:
    """Its first sentence is true whether pieces were handed out, and are kept, or not."""

    class Broken(FakeModel):
        async def stream(self, messages: Any, *, max_tokens: int) -> Any:
            for number in range(pieces):
                yield f"piece {number} "
            raise ModelError("Network.")

    store = Moody()
    async with Nitka.open(store, model=Broken(lambda _: ""), keys=memory_ring()) as nitka:
        with pytest.raises(ModelError) as caught:
            async with nitka.say("anna", "s", text="hello", stream=True) as stream:
                async for _ in stream:
                    pass
        assert len(await nitka.history("anna", "s")) == (2 if pieces else 0)
    assert "written" not in str(caught.value) and "kept" not in str(caught.value)
