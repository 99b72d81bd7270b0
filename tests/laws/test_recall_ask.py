"""Laws 7, 8, 9, 10 and 14 for what a turn is given of recall, and for `Nitka.recall`."""

from __future__ import annotations

import asyncio
import gc
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka import Passage, User, forgetting
from nitka.conversation import FACTS, RECALL
from nitka.errors import ModelError, StoreBusy
from nitka.layers.recall import Index, Segment, installed
from nitka.layers.recall.words import keys, terms
from nitka.recalling import Recollected
from nitka.recalling.memory import TAIL
from nitka.recalling.shelf import KINDS
from nitka.store.port import Look, Store
from nitka.testing import MemoryStore
from nitka.types import Limits
from tests.laws.recalled import AT, Hashing, Place, Process

pytestmark = pytest.mark.anyio

Reach = Literal["session", "user", "off"]


class Wanted(NamedTuple):
    text: str
    session: str = "s"
    before: int = 1_000
    now: Any = AT + timedelta(days=1)
    zone: str = ""
    recall: Reach = "session"


async def asked(process: Process, text: str, user: str = "anna", **more: Any) -> Recollected:
    """What a turn of this person would be given."""
    owner = await process.known(user)
    view = await process.store.view(Look(owner=owner.id, person_folds=(FACTS, RECALL)))
    return await process.recalling.recollect(process.vault, owner, view.person_folds, Wanted(text, **more))


def said(passages: tuple[Passage, ...]) -> str:
    return "\n".join(passage.text for passage in passages)


async def laid_out(process: Process, user: str = "anna", session: str = "s") -> None:
    for text in ("the locker code is 8841", "my dog is called Rex", "the boat is in Porto", "Лодка стоит у моста"):
        await process.record(user, session, text, f"Noted {len(text)}.")


@pytest.fixture(params=["words", "meaning"])
async def process(request: pytest.FixtureRequest) -> Process:
    embedder = Hashing() if request.param == "meaning" else None
    made = await Process(Place(), embedder=embedder).start()
    await laid_out(made)
    return made


@pytest.mark.parametrize("folded", [False, True])
async def test_what_the_window_left_comes_back_word_for_word(process: Process, folded: bool) -> None:
    """With speaker, date and row; whether the index has read it already or not."""
    if folded:
        await process.fold("anna")
        await process.embed("anna")
    found = await asked(process, "What was the code of the locker?", before=4)
    assert "user: the locker code is 8841" in found.recalled[0].text
    assert found.recalled[0].text.startswith("user: the locker code is 8841\nassistant: Noted 23.")
    assert (found.recalled[0].first, found.recalled[0].last) == (0, 3), "neighbours are shown together"
    assert found.recalled[0].label == "2026-01-05 #0–3"
    assert found.notes == ()
    russian = await asked(process, "Где стоит лодка?")
    assert "Лодка стоит у моста" in russian.recalled[0].text


async def test_the_window_is_never_recalled(process: Process) -> None:
    await process.fold("anna")
    assert (await asked(process, "What was the code of the locker?", before=0)).recalled == ()
    for before in range(0, 9, 2):
        found = await asked(process, "boat in Porto, dog Rex, locker code, Noted", before=before)
        assert all(p.last is not None and p.last < before for p in found.recalled)


async def test_other_sessions_are_looked_at_only_where_asked_for(process: Process) -> None:
    """And what comes from there has no rows of this session."""
    await process.record("anna", "other", "the tent is green", "ok")
    await process.fold("anna")
    assert "tent" not in said((await asked(process, "Which colour is the tent?")).recalled)
    found = await asked(process, "Which colour is the tent?", recall="user", session="new", before=0)
    assert "the tent is green" in found.recalled[0].text
    assert (found.recalled[0].first, found.recalled[0].label) == (None, "2026-01-05")
    off = await asked(process, "Which colour is the tent?", recall="off")
    assert off.recalled == ()


async def test_a_greeting_finds_nothing(process: Process) -> None:
    await process.fold("anna")
    assert (await asked(process, "Hello! And thank you.")).recalled == ()


async def test_nobody_is_given_what_another_said(process: Process) -> None:
    """Not with the same session names, not while both are asked for at once."""
    await process.record("boris", "s", "the locker code is 1111", "Noted.")
    for user in ("anna", "boris"):
        await process.fold(user)
        await process.embed(user)
    both = await asyncio.gather(
        *(asked(process, "What was the locker code?", user, recall="user") for user in ("anna", "boris") * 5)
    )
    for user, found in zip(("anna", "boris") * 5, both, strict=True):
        assert ("8841" in said(found.recalled)) == (user == "anna")
        assert ("1111" in said(found.recalled)) == (user == "boris")


async def test_the_request_gets_no_more_tokens_than_the_limit() -> None:
    limits = Limits(window=4, recall_slack=0, recall_wait=30.0, recall_tokens=300)
    process = await Process(Place(), limits=limits).start()
    for number in range(30):
        await process.record(
            "anna", "s", f"boat {number} " + "lies in the harbour of Porto " * 20, "a long answer " * 30
        )
    await process.fold("anna")
    found = (await asked(process, "Where is the boat in Porto?")).recalled
    assert found
    assert sum(process.vault.count(p.text) + process.vault.count(p.label) for p in found) <= 300


@given(st.lists(st.sampled_from("boat Porto кот code 42 Rex".split()), min_size=1, max_size=5).map(" ".join))
def test_what_is_shown_is_what_was_said(question: str) -> None:
    """Every line is a piece of a row, but for the marks where words are missing."""

    async def run() -> None:
        process = await Process(Place()).start()
        await laid_out(process)
        await process.record("anna", "s", "boat, code and Rex. " * 60, "кот 42. " * 80)
        await process.fold("anna")
        rows = [row.message.text for row in (await rows_of(process)).values()]
        for passage in (await asked(process, question)).recalled:
            for line in passage.text.splitlines():
                pieces = [piece.strip() for piece in line.split(": ", 1)[1].split("…") if piece.strip()]
                assert all(any(piece in text for text in rows) for piece in pieces)

    asyncio.run(run())


Step = tuple[Any, ...]
SESSIONS = st.sampled_from(("s", "other"))
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(st.just("say"), SESSIONS),
        st.tuples(st.just("say"), SESSIONS),
        st.tuples(st.just("ask"), SESSIONS, st.integers(0, 12), st.sampled_from(("session", "user"))),
        st.tuples(st.just("ask"), SESSIONS, st.integers(0, 12), st.sampled_from(("session", "user"))),
        st.tuples(st.just("fold"), st.booleans()),
        st.tuples(st.just("forget"), SESSIONS, st.integers(0, 5), st.booleans()),
    ),
    max_size=24,
)


@given(STEPS)
def test_what_is_held_for_the_next_turn_changes_nothing(steps: list[Step]) -> None:
    """A row is found if and only if it is within reach and not forgotten: whatever was asked before, and whether this
    process or another has folded and forgotten meanwhile.
    """

    async def run() -> None:
        place = Place()
        here, other = await Process(place).start(), await Process(place).start()
        alive: dict[tuple[str, int], str] = {}
        for step in [("say", "s"), ("say", "other"), *steps, ("ask", "s", 12, "user")]:
            await _walk(here, other, alive, step)

    asyncio.run(run())


async def _walk(here: Process, other: Process, alive: dict[tuple[str, int], str], step: Step) -> None:
    match step:
        case ("say", session):
            seq = 2 * sum(place[0] == session for place in alive)
            word = f"{session}{seq}word"
            alive[session, seq] = word
            await here.record("anna", session, f"This is about {word}.")
        case ("fold", elsewhere):
            await (other if elsewhere else here).fold("anna")
        case ("forget", session, turn, elsewhere) if alive.get((session, 2 * turn)):
            await (other if elsewhere else here).forget_turn("anna", session, 2 * turn)
            alive[session, 2 * turn] = ""
        case ("ask", session, before, recall):
            for (where, seq), word in alive.items():
                within = seq < before if where == session else recall == "user"
                question = word or f"{where}{seq}word"
                found = await asked(here, question, session=session, before=before, recall=recall)
                looks = recall == "user" or before > 0
                assert (question in said(found.recalled)) == (bool(word) and within and looks), step
                assert not found.notes
            _once(here, await here.known("anna"))


def _once(process: Process, owner: Any) -> None:
    """No row is held twice."""
    cache = process.vault.keychain.cache
    for epoch in range(60):
        memory = cache.get(owner.id, owner.incarnation, RECALL, epoch)
        late = cache.get(owner.id, owner.incarnation, TAIL, epoch)
        if memory is not None and late is not None and late.index is not None and late.begin == memory.ledger.cursor:
            assert set(memory.index.columns["n"].tolist()).isdisjoint(late.index.columns["n"].tolist())


async def rows_of(process: Process) -> dict[int, Any]:
    from nitka.conversation import said as rows_said

    owner = await process.known("anna")
    view = await process.store.view(Look(owner=owner.id, from_n=(0, 1_000)))
    return rows_said(owner, view)


# Law 14: a turn waits for recall no longer than it may.


class Slow:
    """A store whose views of certain pieces wait until they may go on."""

    def __init__(self, store: Store, *, read_first: bool = False) -> None:
        self._store, self.keys, self.go, self._read_first = store, store.keys, asyncio.Event(), read_first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def view(self, look: Look) -> Any:
        if look.pieces and not self._read_first:
            await self.go.wait()
        view = await self._store.view(look)
        if look.pieces and self._read_first:
            await self.go.wait()
        return view


async def test_what_is_not_ready_in_time_is_left_out_and_there_for_the_next_turn() -> None:
    place = Place()
    first = await Process(place).start()
    await laid_out(first)
    await first.fold("anna")
    slow = Slow(first.store)
    limits = Limits(window=4, recall_slack=0, recall_wait=0.01)
    second = Process(place, store=cast(Store, slow), limits=limits)
    found = await asyncio.wait_for(asked(second, "What was the code of the locker?"), 10)
    assert found.recalled == ()
    assert any("not ready" in note for note in found.notes)
    slow.go.set()
    for _ in range(200):
        if "8841" in said((await asked(second, "What was the code of the locker?")).recalled):
            return
        await asyncio.sleep(0.01)
    pytest.fail("the index never came")


@pytest.mark.parametrize("trouble", [ModelError(), RuntimeError("no such thing"), None])
async def test_an_embedder_that_fails_or_hangs_leaves_the_words(trouble: Exception | None) -> None:
    class Troubled(Hashing):
        async def embed_query(self, texts: Any) -> Any:
            if trouble is None:
                await asyncio.Event().wait()
            raise cast(Exception, trouble)

    place = Place()
    first = await Process(place, embedder=Hashing()).start()
    await laid_out(first)
    await first.fold("anna")
    await first.embed("anna")
    limits = Limits(window=4, recall_slack=0, recall_wait=0.5)
    second = Process(place, store=first.store, embedder=Troubled(), limits=limits)
    await asked(second, "warm up")
    found = await asyncio.wait_for(asked(second, "What was the code of the locker?"), 10)
    assert "8841" in said(found.recalled)
    assert found.notes == ("recall went by words alone: the question's vector was not ready",)
    await second.recalling.close()


async def test_a_store_that_fails_is_a_note_and_no_failure_of_the_turn() -> None:
    class Broken:
        def __init__(self, store: Store) -> None:
            self._store, self.keys, self.broken = store, store.keys, False

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        async def view(self, look: Look) -> Any:
            if self.broken and look.from_n:
                raise StoreBusy
            return await self._store.view(look)

    store = Broken(MemoryStore())
    process = await Process(Place(), store=cast(Store, store)).start()
    await laid_out(process)
    await process.fold("anna")
    store.broken = True
    found = await asked(process, "What was the code of the locker?")
    assert found.notes == ("recall failed: passages may be missing (StoreBusy)",)


async def test_only_the_question_is_embedded_while_a_turn_waits() -> None:
    embedder = Hashing()
    process = await Process(Place(), embedder=embedder).start()
    await laid_out(process)
    await process.fold("anna")
    await asked(process, "What was the code of the locker?")
    assert (embedder.questions, embedder.calls) == (["What was the code of the locker?"], [])


# Law 9: forgotten is gone, also from memory.


async def test_a_row_that_is_gone_is_not_shown_whatever_an_index_says() -> None:
    """The index in memory is that of another process, which has not heard of it."""
    place = Place()
    one, two = [await Process(place).start() for _ in range(2)]
    await laid_out(one)
    await one.fold("anna")
    owner = await two.known("anna")
    stale = (await two.store.view(Look(owner=owner.id, person_folds=(FACTS, RECALL)))).person_folds
    assert "8841" in said((await asked(two, "What was the code of the locker?")).recalled)
    await one.forget_turn("anna", "s", 0)
    found = await two.recalling.recollect(two.vault, owner, stale, Wanted("What was the code of the locker?"))
    assert "8841" not in said(found.recalled)
    assert "8841" not in said((await asked(two, "What was the code of the locker?")).recalled)
    assert not await two.recalling.search(two.vault, owner, "locker code 8841", session="s", k=3)


def in_memory(marker: str) -> list[Any]:
    """Whatever in this process knows the marker's words as an index or a segment does."""
    wanted = keys(terms(marker, installed()))
    gc.collect()
    found: list[Any] = []
    for thing in gc.get_objects():
        if isinstance(thing, Index):
            found += [thing] * bool(thing.knows(wanted).any())
        elif isinstance(thing, Segment):
            found += [thing] * bool(set(thing.term.tolist()) & set(wanted.tolist()))
    return found


async def test_nothing_derived_stays_in_memory() -> None:
    marker = "zaubermarke"
    process = await Process(Place(), embedder=Hashing()).start()
    await laid_out(process)
    await process.record("anna", "s", f"the word is {marker}", "ok")
    await laid_out(process)
    await process.fold("anna")
    await process.embed("anna")
    assert marker in said((await asked(process, f"Which word, {marker}?")).recalled)
    assert in_memory(marker), "and so the search would find it"
    await process.forget_turn("anna", "s", 8)
    assert in_memory(marker) == []
    await asked(process, "Which word?")
    assert in_memory(marker) == []


async def test_what_another_process_forgot_goes_with_the_next_question() -> None:
    marker = "zaubermarke"
    place = Place()
    one, two = [await Process(place).start() for _ in range(2)]
    await one.record("anna", "s", f"the word is {marker}", "ok")
    await laid_out(one)
    await one.fold("anna")
    assert marker in said((await asked(two, f"Which word, {marker}?")).recalled)
    await one.forget_turn("anna", "s", 0)
    assert in_memory(marker), "the other process has not heard of it"
    await asked(two, "Which word?")
    assert in_memory(marker) == []


async def test_a_load_that_a_forgetting_overtakes_is_not_kept() -> None:
    """It has read the segments already, and hears of the forgetting before it is done."""
    marker = "zaubermarke"
    place = Place()
    first = await Process(place).start()
    await first.record("anna", "s", f"the word is {marker}", "ok")
    await laid_out(first)
    await first.fold("anna")
    slow = Slow(first.store, read_first=True)
    second = Process(place, store=cast(Store, slow), limits=Limits(window=4, recall_slack=0, recall_wait=0.2))
    await asked(second, f"Which word, {marker}?")
    owner = await second.known("anna")
    loading = [task for task in asyncio.all_tasks() if task.get_name() == "nitka-recall"]
    assert loading
    await first.forget_turn("anna", "s", 0)
    second.vault.keychain.drop(owner.id)
    slow.go.set()
    await asyncio.wait(loading)
    assert second.vault.keychain.cache.get(owner.id, owner.incarnation, RECALL, 0) is None


# Law 7: nothing of it lies anywhere in clear.


async def test_words_and_vectors_are_found_nowhere_on_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the marker, nor the numbers its words have in an index, nor its vector."""
    marker = "zaubermarke чижик"
    process = await Process(Place(tmp_path / "marked.db"), embedder=Hashing()).start()
    with caplog.at_level(logging.DEBUG):
        await laid_out(process)
        await process.record("anna", marker, f"{marker} {marker}", marker)
        await laid_out(process)
        await process.fold("anna")
        await process.embed("anna")
        made = await process.loaded("anna")
        place = int((made.columns["n"] == 8).argmax())
        needles = [marker.encode(), marker.split()[1].encode()]
        needles += [int(key).to_bytes(4, "little") for key in made.terms_of(place)]
        memory = process.vault.keychain.cache
        held = memory.get((await process.known("anna")).id, (await process.known("anna")).incarnation, RECALL, 0)
        needles += [row.tobytes() for made_ in held.segments.values() for row in made_.vectors] if held else []
        assert len(needles) > 4
        assert_absent(tmp_path, needles)
        await process.forget_turn("anna", marker, 0)
        await process.stop()
        assert_absent(tmp_path, needles)
    assert not any(needle in caplog.text.encode() for needle in needles[:2])


def assert_absent(folder: Path, needles: list[bytes]) -> None:
    data = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert data
    assert {name: [n for n in needles if n in held] for name, held in data.items()} == {name: [] for name in data}


async def test_forgetting_a_session_leaves_no_segment_of_it(tmp_path: Path) -> None:
    process = await Process(Place(tmp_path / "one.db"), embedder=Hashing()).start()
    await laid_out(process)
    await process.record("anna", "other", "the tent is green", "ok")
    await laid_out(process)
    await process.fold("anna")
    await process.embed("anna")
    await forgetting.forget_session(process.vault, User("anna"), "other")
    owner = await process.known("anna")
    pieces = (await process.store.view(Look(owner=owner.id, pieces=KINDS))).pieces
    assert sum(map(len, pieces.values())) == len((await process.recalling_ledger("anna")).parts)
    assert not await process.recalling.search(process.vault, owner, "the tent is green", session="other")
    assert all(hit.session == "s" for hit in await process.recalling.search(process.vault, owner, "tent boat locker"))
    await process.stop()


async def test_search_finds_passages_of_all_sessions_or_of_one(process: Process) -> None:
    await process.record("anna", "other", "the other locker code is 77", "ok")
    owner = await process.known("anna")
    every = await process.recalling.search(process.vault, owner, "locker code", k=5)
    assert {hit.session for hit in every} == {"s", "other"}
    one = await process.recalling.search(process.vault, owner, "locker code", session="s", k=5)
    assert {hit.session for hit in one} == {"s"}
    assert (one[0].text, one[0].seq, one[0].role, one[0].at) == ("the locker code is 8841", 0, "user", AT)
    assert [hit.score for hit in every] == sorted((hit.score for hit in every), reverse=True)
    assert await process.recalling.search(process.vault, owner, "locker code", session="never", k=5) == ()


async def test_a_search_keeps_to_its_budget_of_characters(process: Process) -> None:
    await process.record("anna", "s", "The locker stands here. " * 15 + "Its code is secret. " * 5, "ok")
    await process.fold("anna")
    owner = await process.known("anna")
    found = await process.recalling.search(process.vault, owner, "locker code", k=10, budget=200)
    assert found
    assert sum(len(hit.text) for hit in found) <= 200
