"""The watch as a fold of the chat: off unless switched on, in step with the log, never in the way of a turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nitka import BadInput, User
from nitka.testing import FakeModel, MemoryStore
from nitka.watching import Watching
from tests.laws.world import World

pytestmark = pytest.mark.anyio

STORIES = {
    "en": ("Where are your parents now?", "Can you turn on your camera?"),
    "ru": ("Где сейчас твои родители?", "Ты можешь включить камеру?"),
}
ON: Mapping[str, str] = {"": "protecting minors in a test"}


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Any) -> World:
    return World(tmp_path if request.param == "sqlite" else None)


@pytest.mark.parametrize("language", STORIES)
async def test_the_story_of_the_seed_raises_its_alert_with_the_reply(world: World, language: str) -> None:
    first, second = STORIES[language]
    async with world.open(watch=ON) as nitka:
        quiet = await nitka.say("anna", "s", text=first)
        loud = await nitka.say("anna", "s", text=second)
        records = [record async for record in nitka.export("anna", what="all")]
    assert quiet.alerts == ()
    assert [alert.rule for alert in loud.alerts] == ["G01"]
    assert loud.alerts[0].detail["explanation"]
    watch = next(record["watch"] for record in records if "watch" in record)
    assert [alert["rule"] for alert in watch["alerts"]] == ["G01"]


async def test_it_is_off_unless_switched_on_for_the_tenant(world: World) -> None:
    async with world.open(watch={"shop": "fraud towards our customers"}) as nitka:
        for text in STORIES["en"]:
            assert (await nitka.say("anna", "s", text=text)).alerts == ()
        assert await nitka.watch_memory("anna", "s") == {}
        shopper = User("anna", tenant="shop")
        replies = [await nitka.say(shopper, "s", text=text) for text in STORIES["en"]]
    assert [alert.rule for alert in replies[-1].alerts] == ["G01"]


async def test_a_purpose_must_be_stated() -> None:
    with pytest.raises(BadInput):
        World().open(watch={"": " "})


async def test_its_memory_can_be_read_edited_and_taken_back(world: World) -> None:
    async with world.open(watch=ON) as nitka:
        await nitka.say("anna", "s", text=STORIES["en"][0])
        assert "ask_guardian_whereabouts" in (await nitka.watch_memory("anna", "s"))["flags"]
        await nitka.set_watch_memory("anna", "s", {})
        assert (await nitka.say("anna", "s", text=STORIES["en"][1])).alerts == ()
        await nitka.set_watch_memory("anna", "s", {"flags": ["ask_guardian_whereabouts"]})
        assert (await nitka.say("anna", "s", text=STORIES["en"][1])).alerts
        with pytest.raises(BadInput):
            await nitka.set_watch_memory("anna", "s", {"flags": 7})


async def test_what_a_forgotten_turn_taught_it_is_gone(world: World) -> None:
    async with world.open(watch=ON) as nitka:
        await nitka.say("anna", "s", text=STORIES["en"][0])
        await nitka.forget("anna", session="s", turn=0)
        assert await nitka.watch_memory("anna", "s") == {}
        assert (await nitka.say("anna", "s", text=STORIES["en"][1])).alerts == ()
        await nitka.say("anna", "s", text=STORIES["en"][0])
        assert (await nitka.say("anna", "s", text=STORIES["en"][1], replaces=2)).alerts == ()


async def test_a_private_turn_teaches_it_nothing(world: World) -> None:
    async with world.open(watch=ON) as nitka:
        await nitka.say("anna", "s", text="hello there")
        await nitka.say("anna", "s", text=STORIES["en"][0], private=True)
        assert (await nitka.say("anna", "s", text=STORIES["en"][1])).alerts == ()


async def test_when_it_fails_the_turn_is_written_and_settle_catches_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.open(watch=ON) as nitka:
        await nitka.say("anna", "s", text="hello there")
        with monkeypatch.context() as broken:
            broken.setattr(Watching, "read", _fails)
            assert (await nitka.say("anna", "s", text=STORIES["en"][0])).text
            assert (await nitka.settle()).failed == 1
        await nitka.settle()
        assert [alert.rule for alert in (await nitka.say("anna", "s", text=STORIES["en"][1])).alerts] == ["G01"]


async def test_what_it_has_not_read_when_it_is_switched_off_it_does_not_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cursor is behind, the operator opens without it: work that was due is due no more."""
    store = world.store()
    async with world.open(store, watch=ON) as nitka:
        await nitka.say("anna", "s", text="hello there")
        with monkeypatch.context() as broken:
            broken.setattr(Watching, "read", _fails)
            await nitka.say("anna", "s", text=STORIES["en"][0])
            await nitka.settle()
    async with world.open(watch=None) as nitka:
        monkeypatch.setattr(Watching, "read", _fails)
        done = await nitka.settle()
        assert (done.folds, done.failed) == (0, 0)
        assert await world_due(nitka) == 0


async def world_due(nitka: Any) -> int:
    """How many pieces of work wait."""
    return len(await nitka._vault.store.lease(now=1 << 60, until=1 << 61, limit=99, early=True))


def _fails(self: Watching, before: object, messages: object) -> object:
    raise BadInput("broken on purpose")


async def test_the_assistant_is_never_the_offender() -> None:
    answers = FakeModel([*STORIES["en"], "ok"])
    world = World()
    async with world.open(MemoryStore(), model=answers, watch=ON) as nitka:
        replies = [await nitka.say("anna", "s", text=text) for text in ("hi", "and you?", "fine")]
    assert all(alert.rule != "G01" for reply in replies for alert in reply.alerts)
