"""`adopt`: the visitor who signs in. What he said is the user's then, once, and he is gone; whatever comes between."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from nitka import Adopted, BadInput, Damaged, User, adopting
from tests.unit.linking import LONG_AGO, VISITOR, Place, check_moved, listed, told, visit

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """On memory and on SQLite."""
    return Place(tmp_path if request.param == "sqlite" else None)


@pytest.mark.parametrize("who", [VISITOR, "visitor-1"], ids=["handle", "user"])
async def test_what_a_visitor_said_is_the_users_and_the_visitor_is_gone(place: Place, who: Any) -> None:
    async with place.open() as nitka:
        await nitka.say("anna", "s", text="u0")
        await visit(nitka, who)
        assert await nitka.adopt(who, "anna") == Adopted(sessions=2, messages=8, facts=2)
        await check_moved(nitka, who)
        assert await nitka.adopt(who, "anna") == Adopted(), "there is nothing left to adopt"
        await nitka.settle()
        await check_moved(nitka, who)


async def test_times_zones_channels_and_interruptions_are_kept(place: Place) -> None:
    async with place.open() as nitka:
        await visit(nitka)
        before = {info.id: await nitka.history(VISITOR, info.id) for info in await nitka.sessions(VISITOR)}
        infos = {info.id: info for info in await nitka.sessions(VISITOR)}
        place.clock.advance(days=3)
        await nitka.adopt(VISITOR, "anna")
        assert {info.id: info for info in await nitka.sessions("anna")} == infos
        for session, rows in before.items():
            after = await nitka.history("anna", session)
            kept = ("role", "text", "at", "zone", "channel", "interrupted")
            assert [[getattr(row, name) for name in kept] for row in after] == [
                [getattr(row, name) for name in kept] for row in rows
            ]
        first = (await nitka.history("anna", "s"))[0]
        assert (first.at, first.zone, first.channel) == (LONG_AGO, "Europe/Riga", "web")


async def test_rows_come_over_in_the_order_in_which_they_were_written(place: Place) -> None:
    """Sessions side by side stay so: whatever reads a person's rows in order reads them as they were said."""
    async with place.open() as nitka:
        for turn in range(6):
            await nitka.say(VISITOR, "st"[turn % 2], text=f"v{turn}")
        await nitka.adopt(VISITOR, "anna")
        rows = [row for session in "st" for row in await nitka.history("anna", session) if row.role == "user"]
        assert [row.text for row in sorted(rows, key=lambda row: row.n)] == [f"v{turn}" for turn in range(6)]


async def test_a_session_that_both_have_is_as_late_as_its_latest_turn(place: Place) -> None:
    async with place.open() as nitka:
        await nitka.record(VISITOR, "s", text="v0", answer="a0", at=LONG_AGO)
        await nitka.say("anna", "s", text="u0")
        before = (await nitka.sessions("anna"))[0].last
        await nitka.adopt(VISITOR, "anna")
        assert (await nitka.sessions("anna"))[0].last == before


async def test_after_an_adoption_the_handle_can_be_linked_and_the_visitor_may_come_again(place: Place) -> None:
    async with place.open() as nitka:
        await nitka.say(VISITOR, "s", text="v0")
        await nitka.adopt(VISITOR, "anna")
        await nitka.say(VISITOR, "s", text="v0")
        assert await told(nitka, VISITOR) == {"s": [("v0", "re v0")]}
        assert await nitka.adopt(VISITOR, "anna") == Adopted(sessions=1, messages=2), "the same words, said anew"
        await nitka.link("web", "cookie-1", "anna")
        assert await nitka.adopt(VISITOR, "anna") == Adopted(), "he is the user now"
        assert await told(nitka, VISITOR) == {"s": [("v0", "re v0")] * 2}


async def test_what_was_taken_back_or_forgotten_is_not_learnt_from_the_rows_that_come_over(place: Place) -> None:
    async with place.open() as nitka:
        await nitka.say(VISITOR, "s", text="My name is Olga. I live in Riga.")
        await nitka.say(VISITOR, "s", text="I am allergic to peanuts.")
        await nitka.settle()
        facts = {fact.slot: fact for fact in await nitka.facts(VISITOR)}
        assert len(facts) >= 3
        forgotten = next(fact for fact in facts.values() if fact.value == "Riga")
        await nitka.forget(VISITOR, fact=forgotten.id)
        retracted = next(fact for fact in facts.values() if fact.value == "Olga")
        await nitka.retract_fact(VISITOR, retracted.id)
        left = {(fact.slot, fact.value) for fact in await nitka.facts(VISITOR)}
        await nitka.adopt(VISITOR, "anna")
        await nitka.settle()
        assert {(fact.slot, fact.value) for fact in await nitka.facts("anna")} == left != set()
        await nitka.say("anna", "s", text="I live in Riga.")
        await nitka.settle()
        assert "Riga" in {fact.value for fact in await nitka.facts("anna")}, "newer words teach again"


async def test_another_tenant_or_one_with_handles_is_no_visitor(place: Place) -> None:
    async with place.open() as nitka:
        await nitka.say(User("v", "shop"), "s", text="v0")
        await nitka.link("web", "cookie-1", "boris")
        await nitka.say(VISITOR, "s", text="boris's")
        for visitor in (User("v", "shop"), "boris", VISITOR):
            with pytest.raises(BadInput):
                await nitka.adopt(visitor, "anna")
        assert await told(nitka, "boris") == {"s": [("boris's", "re boris's")]}
        assert await told(nitka, User("v", "shop")) == {"s": [("v0", "re v0")]}
        assert await told(nitka, "anna") == {}


async def test_what_does_not_open_keeps_the_visitor(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.open() as nitka:
        await nitka.say(VISITOR, "s", text="v0")
        await nitka.say(VISITOR, "s", text="v1")
        await nitka._vault.store._file.write(  # type: ignore[attr-defined]
            lambda db: db.execute("delete from messages where seq = 2")
        )
        with pytest.raises(Damaged):
            await nitka.adopt(VISITOR, "anna")
        assert [info.messages for info in await nitka.sessions(VISITOR)] == [4]


async def test_a_long_visit_with_a_forgotten_session_in_it_comes_over_whole(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More rows than are read at once, with gaps in their numbers."""
    monkeypatch.setattr(adopting, "PAGE", 10)
    async with place.open() as nitka:
        for turn in range(30):
            await nitka.record(VISITOR, "gone" if turn % 3 == 0 else "s", text=f"v{turn}", answer="a")
        await nitka.forget(VISITOR, session="gone")
        assert await nitka.adopt(VISITOR, "anna") == Adopted(sessions=1, messages=40)
        assert await told(nitka, "anna") == {"s": [(f"v{turn}", "a") for turn in range(30) if turn % 3]}


async def test_a_summary_is_made_anew_and_a_long_visit_still_opens(place: Place) -> None:
    """More rows than the backlog allows: the next turn catches up, and nothing of the visit is missing from it."""
    async with place.open() as nitka:
        for turn in range(25):
            at = LONG_AGO + timedelta(minutes=turn)
            await nitka.record(VISITOR, "s", text=f"I ordered {turn + 100} blue plates.", answer="Noted.", at=at)
        await nitka.adopt(VISITOR, "anna")
        async with nitka.turn("anna", "s", text="What did I order?") as turn_:
            receipt = turn_.receipt
            assert receipt is not None and receipt.head == 50
            turn_.answer("Plates.")
        await nitka.settle()
        summary = await nitka.summary("anna", "s")
        assert summary.cursor == 52 - 4
        assert len(await listed(nitka.export("anna"))) == 52


async def test_the_watch_goes_on_where_it_was(place: Place) -> None:
    """What it noticed of the visitor, it knows of the user: a pattern over both is seen."""
    async with place.open(watch={"": "protecting minors in a test"}) as nitka:
        await nitka.say(VISITOR, "s", text="Where are your parents now?")
        await nitka.adopt(VISITOR, "anna")
        reply = await nitka.say("anna", "s", text="Can you turn on your camera?")
        assert [alert.rule for alert in reply.alerts] == ["G01"]
