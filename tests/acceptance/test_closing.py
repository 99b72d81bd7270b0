"""What closing leaves behind: a fold that was cut off is due for whoever opens next, at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from nitka.types import Line, Message, Proposal
from tests.laws.world import WIDE, World

pytestmark = pytest.mark.anyio


class Stuck:
    """A summariser that never answers."""

    name = "stuck"

    async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
        await asyncio.Event().wait()
        raise AssertionError("nothing sets the event")


async def test_a_fold_cut_off_by_closing_is_taken_by_the_next_opener() -> None:
    world = World()
    limits = replace(WIDE, close_seconds=0.05)
    tally, world.tally = world.tally, Stuck()  # type: ignore[assignment]
    async with world.open(limits=limits) as nitka:
        for number in range(4):
            await nitka.say("anna", "s", text=f"text {number}")
        await asyncio.sleep(0.05)
    world.tally = tally
    async with world.open(limits=limits) as nitka:
        await nitka.settle()
        assert (await nitka.summary("anna", "s")).cursor == 4


async def test_pieces_over_the_limit_are_kept_up_to_it() -> None:
    """They were handed out already; whole characters only."""
    async with World().open(limits=replace(WIDE, message_bytes=10)) as nitka:
        with pytest.raises(RuntimeError):
            async with nitka.turn("anna", "s", text="hi") as turn:
                turn.piece("нитка нитка")
                raise RuntimeError
        (_, answer) = await nitka.history("anna", "s")
    assert (answer.text, answer.interrupted) == ("нитка", True)
