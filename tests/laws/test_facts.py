"""Facts as a fold: one slot one fact, nothing learned twice, nothing left of what was forgotten (laws 3, 8, 9, 11)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nitka import BadInput, Damaged, Limits, Nitka, StoreError, User
from nitka.layers.facts import CATEGORIES
from nitka.store.port import Store
from nitka.testing import FakeModel, FaultyStore, FixedClock, MemoryStore, memory_ring
from nitka.types import Fact
from nitka.vault.roots import KeyRing

# Each says one thing, or takes it back; together they confirm, update, retract, and name another.
SAID = (
    "I live in Leeds.",
    "I live in Porto.",
    "I moved to Leeds.",
    "My name is Tom.",
    "I'm allergic to peanuts.",
    "I am allergic to shrimp.",
    "I like tea.",
    "I don't like tea.",
    "My brother Corin lives in York.",
    "Меня зовут Инна.",
    "Я живу в Казани.",
    "Nothing much today.",
)
TURNS = st.lists(st.tuples(st.sampled_from(("web", "phone")), st.sampled_from(SAID)), min_size=1, max_size=8)
pytestmark = pytest.mark.anyio

NAMES = ("Tom", "Uma", "Vera", "Wim")

SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def opened(store: Store | str, ring: KeyRing | None = None, **more: Any) -> Nitka:
    usual: dict[str, Any] = {"model": FakeModel(), "fold_model": "offline", "clock": FixedClock()}
    usual["limits"] = Limits(recall_wait=30)  # what is right does not depend on how busy the machine is
    return Nitka.open(store, keys=ring or memory_ring(), **(usual | more))


async def tell(nitka: Nitka, turns: Sequence[tuple[str, str]], *, user: str | User = "anna") -> None:
    start = datetime.fromisoformat("2026-01-05T09:00:00+00:00")
    for minute, (session, text) in enumerate(turns):
        await nitka.record(user, session, text=text, answer="ok", at=start + timedelta(minutes=minute))


def bare(facts: Sequence[Fact]) -> set[tuple[Any, ...]]:
    """What is known, without the numbers that a row has by its place."""
    return {
        (fact.about, fact.slot, fact.value.casefold(), fact.current, fact.confirmations, fact.last_seen,
         tuple(past.value.casefold() for past in fact.past))
        for fact in facts
    }  # fmt: skip


@given(turns=TURNS, gone=st.sets(st.integers(0, 7)))
@SLOW
def test_a_forgotten_turn_was_never_said(turns: list[tuple[str, str]], gone: set[int]) -> None:
    """What is known after forgetting some turns is what would be known had they never been said."""

    async def known(said: list[tuple[str, str]], forget: set[int]) -> set[tuple[Any, ...]]:
        async with opened(MemoryStore()) as nitka:
            await tell(nitka, said)
            await nitka.settle()
            for at in forget:
                seq = 2 * sum(session == said[at][0] for session, _ in said[:at])
                await nitka.forget("anna", session=said[at][0], turn=seq)
            await nitka.settle()
            return bare(await nitka.facts("anna", include_past=True))

    async def both() -> None:
        forget = {at for at in gone if at < len(turns)}
        after = await known(turns, forget)
        kept = [(session, text) if at not in forget else (session, "Hm.") for at, (session, text) in enumerate(turns)]
        assert after == await known(kept, set())

    asyncio.run(both())


@given(turns=TURNS)
@SLOW
def test_however_the_fold_is_cut_the_facts_are_the_same(turns: list[tuple[str, str]]) -> None:
    async def known(every: int) -> set[tuple[Any, ...]]:
        async with opened(MemoryStore()) as nitka:
            for at in range(0, len(turns), every):
                start = datetime.fromisoformat("2026-01-05T09:00:00+00:00")
                for more, (session, text) in enumerate(turns[at : at + every]):
                    when = start + timedelta(minutes=at + more)
                    await nitka.record("anna", session, text=text, answer="ok", at=when)
                await nitka.settle()
            return bare(await nitka.facts("anna", include_past=True))

    async def all_ways() -> None:
        one, three, whole = await known(1), await known(3), await known(99)
        assert one == three == whole

    asyncio.run(all_ways())


@given(turns=TURNS, fail=st.integers(0, 60))
@SLOW
def test_a_store_that_fails_anywhere_costs_no_fact_and_doubles_none(turns: list[tuple[str, str]], fail: int) -> None:
    async def run() -> None:
        async with opened(MemoryStore()) as nitka:
            await tell(nitka, turns)
            await nitka.settle()
            wanted = bare(await nitka.facts("anna", include_past=True))
        inner, ring = MemoryStore(), memory_ring()
        async with opened(inner, ring, fold_model="offline") as nitka:
            await tell(nitka, turns)
        with_faults = FaultyStore(inner, at=fail)
        try:
            async with opened(with_faults, ring) as nitka:
                await nitka.settle()
        except StoreError:
            pass
        async with opened(inner, ring) as nitka:
            await nitka.settle()
            assert bare(await nitka.facts("anna", include_past=True)) == wanted

    asyncio.run(run())


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store | str:
    return MemoryStore() if request.param == "memory" else f"sqlite:///{tmp_path / 'n.db'}"


async def test_one_fact_told_in_two_sessions_at_once_is_one(store: Store | str) -> None:
    """A hundred times: two sessions of one user tell it at the same moment; one row, confirmed by all of them."""
    async with opened(store) as nitka:
        for turn in range(100):
            said = (nitka.record("anna", where, text="I live in Leeds.", answer="ok") for where in ("web", "phone"))
            await asyncio.gather(*said)
            if turn % 10 == 0:
                await asyncio.gather(nitka.settle(), nitka.settle("anna"))
        await nitka.settle()
        (fact,) = await nitka.facts("anna", include_past=True)
    assert (fact.slot, fact.value, fact.confirmations, fact.past) == ("home.city", "Leeds", 200, ())


class Thinking:
    """An extractor model that thinks until it is let go on."""

    name = "thinking"

    def __init__(self, text: str) -> None:
        self.began, self.go = asyncio.Event(), asyncio.Event()
        self.text = text

    def script(self, messages: Any) -> str:
        raise AssertionError

    async def complete(self, messages: Any, *, max_tokens: int, schema: Any = None) -> Any:
        from nitka.models.ports import Answer

        if "facts" not in schema["properties"]:
            return Answer(text='{"add": [], "replaced": []}')
        self.began.set()
        await self.go.wait()
        return Answer(text=self.text)

    async def close(self) -> None:
        return None


LEEDS = (
    '{"facts": [{"op": "assert", "about": "user", "slot": "home.city", "value": "Leeds", "statement": "lives in Leeds",'
    ' "quote": "I live in Leeds", "row": 0, "fact": null}]}'
)


async def test_an_edit_by_hand_while_an_extraction_runs_stands(store: Store | str) -> None:
    model, clock = Thinking(LEEDS), FixedClock()
    async with opened(store, fold_model=model, clock=clock) as nitka:
        await nitka.record("anna", "web", text="I live in Leeds.", answer="ok", at=clock.now)
        await model.began.wait()
        clock.advance(minutes=1)
        await nitka.set_fact("anna", "home.city", "Porto")
        model.go.set()
        await nitka.settle()
        (fact,) = await nitka.facts("anna", include_past=True)
    assert (fact.value, fact.by_hand, [past.value for past in fact.past]) == ("Porto", True, ["Leeds"])


@pytest.mark.parametrize("what", ["turn", "session", "fact", "user"])
async def test_what_is_forgotten_while_an_extraction_runs_is_not_learned(store: Store | str, what: str) -> None:
    model = Thinking(LEEDS)
    async with opened(store, fold_model=model) as nitka:
        await nitka.record("anna", "web", text="I live in Leeds.", answer="ok")
        await model.began.wait()
        if what == "fact":  # it was known from elsewhere
            fact = await nitka.set_fact("anna", "home.city", "Leeds")
            assert (await nitka.forget("anna", fact=fact.id)).facts == 1
        else:
            named: dict[str, dict[str, Any]] = {"turn": {"session": "web", "turn": 0}, "session": {"session": "web"}}
            await nitka.forget("anna", **named.get(what, {}))
        model.go.set()
        await nitka.settle()
        assert await nitka.facts("anna", include_past=True) == ()


async def test_a_forgotten_fact_is_taught_again_only_by_newer_words(store: Store | str) -> None:
    async with opened(store) as nitka:
        await nitka.record("anna", "web", text="I live in Leeds.", answer="ok")
        await nitka.settle()
        (fact,) = await nitka.facts("anna")
        erased = await nitka.forget("anna", fact=fact.id)
        assert (erased.facts, erased.still_said, erased.messages) == (1, 1, 0)
        await nitka.settle(rescan=True)
        assert await nitka.facts("anna", include_past=True) == ()
        await nitka.record("anna", "web", text="I live in Leeds.", answer="ok")
        await nitka.settle()
        assert [fact.value for fact in await nitka.facts("anna")] == ["Leeds"]


async def test_a_fact_is_forgotten_with_the_turns_that_say_it(store: Store | str) -> None:
    async with opened(store) as nitka:
        await tell(nitka, [("web", "I live in Leeds."), ("web", "Hm."), ("phone", "I moved to Leeds.")])
        await nitka.settle()
        (fact,) = await nitka.facts("anna")
        erased = await nitka.forget("anna", fact=fact.id, with_turns=True)
        assert (erased.facts, erased.messages, erased.still_said) == (1, 4, 0)
        assert [m.text for m in await nitka.history("anna", "web")] == ["Hm.", "ok"]
        assert await nitka.forget("anna", fact=fact.id) == type(erased)()


async def test_turns_that_still_say_what_was_forgotten_can_go_afterwards(store: Store | str) -> None:
    """The count tells of them, so whoever reads it can act on it; also after the fact was told and forgotten anew."""
    async with opened(store) as nitka:
        await tell(nitka, [("web", "I live in Leeds."), ("web", "Hm."), ("phone", "I moved to Leeds.")])
        await nitka.settle()
        (fact,) = await nitka.facts("anna")
        assert (await nitka.forget("anna", fact=fact.id)).still_said == 2
        assert (await nitka.forget("anna", fact=fact.id)).still_said == 2
        await tell(nitka, [("web", "I live in Leeds.")])
        await nitka.settle()
        erased = await nitka.forget("anna", fact=fact.id, with_turns=True)
        assert (erased.facts, erased.messages, erased.still_said) == (1, 6, 0)
        assert await nitka.recall("anna", "Leeds") == ()
        assert await nitka.forget("anna", fact=fact.id, with_turns=True) == type(erased)()


async def test_turns_that_still_name_somebody_can_go_afterwards(store: Store | str) -> None:
    async with opened(store) as nitka:
        await tell(nitka, [("web", "My brother Corin lives in York."), ("web", "My name is Tom.")])
        await nitka.settle()
        assert (await nitka.forget("anna", about="Corin")).still_said == 1
        erased = await nitka.forget("anna", about="corin", with_turns=True)
        assert (erased.messages, erased.still_said) == (2, 0)
        assert [m.text for m in await nitka.history("anna", "web")] == ["My name is Tom.", "ok"]


async def test_a_named_other_is_forgotten_whole(store: Store | str) -> None:
    async with opened(store) as nitka:
        await tell(nitka, [("web", "My brother Corin lives in York."), ("web", "My name is Tom.")])
        await nitka.settle()
        assert (await nitka.forget("anna", about="Corin")).facts == 2
        assert {fact.slot for fact in await nitka.facts("anna", include_past=True)} == {"name"}
        assert await nitka.facts("anna", about="Corin") == ()


async def test_owners_never_share_a_fact(store: Store | str) -> None:
    people: tuple[str | User, ...] = ("anna", User("anna", tenant="shop"), "anna\x1fshop", User("b", tenant="shop"))
    async with opened(store) as nitka:
        for at, user in enumerate(people):
            await tell(nitka, [("web", f"My name is {NAMES[at]}."), ("web", "I live in Leeds.")], user=user)
        await nitka.settle()
        for at, user in enumerate(people):
            values = {fact.slot: fact.value for fact in await nitka.facts(user)}
            assert values == {"name": NAMES[at], "home.city": "Leeds"}
            async with nitka.turn(user, "new", text="What is my name?") as turn:
                sent = str(turn.request.messages)
                turn.discard()
            assert [name for name in NAMES if name in sent] == [NAMES[at]]


async def test_excluded_categories_are_neither_written_nor_recalled(tmp_path: Path) -> None:
    url, ring = f"sqlite:///{tmp_path / 'n.db'}", memory_ring()
    async with opened(url, ring) as nitka:
        await tell(nitka, [("web", "I'm allergic to peanuts."), ("web", "I live in Leeds.")])
        await nitka.settle()
    async with opened(url, ring, exclude=["health"]) as nitka:
        await tell(nitka, [("web", "I am allergic to shrimp.")])
        await nitka.settle()
        assert {fact.value for fact in await nitka.facts("anna")} == {"peanuts", "Leeds"}  # what was there is shown
        async with nitka.turn("anna", "new", text="What am I allergic to, and where do I live?") as turn:
            sent = str(turn.request.messages)
            turn.discard()
    assert "Leeds" in sent and "peanuts" not in sent


async def test_nothing_is_learned_where_every_category_is_excluded(store: Store | str) -> None:
    async with opened(store, exclude=CATEGORIES) as nitka:
        await tell(nitka, [("web", text) for text in SAID])
        await nitka.settle()
        assert await nitka.facts("anna", include_past=True) == ()


@pytest.mark.parametrize("exclude", ["health", ["healht"], ["health", "wealth"]])
def test_a_category_that_does_not_exist_is_refused(exclude: Any) -> None:
    with pytest.raises(BadInput, match="Categories"):
        opened(MemoryStore(), exclude=exclude)


async def test_private_turns_teach_nothing(store: Store | str) -> None:
    async with opened(store) as nitka:
        async with nitka.turn("anna", "web", text="I live in Leeds.", private=True) as turn:
            turn.answer("ok")
        await nitka.settle()
        assert await nitka.facts("anna") == ()


TAMPERING = {
    "a fact is taken away": "delete from pieces where kind = 'fact' and id = (select min(id) from pieces)",
    "a fact is put in the place of another": "update pieces set body = (select body from pieces order by id desc)"
    " where id = (select min(id) from pieces)",
    "an older fact is put back": "insert or replace into pieces select * from older",
    "a fact is another's": "update or replace pieces set owner = (select max(owner) from owners)",
    "an older fold row is put back": "update folds set body = (select body from older_folds) where kind = 'facts'",
}


@pytest.mark.parametrize("how", TAMPERING)
async def test_what_somebody_changes_in_the_file_is_noticed(tmp_path: Path, how: str) -> None:
    """Facts that do not add up are damaged, never half told; and the conversation goes on without them."""
    path, ring = tmp_path / "n.db", memory_ring()
    async with opened(f"sqlite:///{path}", ring) as nitka:
        for user in ("anna", "boris"):
            await tell(nitka, [("web", "I live in Leeds."), ("web", "My name is Tom.")], user=user)
        await nitka.settle()
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("create table older as select * from pieces")
            db.execute("create table older_folds as select * from folds where kind = 'facts'")
        for user in ("anna", "boris"):
            await tell(nitka, [("web", "I moved to Porto.")], user=user)
        await nitka.settle()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(TAMPERING[how])
        db.execute("drop table older")
        db.execute("drop table older_folds")
    async with opened(f"sqlite:///{path}", ring) as nitka:
        states = [await _state(nitka, user) for user in ("anna", "boris")]
        assert "damaged" in states
        for user in ("anna", "boris"):
            assert (await nitka.say(user, "web", text="Hello?")).text == "ok"
            await nitka.forget(user)
            assert await nitka.facts(user) == ()


async def _state(nitka: Nitka, user: str) -> str:
    try:
        await nitka.facts(user)
    except Damaged:
        return "damaged"
    return "whole"


@pytest.mark.parametrize("about", ["\x15a", "  Corin ", "a\nb", "Ёж"])
async def test_a_name_is_kept_as_one_clean_line(store: Store | str, about: str) -> None:
    async with opened(store) as nitka:
        fact = await nitka.set_fact("anna", "home.city", " Le\teds ", about=about)
        assert (fact.value, fact.about) == ("Le eds", " ".join(about.replace("\x15", " ").split()))
        assert await nitka.retract_fact("anna", fact.id)


async def test_what_is_done_by_hand_comes_after_what_was_done_before_it(store: Store | str) -> None:
    """Also at one and the same instant, on a clock that stands still."""
    async with opened(store) as nitka:
        for value in ("Leeds", "Porto", "Leeds"):
            fact = await nitka.set_fact("anna", "home.city", value)
            assert [known.value for known in await nitka.facts("anna")] == [value]
            assert await nitka.retract_fact("anna", fact.id)
            assert await nitka.facts("anna") == ()
            assert not await nitka.retract_fact("anna", fact.id)
        assert len(await nitka.facts("anna", include_past=True)) == 1


async def test_a_row_from_the_far_future_blocks_no_slot(store: Store | str) -> None:
    clock = FixedClock()
    async with opened(store, clock=clock) as nitka:
        await nitka.record("anna", "web", text="I live in Leeds.", answer="ok", at=clock.now.replace(year=8999))
        await nitka.settle()
        clock.advance(minutes=1)
        await nitka.record("anna", "web", text="I live in Porto.", answer="ok", at=clock.now)
        await nitka.settle()
        assert [fact.value for fact in await nitka.facts("anna")] == ["Porto"]


async def test_facts_go_by_age_only_when_nobody_confirms_them(store: Store | str) -> None:
    clock = FixedClock()
    async with opened(store, clock=clock, limits=Limits(retain_facts_days=90)) as nitka:
        await nitka.record("anna", "web", text="I live in Leeds. My name is Tom.", answer="ok", at=clock.now)
        clock.advance(days=60)
        await nitka.record("anna", "web", text="I live in Leeds.", answer="ok", at=clock.now)
        clock.advance(days=60)
        assert (await nitka.settle()).expired_facts == 1
        assert [fact.value for fact in await nitka.facts("anna")] == ["Leeds"]


async def test_settle_says_what_another_process_still_holds() -> None:
    """A process that was killed holds its work for some minutes: zero folds must not look like nothing to do."""
    store = MemoryStore()
    async with opened(store) as nitka:
        await tell(nitka, [("web", "I live in Leeds.")])
        now = 1_000 * int(FixedClock()().timestamp())
        assert await store.lease(now=now, until=now + 100_000, limit=10)
        done = await nitka.settle()
        assert (done.folds, done.failed, done.left) == (0, 0, 1)
        assert (await nitka.settle("anna")).left == 0  # which tells of all, and is asked for one
    later = MemoryStore()
    async with opened(later) as nitka:
        await tell(nitka, [("web", "I live in Leeds.")])
        assert (await nitka.settle()).left == 0
