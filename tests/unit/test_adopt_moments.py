"""An adoption in the middle of which something else happens: it is cut off, or another process writes or forgets."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from nitka import Adopted, Forgotten, Nitka, StoreError, Turn
from nitka.testing import FaultyStore
from tests.unit.linking import VISITOR, Between, Place, check_moved, each_moment, told, visit

pytestmark = pytest.mark.anyio


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
