"""Laws 3, 8 and 9 for the recall index: whatever happens in whatever order, the index is that of the living rows."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nitka import User, forgetting
from nitka.conversation import RECALL, VECTORS
from nitka.errors import ModelError, StoreError
from nitka.layers.recall import Vocabulary, Whole, ledger, passages, segment
from nitka.recalling.shelf import read_ledger, read_parts, written
from nitka.store.port import Change, Store
from nitka.testing import FaultyStore
from tests.laws.recalled import Hashing, Place, Process, contents, row, same_as_from_scratch

pytestmark = pytest.mark.anyio

T = TypeVar("T")
USERS, SESSIONS = ("anna", "борис"), ("s", "т")
users, sessions = st.sampled_from(USERS), st.sampled_from(SESSIONS)
texts = st.lists(st.sampled_from("rye boat Porto кот лодка 42 why? museum".split()), min_size=1, max_size=6).map(
    " ".join
)


class Indexes(RuleBasedStateMachine):
    """Any course of turns, fold steps, vectors, forgetting, and processes that end and begin again."""

    folder: Path | None = None

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.place = Place(self.folder / "recall.db" if self.folder else None)
        self.living: dict[str, dict[str, set[int]]] = {user: {} for user in USERS}
        self.head: dict[tuple[str, str], int] = {}
        self.process = self.run(Process(self.place, embedder=Hashing()).start())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @rule(user=users, session=sessions, turns=st.lists(st.tuples(texts, texts), min_size=1, max_size=6))
    def talk(self, user: str, session: str, turns: list[tuple[str, str]]) -> None:
        for text, answer in turns:
            self.run(self.process.record(user, session, text, answer))
            head = self.head.get((user, session), 0)
            self.living[user].setdefault(session, set()).add(head)
            self.head[user, session] = head + 2

    @rule(user=users)
    def fold(self, user: str) -> None:
        self.run(self.process.fold(user))

    @rule(user=users)
    def embed(self, user: str) -> None:
        self.run(self.process.embed(user))

    @rule(user=users, session=sessions, data=st.data())
    def forget_turn(self, user: str, session: str, data: st.DataObject) -> None:
        living = self.living[user].get(session)
        if living:
            turn = data.draw(st.sampled_from(sorted(living)))
            self.run(self.process.forget_turn(user, session, turn))
            living.remove(turn)

    @rule(user=users, session=sessions)
    def forget_session(self, user: str, session: str) -> None:
        self.run(forgetting.forget_session(self.process.vault, User(user), session))
        self.living[user].pop(session, None)
        self.head.pop((user, session), None)

    @rule(user=users)
    def forget_user(self, user: str) -> None:
        self.run(forgetting.forget_user(self.process.vault, User(user)))
        self.living[user] = {}
        self.head = {place: head for place, head in self.head.items() if place[0] != user}

    @rule()
    def begin_again(self) -> None:
        self.run(self.process.stop())
        self.process = self.run(Process(self.place, embedder=Hashing()).start())

    @invariant()
    def the_index_is_that_of_the_living_rows(self) -> None:
        for user in USERS:
            if self.run(self.process.owner(user)) is not None:
                self.run(same_as_from_scratch(self.process, user))

    @invariant()
    def what_is_found_is_alive_and_the_persons_own(self) -> None:
        for user in USERS:
            owner = self.run(self.process.owner(user))
            if owner is None:
                continue
            found = self.run(self.process.recalling.search(self.process.vault, owner, "rye boat кот 42", k=100))
            assert all(hit.seq - hit.seq % 2 in self.living[user].get(hit.session, ()) for hit in found)

    def teardown(self) -> None:
        self.run(self.process.stop())
        self.runner.close()


TestIndexesInMemory = Indexes.TestCase
TestIndexesInMemory.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)


class IndexesInAFile(Indexes):
    def __init__(self) -> None:
        type(self).folder = Path(tempfile.mkdtemp())
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        assert self.folder is not None
        shutil.rmtree(self.folder)


TestIndexesInAFile = IndexesInAFile.TestCase
TestIndexesInAFile.settings = settings(
    max_examples=6, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)


class Meanwhile:
    """A store that does something else just before its call number `at`."""

    def __init__(self, store: Store, at: int, act: Callable[[], Awaitable[Any]]) -> None:
        self._store, self._at, self._act, self.calls = store, at, act, 0
        self.keys = store.keys

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*args: Any, **more: Any) -> Any:
            number, self.calls = self.calls, self.calls + 1
            if number == self._at and name not in ("start", "close"):
                await self._act()
            return await method(*args, **more)

        return call


async def talked(process: Process, turns: int = 10) -> None:
    for number in range(turns):
        await process.record("anna", "s", f"rye no. {number} near Porto", f"boat {number}")


@pytest.mark.parametrize("work", ["fold", "embed"])
@pytest.mark.parametrize("at", range(14))
async def test_what_is_forgotten_while_a_work_runs_stays_away(work: str, at: int) -> None:
    """Whenever the forgetting comes, the fold that has read those rows writes nothing of them."""
    place = Place()
    other = await Process(place, embedder=Hashing()).start()
    await talked(other)
    if work == "embed":
        await other.fold("anna")

    async def forget() -> None:
        await other.forget_turn("anna", "s", 4)

    store = cast(Store, Meanwhile(other.store, at, forget))
    process = Process(place, embedder=Hashing(), store=store)
    owner = await process.known("anna")
    await (process.recalling.fold if work == "fold" else process.recalling.embed)(process.vault, owner)
    if cast(Any, store).calls <= at:
        await forget()
    assert not {4, 5} & set((await other.loaded("anna")).columns["n"].tolist())
    await other.fold("anna")
    await same_as_from_scratch(other, "anna")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(14))
async def test_a_step_that_is_cut_off_anywhere_changes_nothing_or_all(at: int, after: bool) -> None:
    """After a fault at any call of the store, whoever comes next ends the work, and nothing is there twice."""
    place = Place()
    other = await Process(place, embedder=Hashing()).start()
    await talked(other)
    store = cast(Store, FaultyStore(other.store, at=at, after=after))
    process = Process(place, embedder=Hashing(), store=store)
    try:
        await process.fold("anna")
        await process.embed("anna")
    except StoreError:
        pass
    await other.fold("anna")
    await other.embed("anna")
    await same_as_from_scratch(other, "anna")
    assert (await other.loaded("anna")).with_vectors == 16


async def test_two_processes_fold_each_row_once(tmp_path: Path) -> None:
    place = Place(tmp_path / "two.db")
    one, two = [await Process(place, embedder=Hashing()).start() for _ in range(2)]
    await talked(one, 60)
    for _ in range(3):
        await asyncio.gather(*(work("anna") for process in (one, two) for work in (process.fold, process.embed)))
    await same_as_from_scratch(one, "anna")
    assert contents(await one.loaded("anna")) == contents(await two.loaded("anna"))
    assert len(await one.loaded("anna")) == 116
    await one.stop()
    await two.stop()


@pytest.mark.parametrize("cuts", [[40], [1] * 40, [7, 1, 20, 2, 10], [39, 1]])
async def test_the_same_index_however_the_chain_is_cut(cuts: list[int]) -> None:
    process = await Process(Place()).start()
    number = 0
    for turns in cuts:
        for _ in range(turns):
            await process.record("anna", "s", f"rye no. {number}", f"boat {number}")
            number += 1
        await process.fold("anna")
    whole = await process.loaded("anna")
    assert sorted(whole.columns["n"].tolist()) == list(range(76))
    await same_as_from_scratch(process, "anna")


async def test_vectors_of_another_embedder_are_made_anew() -> None:
    place = Place()
    first = await Process(place, embedder=Hashing("old")).start()
    await talked(first)
    await first.fold("anna")
    assert await first.embed("anna") == 16
    second = await Process(place, embedder=Hashing("new")).start()
    assert (await second.loaded("anna")).with_vectors == 0
    assert await second.embed("anna") == 16
    assert (await second.loaded("anna")).with_vectors == 16
    assert (await second.loaded("anna")).embedder == "new"


async def test_words_of_other_lemmas_are_made_anew_and_their_vectors_kept() -> None:
    process = await Process(Place(), embedder=Hashing()).start()
    await talked(process)
    await process.fold("anna")
    await process.embed("anna")
    owner = await process.known("anna")
    await _as_if_made_by(process, "of another time")
    assert len(await process.loaded("anna")) == 0
    assert await process.embed("anna") > 0
    await same_as_from_scratch(process, "anna")
    assert (await process.loaded("anna")).with_vectors == 16
    assert len(await process.recalling.search(process.vault, owner, "rye no. 3")) > 0


async def _as_if_made_by(process: Process, lemmas: str) -> None:
    """Writes every segment as one that other dictionaries had made."""
    owner = await process.known("anna")
    before, _ = await read_ledger(process.vault, owner)
    segments = await read_parts(process.vault, owner, before.parts, version=before.version)
    step = ledger.begun(before)
    for part in before.parts:
        made = segments[part.id]
        other = type(made)(**{name: getattr(made, name) for name in made.__slots__} | {"lemmas": lemmas})
        step = ledger.add(ledger.remove(step, [part]), other)
    made_ = written(owner, step)
    change = Change(folds=made_.folds, put_pieces=made_.put, drop_pieces=made_.drop)
    await process.store.change(process.vault.scope(owner), lambda _: change)


async def test_an_embedder_that_fails_leaves_its_work_due() -> None:
    class Failing(Hashing):
        async def embed_passages(self, texts: Any) -> Any:
            raise ModelError(retryable=True)

    process = await Process(Place(), embedder=Failing()).start()
    await talked(process)
    await process.fold("anna")
    owner = await process.known("anna")
    with pytest.raises(ModelError):
        await process.recalling.embed(process.vault, owner)
    due = await process.store.lease(now=1, until=2, limit=10, only=(owner.id, None))
    assert {one.kind for one in due} >= {VECTORS}
    assert len(await process.loaded("anna")) == 16, "words are there all the same"


async def test_a_text_without_a_vector_is_asked_for_once() -> None:
    class Blind(Hashing):
        async def embed_passages(self, texts: Any) -> Any:
            return 0 * await super().embed_passages(texts)

    embedder = Blind()
    process = await Process(Place(), embedder=embedder).start()
    await talked(process)
    await process.fold("anna")
    await process.embed("anna")
    assert sum(map(len, embedder.calls)) == 16
    assert (await process.loaded("anna")).with_vectors == 0


async def test_nothing_due_is_no_longer_due() -> None:
    process = await Process(Place()).start()
    await talked(process)
    owner = await process.known("anna")
    await process.store.change(process.vault.scope(owner), lambda _: Change(person_due=(RECALL, VECTORS)))
    await process.fold("anna")
    await process.embed("anna")
    assert {one.kind for one in await process.store.lease(now=1, until=2, limit=10)} & {RECALL, VECTORS} == set()


async def test_a_segment_that_does_not_open_takes_only_itself_along() -> None:
    """The rest is still found, forgetting still works, and the next merge or vectors take it out."""
    process = await Process(Place(), embedder=Hashing()).start()
    await talked(process, 4)
    await process.fold("anna")
    await talked(process, 6)
    await process.fold("anna")
    owner = await process.known("anna")
    before, _ = await read_ledger(process.vault, owner)
    broken = before.parts[0]
    step = ledger.Step(
        ledger=before, put={broken.id: segment(passages([row(0, "x")], session="?"), Vocabulary(Whole()))}
    )
    piece = written(owner, step).put[0]
    spoilt = piece._replace(body=type(piece.body)(piece.body[:-1] + bytes([piece.body[-1] ^ 1])))
    await process.store.change(process.vault.scope(owner), lambda _: Change(put_pieces=(spoilt,)))
    assert len(await process.loaded("anna")) == before.size - broken.size
    await process.embed("anna")
    await process.forget_turn("anna", "s", 0)
    after, _ = await read_ledger(process.vault, owner)
    assert broken.id not in {part.id for part in after.parts}
    assert len(await process.loaded("anna")) == after.size
