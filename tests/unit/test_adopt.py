"""`adopt`: the visitor who signs in. What he said is the user's then, once, and he is gone; whatever comes between."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nitka import Adopted, BadInput, Damaged, Forgotten, Handle, Nitka, StoreError, Turn, User, adopting
from nitka.door import as_user
from nitka.testing import FaultyStore
from tests.unit.linking import Between, Place, each_moment, listed, told

pytestmark = pytest.mark.anyio

VISITOR = Handle("web", "cookie-1")
LONG_AGO = datetime(2020, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """On memory and on SQLite."""
    return Place(tmp_path if request.param == "sqlite" else None)


async def visit(nitka: Nitka, who: Any = VISITOR) -> None:
    """Two sessions side by side, one of which the user has too; a turn cut off, one forgotten; facts by hand."""
    await nitka.record(who, "s", text="v0", answer="a0", at=LONG_AGO, zone="Europe/Riga", channel="web")
    await nitka.say(who, "t", text="v1", channel="web")
    await nitka.say(who, "s", text="v2", key="k")
    with contextlib.suppress(ZeroDivisionError):
        async with nitka.turn(who, "t", text="v3") as turn:
            turn.piece("a piece")
            _ = 1 / 0
    await nitka.say(who, "t", text="v4 which is forgotten")
    await nitka.forget(who, session="t", turn=4)
    await nitka.set_fact(who, "home.city", "Riga")
    await nitka.set_fact(who, "food.likes", "plums")


MOVED = {
    "s": [("u0", "re u0"), ("v0", "a0"), ("v2", "re v2")],
    "t": [("v1", "re v1"), ("v3", "a piece")],
}


async def check_moved(nitka: Nitka, who: Any = VISITOR) -> None:
    """The user has it all, once; the visitor is gone from the store, his key too."""
    assert await told(nitka, "anna") == MOVED
    assert await told(nitka, who) == {}
    assert {fact.value for fact in await nitka.facts("anna") if fact.by_hand} == {"Riga", "plums"}
    store = nitka._vault.store
    assert len(await store.owners()) == 1
    assert await store.keys.user_key(await nitka._vault.owner_id(as_user(who))) is None


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


@pytest.mark.parametrize("after", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_cut_off_at_any_call_and_called_again_it_is_as_if_it_had_not_been(
    kind: str, after: bool, tmp_path: Path
) -> None:
    """At every call of the store in memory, at every eleventh on SQLite, in two processes."""

    async def meet(at: int) -> int:
        place = Place(tmp_path / str(at) if kind == "sqlite" else None)
        if place.path:
            place.path.parent.mkdir()
        async with place.open() as nitka:
            await nitka.say("anna", "s", text="u0")
            await visit(nitka)
        faulty = FaultyStore(place.store(), at=-1, after=after)
        async with place.open(faulty) as nitka:
            faulty._at, faulty.calls = at, 0
            with contextlib.suppress(StoreError):
                assert await nitka.adopt(VISITOR, "anna") == Adopted(sessions=2, messages=8, facts=2)
            calls, faulty._at = faulty.calls, -1
        async with place.open() as nitka:
            await nitka.adopt(VISITOR, "anna")
            await nitka.settle()
            await check_moved(nitka)
            assert await nitka._vault.store.erasures() == []
            await nitka.say("anna", "s", text="My cat is called Tom.")
        return calls

    if kind == "memory":
        await each_moment(meet)
    else:
        await each_moment(lambda step: _every(11, step, meet))


async def _every(stride: int, step: int, meet: Callable[[int], Awaitable[int]]) -> int:
    return -(-await meet(step * stride) // stride)


async def test_a_session_begun_anew_between_two_attempts_is_not_taken_for_the_one_before() -> None:
    """The same name, the same numbers, even the same words: it is another session, and its turns come over."""

    async def meet(at: int) -> int:
        place = Place()
        async with place.open() as nitka:
            await nitka.say(VISITOR, "s", text="the same")
            await nitka.say(VISITOR, "s", text="v1")
        faulty = FaultyStore(place.store(), at=-1)
        async with place.open(faulty) as nitka:
            faulty._at, faulty.calls = at, 0
            with contextlib.suppress(StoreError):
                await nitka.adopt(VISITOR, "anna")
            calls, faulty._at = faulty.calls, -1
        async with place.open() as nitka:
            moved = (await told(nitka, "anna")).get("s", [])
            await nitka.forget(VISITOR, session="s")
            for text in ("the same", "others"):
                await nitka.say(VISITOR, "s", text=text)
            assert await nitka.adopt(VISITOR, "anna") == Adopted(sessions=1, messages=4)
            both = [*moved, ("the same", "re the same"), ("others", "re others")]
            assert await told(nitka, "anna") == {"s": both}
        return calls

    await each_moment(meet)


class LateTurn:
    """A turn of the visitor's that was opened in another process, and what became of it."""

    def __init__(self, nitka: Nitka, session: str) -> None:
        self._block = nitka.turn(VISITOR, session, text="late")
        self._turn: Turn | None = None
        self.written = False

    async def open(self) -> None:
        self._turn = await self._block.__aenter__()

    async def end(self) -> None:
        if self._turn is None:
            await self.open()
        assert self._turn is not None
        self._turn.answer("re late")
        with contextlib.suppress(Forgotten):
            await self._block.__aexit__(None, None, None)
            self.written = True


@pytest.mark.parametrize("opened", [False, True], ids=["opened and ended", "opened before"])
@pytest.mark.parametrize("session", ["s", "new"])
async def test_a_turn_of_the_visitors_at_any_moment_is_moved_or_refused_or_his_own(opened: bool, session: str) -> None:
    """Never lost: an acknowledged turn is the user's, or, when it began after the adoption, a new visitor's."""
    outcomes = set()

    async def meet(at: int) -> int:
        place = Place()
        between = Between(place.store())
        async with place.open() as other, place.open(between) as nitka:
            await nitka.say("anna", "s", text="u0")
            await nitka.say(VISITOR, "s", text="v0")
            late = LateTurn(other, session)
            if opened:
                await late.open()
            between.arm(at, late.end)
            adopted = await nitka.adopt(VISITOR, "anna")
            calls = await between.disarm()
            annas, visitors = await told(other, "anna"), await told(other, VISITOR)
            expected: dict[str, list[tuple[str, str]]] = {"s": [("u0", "re u0"), ("v0", "re v0")]}
            moved = ("late", "re late") in annas.get(session, [])
            if moved:
                expected.setdefault(session, []).append(("late", "re late"))
            assert annas == expected
            assert visitors == ({session: [("late", "re late")]} if late.written and not moved else {})
            assert adopted.messages == 2 + 2 * moved
            outcomes.add("moved" if moved else "own" if late.written else "refused")
        return calls

    await each_moment(meet)
    assert outcomes >= ({"moved", "refused"} if opened else {"moved"})


@pytest.mark.parametrize("whole", [False, True], ids=["turn", "session"])
async def test_what_the_visitor_forgets_at_any_moment_does_not_come_over(whole: bool) -> None:
    """Law 9: what he was told is gone is not the user's either."""
    counts = set()

    async def meet(at: int) -> int:
        place = Place()
        between = Between(place.store())
        async with place.open() as other, place.open(between) as nitka:
            for turn in range(3):
                await nitka.say(VISITOR, "s", text=f"v{turn}")
            await nitka.say(VISITOR, "t", text="stays")
            gone = 0

            async def forget() -> None:
                nonlocal gone
                gone = (await other.forget(VISITOR, session="s", turn=None if whole else 2)).messages

            between.arm(at, forget)
            await nitka.adopt(VISITOR, "anna")
            calls = await between.disarm()
            left = [(f"v{turn}", f"re v{turn}") for turn in range(3) if not gone or (turn != 1 and not whole)]
            expected = {"s": left, "t": [("stays", "re stays")]}
            assert await told(other, "anna") == {name: turns for name, turns in expected.items() if turns}
            counts.add(gone)
        return calls

    await each_moment(meet)
    assert counts == {0, 6 if whole else 2}


async def test_a_fact_set_by_hand_at_any_moment_is_the_users_or_a_new_visitors() -> None:
    async def meet(at: int) -> int:
        place = Place()
        between = Between(place.store())
        async with place.open() as other, place.open(between) as nitka:
            await nitka.say(VISITOR, "s", text="v0")
            refused = False

            async def set_fact() -> None:
                nonlocal refused
                try:
                    await other.set_fact(VISITOR, "home.city", "Riga")
                except Forgotten:
                    refused = True

            between.arm(at, set_fact)
            await nitka.adopt(VISITOR, "anna")
            calls = await between.disarm()
            held = [len(await other.facts(who)) for who in ("anna", VISITOR)]
            assert sum(held) == 1 - refused
        return calls

    await each_moment(meet)


async def test_two_adoptions_at_once_are_one() -> None:
    """A sign-in that is delivered twice."""

    async def meet(at: int) -> int:
        place = Place()
        between = Between(place.store())
        async with place.open() as other, place.open(between) as nitka:
            await nitka.say("anna", "s", text="u0")
            await visit(nitka)

            async def again() -> None:
                await other.adopt(VISITOR, "anna")

            between.arm(at, again)
            await nitka.adopt(VISITOR, "anna")
            calls = await between.disarm()
            await check_moved(other)
        return calls

    await each_moment(meet)


async def test_a_user_who_is_forgotten_meanwhile_is_not_brought_back() -> None:
    """Then the adoption ends with `Forgotten`, or the user has nothing; the visitor's words are not lost by it."""

    async def meet(at: int) -> int:
        place = Place()
        between = Between(place.store())
        async with place.open() as other, place.open(between) as nitka:
            await nitka.say("anna", "s", text="u0")
            for turn in range(2):
                await nitka.say(VISITOR, "s", text=f"v{turn}")
            between.arm(at, lambda: _forget(other))
            done = False
            with contextlib.suppress(Forgotten):
                await nitka.adopt(VISITOR, "anna")
                done = True
            calls = await between.disarm()
            annas, visitors = await told(other, "anna"), await told(other, VISITOR)
            assert ("u0", "re u0") not in annas.get("s", []) or at >= calls
            assert visitors == ({} if done else {"s": [("v0", "re v0"), ("v1", "re v1")]})
        return calls

    await each_moment(meet)


async def _forget(nitka: Nitka) -> None:
    await nitka.forget("anna")


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
