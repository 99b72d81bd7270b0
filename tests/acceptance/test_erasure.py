"""Law 9: what was forgotten is gone. Gone is looked for in the bytes of all files, not by asking the database."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nitka import Forgotten, Limits, Nitka, WrongKey
from nitka.store.port import SessionRow
from nitka.store.sqlite import SqliteStore
from nitka.testing import FakeModel, FaultyStore
from nitka.testing.faulty import InjectedFault
from nitka.types import Line, Message, Proposal, User
from nitka.vault.keychain import Keychain
from nitka.vault.roots import KeyRing
from nitka.vault.rotate import rotate

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LIMITS = Limits(window=4, summary_tokens=100_000, wait_seconds=5)
SLICE = 20
USERS = ("anna", "boris", "vera")


class Lines:
    """A line a message; `gate` holds it back while it is not set."""

    name = "lines"

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = asyncio.Event()

    async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
        self.waiting.set()
        await self.gate.wait()
        add = [Line(full=f"{m.seq} {m.text[:40]}", gist=f"{m.seq}", first=m.seq, last=m.seq) for m in messages]
        return Proposal(add=tuple(add))


class Place:
    """A folder with a database and its key file, and nitkas on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "db"
        self.folder.mkdir()
        self.key_file = folder / "keys.json"
        self.lines = Lines()

    @property
    def path(self) -> Path:
        return self.folder / "nitka.db"

    def store(self) -> SqliteStore:
        return SqliteStore(str(self.path), wait=5)

    def open(self, store: Any = None, **more: Any) -> Nitka:
        return Nitka.open(
            store or self.store(),
            fold_model=self.lines,
            keys=self.key_file,
            limits=LIMITS,
            **{"model": FakeModel(), **more},
        )

    def values(self, owner: bytes) -> list[bytes]:
        """Every blob in the rows of one owner, the wrapped key among them; but not small numbers, such as those of
        index segments: everybody counts them from 0.
        """
        found = []
        for path in (self.path, Path(f"{self.path}.keys")):
            db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            tables = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
            for table in tables:
                columns = [row[1] for row in db.execute(f"pragma table_info({table})")]
                if "owner" in columns:
                    wanted = ", ".join(name for name in columns if name != "root")  # a root is nobody's
                    rows = db.execute(f"select {wanted} from {table} where owner = ?", (owner,))
                    found += [value for row in rows for value in row if isinstance(value, bytes) and any(value[:8])]
            db.close()
        return found

    def traces(self, values: Sequence[bytes]) -> list[bytes]:
        """Those pieces of the values that occur in any file."""
        whole = b"\0".join(path.read_bytes() for path in sorted(self.folder.iterdir()))
        return [piece for piece in pieces(values) if piece in whole]


def pieces(values: Sequence[bytes]) -> set[bytes]:
    """Short pieces from all over each value, so that a leftover half is found too."""
    found = {value for value in values if len(value) <= SLICE}
    for value in values:
        if len(value) > SLICE:
            offsets = {*range(9, len(value) - SLICE, 700), len(value) - SLICE}
            found |= {value[at : at + SLICE] for at in offsets}
    return found


@pytest.fixture
async def place(tmp_path: Path, anyio_backend: str) -> Place:
    return Place(tmp_path)


async def owner_of(place: Place, user: str) -> bytes:
    store = place.store()
    await store.start()
    keychain = Keychain(store.keys, KeyRing(None, path=place.key_file), LIMITS)
    await keychain.prepare()
    owner = await keychain.owner_id(User(user))
    await store.close()
    return owner


async def talk(nitka: Nitka, user: str, session: str, turns: int = 3, *, sizes: Callable[[], int] = lambda: 20) -> None:
    for turn in range(turns):
        text, answer = f"{user} {turn} " + "q" * sizes(), f"{turn} " + "a" * sizes()
        await nitka.record(user, session, text=text, answer=answer, key=f"{session}:{turn}")


async def fill(nitka: Nitka, rng: random.Random, rounds: int = 12) -> None:
    """Rows of several users, sessions and sizes, interleaved, so that pages are split and long rows overflow."""
    for turn in range(rounds):
        for user in USERS:
            session = f"s{rng.randrange(3)}"
            sizes = (rng.choice([5, 60, 900, 3000, 12_000]) for _ in range(2))
            text, answer = (f"{user} {turn} " + "x" * size for size in sizes)
            await nitka.record(user, session, text=text, answer=answer, key=f"{turn}")


@asynccontextmanager
async def a_reader(place: Place) -> AsyncIterator[None]:
    """Another program that has both files open and reads on."""
    readers = [sqlite3.connect(path, isolation_level=None) for path in (place.path, f"{place.path}.keys")]
    for db in readers:
        db.execute("begin")
        db.execute("select count(*) from sqlite_master").fetchall()
    try:
        yield
    finally:
        for db in readers:
            db.close()


@pytest.mark.parametrize("seed", range(3))
async def test_no_byte_of_a_forgotten_user_is_left_and_all_of_the_others(place: Place, seed: int) -> None:
    rng = random.Random(seed)
    async with place.open() as nitka:
        await fill(nitka, rng)
        await nitka.settle()
        anna = await owner_of(place, "anna")
        values = place.values(anna)
        others = [await owner_of(place, user) for user in USERS[1:]]
        kept = [place.values(owner) for owner in others]
        assert len(place.traces(values)) > 50, "the search finds what is there"
        said = [record async for record in nitka.export("boris", what="all")]
        erased = await nitka.forget("anna")
        assert (erased.users, erased.messages, erased.erasure) == (1, 24, "complete")
        assert erased.sessions == 3
        assert erased.lines > 0
        assert place.traces(values) == []
        assert [place.values(owner) for owner in others] == kept
        assert [record async for record in nitka.export("boris", what="all")] == said
        assert (await nitka.forget("anna")).users == 0


async def test_what_a_reader_holds_is_pending_and_settled_later(place: Place) -> None:
    async with place.open() as nitka:
        await talk(nitka, "anna", "web")
        values = place.values(await owner_of(place, "anna"))
        async with a_reader(place):
            await talk(nitka, "boris", "web")
            erased = await nitka.forget("anna")
            assert (erased.users, erased.messages, erased.erasure) == (1, 6, "pending")
            assert await nitka.sessions("anna") == ()
            assert (await nitka.settle()).erased == 0
            assert place.traces(values) != []
        assert (await nitka.settle()).erased == 1
        assert place.traces(values) == []
        assert (await nitka.settle()).erased == 0
        assert len(await nitka.history("boris", "web")) == 6


@pytest.mark.parametrize("what", ["session", "turn"])
@pytest.mark.parametrize("reader", [False, True])
async def test_no_byte_of_a_forgotten_session_or_turn_is_left(place: Place, what: str, reader: bool) -> None:
    async with place.open() as nitka:
        await fill(nitka, random.Random(7))
        await nitka.settle()
        await talk(nitka, "anna", "gone", 1, sizes=lambda: 5000)
        owner = await owner_of(place, "anna")
        db = sqlite3.connect(place.path)
        rows = db.execute("select body from messages where owner = ? order by n desc limit 2", (owner,)).fetchall()
        db.close()
        values = [body for (body,) in rows]
        assert len(place.traces(values)) > 10

        async def forget() -> str:
            return (await nitka.forget("anna", session="gone", turn=1 if what == "turn" else None)).erasure

        if reader:
            async with a_reader(place):
                await talk(nitka, "boris", "s0", 1)
                assert await forget() == "pending"
            assert (await nitka.settle()).erased == 1
        else:
            assert await forget() == "complete"
        assert place.traces(values) == []
        assert await nitka.history("anna", "gone") == ()


async def test_the_same_names_again_are_a_new_life(place: Place) -> None:
    async with place.open() as nitka:
        await talk(nitka, "anna", "web")
        await nitka.settle()
        values = place.values(await owner_of(place, "anna"))
        await nitka.forget("anna")
        reply = await nitka.say("anna", "web", text="hello again", key="web:0")
        assert not reply.replayed
        assert [m.text for m in await nitka.history("anna", "web")] == ["hello again", "ok"]
        assert (await nitka.summary("anna", "web")).lines == ()
        new_life = set(pieces(place.values(await owner_of(place, "anna"))))
        assert [trace for trace in place.traces(values) if trace not in new_life] == []


async def test_a_turn_that_is_answered_while_its_user_is_forgotten_writes_nothing(place: Place) -> None:
    async with place.open() as nitka:
        await talk(nitka, "anna", "web")
        for cut in (False, True):
            with pytest.raises(Forgotten):
                async with nitka.turn("anna", "web", text="late words") as turn:
                    assert (await nitka.forget("anna")).users == 1
                    turn.piece("late answer")
                    if not cut:
                        turn.answer()
            assert await nitka.sessions("anna") == ()
            assert place.values(await owner_of(place, "anna")) == []
            await talk(nitka, "anna", "web", 1)


async def test_a_turn_of_a_forgotten_session_is_not_written_into_the_new_one(place: Place) -> None:
    async with place.open() as nitka:
        await talk(nitka, "anna", "web")
        with pytest.raises(Forgotten):
            async with nitka.turn("anna", "web", text="late words") as turn:
                await nitka.forget("anna", session="web")
                await talk(nitka, "anna", "web", 1)
                turn.answer("late answer")
        assert len(await nitka.history("anna", "web")) == 2


async def test_a_fold_that_runs_while_its_user_is_forgotten_writes_nothing(place: Place) -> None:
    async with place.open() as nitka:
        place.lines.gate.clear()
        await talk(nitka, "anna", "web", 6)
        await asyncio.wait_for(place.lines.waiting.wait(), 5)
        values = place.values(await owner_of(place, "anna"))
        assert (await nitka.forget("anna")).messages == 12
        place.lines.gate.set()
        await nitka.settle()
        assert place.values(await owner_of(place, "anna")) == []
        assert place.traces(values) == []


async def test_a_second_nitka_with_warm_caches_brings_nothing_back(place: Place) -> None:
    async with place.open() as one, place.open() as two:
        await talk(one, "anna", "web")
        assert len(await two.history("anna", "web")) == 6
        open_turn = two.turn("anna", "web", text="late words")
        turn = await open_turn.__aenter__()
        values = place.values(await owner_of(place, "anna"))
        assert (await one.forget("anna")).erasure == "complete"
        assert await two.sessions("anna") == ()
        assert await two.history("anna", "web") == ()
        assert [record async for record in two.export("anna", what="all")] == []
        assert (await two.forget("anna")).users == 0
        turn.answer("late answer")
        with pytest.raises(Forgotten):
            await open_turn.__aexit__(None, None, None)
        assert place.values(await owner_of(place, "anna")) == []
        await two.say("anna", "web", text="a new life")
        assert [m.text for m in await one.history("anna", "web")] == ["a new life", "ok"]
        new_life = set(pieces(place.values(await owner_of(place, "anna"))))
        assert [trace for trace in place.traces(values) if trace not in new_life] == []


class Between(SqliteStore):
    """Does something just before a session's rows are made, as another process might."""

    def __init__(self, path: str) -> None:
        super().__init__(path, wait=5)
        self.before: Callable[[], Any] | None = None

    async def create(self, owner: bytes, incarnation: bytes, session: SessionRow | None = None) -> SessionRow | None:
        before, self.before = self.before, None
        if before is not None:
            await before()
        return await super().create(owner, incarnation, session)


async def test_a_user_forgotten_while_a_session_is_being_made_does_not_come_back_without_a_key(place: Place) -> None:
    store = Between(str(place.path))
    async with place.open(store) as nitka, place.open() as other:
        await talk(nitka, "anna", "web")
        store.before = lambda: other.forget("anna")
        await talk(nitka, "anna", "second", 1)
        assert [info.id for info in await other.sessions("anna")] == ["second"], "readable by whoever has no cache"


async def test_an_old_key_does_not_erase_a_newer_life(place: Place) -> None:
    """The user is forgotten and comes back elsewhere while a session is being made with the old key."""
    store = Between(str(place.path))
    async with place.open(store) as nitka, place.open() as other:
        await talk(nitka, "anna", "web")

        async def lives_again() -> None:
            await other.forget("anna")
            await talk(other, "anna", "new life", 2)

        store.before = lives_again
        await talk(nitka, "anna", "second", 1)
        assert {info.id for info in await other.sessions("anna")} == {"new life", "second"}
        assert len(await other.history("anna", "new life")) == 4


@pytest.mark.parametrize(
    ("what", "after", "again"),
    [
        ({}, False, "settle"),
        ({}, True, "settle"),
        ({}, False, "forget"),
        ({}, True, "forget"),
        ({"session": "web"}, True, "settle"),
        ({"session": "web", "turn": 0}, True, "settle"),
    ],
)
async def test_a_forget_that_was_cut_off_anywhere_is_ended_later(
    tmp_path: Path, what: dict[str, Any], after: bool, again: str
) -> None:
    (tmp_path / "first").mkdir()
    first = Place(tmp_path / "first")
    async with first.open() as nitka:
        await talk(nitka, "anna", "web", 1)
    values = message_bodies(first) if what else first.values(await owner_of(first, "anna"))
    at = 0
    while await cut_off(place := copy_of(first, tmp_path / f"{at}"), what, at, after):
        async with place.open() as nitka:
            begun = await nitka.history("anna", "web") == ()
            if again == "settle":
                await nitka.settle()
            if again == "forget" or not begun:
                erased = await nitka.forget("anna", **what)
                assert erased.erasure == "complete"
                assert begun or again == "settle" or erased.messages == 2
            await nitka.settle()
            assert await nitka.history("anna", "web") == ()
        assert place.traces(values) == []
        at += 1
    assert at > 5


def copy_of(first: Place, folder: Path) -> Place:
    folder.mkdir()
    place = Place(folder)
    shutil.copytree(first.folder, place.folder, dirs_exist_ok=True)
    shutil.copy(first.key_file, place.key_file)
    return place


def message_bodies(place: Place) -> list[bytes]:
    db = sqlite3.connect(place.path)
    found = [body for (body,) in db.execute("select body from messages")]
    db.close()
    return found


async def cut_off(place: Place, what: dict[str, Any], at: int, after: bool) -> bool:
    """Forgets, and ends at the given call of the store; False when it came to its end before."""
    store = FaultyStore(place.store(), at=10**9)
    async with place.open(store) as nitka:
        await nitka.settle()
        store._at, store._after = store.calls + at, after
        try:
            await nitka.forget("anna", **what)
        except InjectedFault:
            return True
        return False


async def test_after_rotation_a_copy_from_before_the_forget_does_not_open(place: Place, tmp_path: Path) -> None:
    ring = KeyRing(None, path=place.key_file)
    (tmp_path / "copy").mkdir()
    copy = Place(tmp_path / "copy")
    async with place.open() as nitka:
        await talk(nitka, "anna", "web")
        await talk(nitka, "boris", "web")
    shutil.copytree(place.folder, copy.folder, dirs_exist_ok=True)
    async with place.open() as nitka:
        assert (await nitka.forget("anna")).erasure == "complete"
    shutil.copy(place.key_file, copy.key_file)
    async with copy.open() as nitka:
        assert len(await nitka.history("anna", "web")) == 6, "the copy holds the wrapped key, and the root opens it"
    store = place.store()
    await store.start()
    keychain = Keychain(store.keys, ring, LIMITS)
    await keychain.prepare()
    assert (await rotate(keychain, ring, retire_old=True)).complete
    await store.close()
    shutil.copy(place.key_file, copy.key_file)
    with pytest.raises(WrongKey):
        async with copy.open():
            pass
    async with place.open() as nitka:
        assert len(await nitka.history("boris", "web")) == 6
        assert await nitka.sessions("anna") == ()
