"""Laws 1, 2, 3, 8, 9, 10 and 12 over any course of events, on every store: turns that end, fail, are cut off,
repeated or replaced; folds; forgetting; faults at any call of the store; processes that end and begin again.

The oracle is a few lists. Whatever happens, after each step the log holds exactly what the oracle says, numbered
without a gap, and every request accounts for every living row exactly once.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nitka import Forgotten, KeyReused, Nitka, Receipt, Reply, StoreError
from nitka.testing import FaultyStore
from tests.laws.world import World

pytestmark = pytest.mark.slow

T = TypeVar("T")
USERS = ("anna", "борис")
SESSIONS = ("s", "т")
users, sessions = st.sampled_from(USERS), st.sampled_from(SESSIONS)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20).map("t{}".format)


class Boom(Exception):
    """What a caller's own loop may raise."""


class Conversations(RuleBasedStateMachine):
    """Any course of events; `rows` is what must be there: (user, session) -> living rows by number."""

    folder: Path | None = None

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world = self.place()
        self.rows: dict[tuple[str, str], dict[int, tuple[str, str, bool]]] = {}
        self.head: dict[tuple[str, str], int] = {}
        self.keys: dict[tuple[str, str], dict[str, tuple[str, int]]] = {}
        self.cursor: dict[tuple[str, str], int] = {}
        self.nitka: Nitka = self.run(self.world.open().__aenter__())

    def place(self) -> World:
        """Where it happens; a store of another kind has a place of another kind."""
        return World(self.folder)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def wrote(self, user: str, session: str, text: str, answer: str, *, interrupted: bool = False) -> int:
        head = self.head.get((user, session), 0)
        rows = self.rows.setdefault((user, session), {})
        rows[head] = ("user", text, False)
        rows[head + 1] = ("assistant", answer, interrupted)
        self.head[user, session] = head + 2
        return head

    # What happens

    @rule(user=users, session=sessions, text=texts)
    def say(self, user: str, session: str, text: str) -> None:
        reply = self.run(self._say(user, session, text))
        self.check_receipt(user, session, reply)
        self.wrote(user, session, text, f"answer to {text}")

    async def _say(self, user: str, session: str, text: str, **more: Any) -> Receipt:
        reply: Reply = await self.nitka.say(user, session, text=text, **more)
        assert reply.receipt is not None
        return reply.receipt

    @rule(user=users, session=sessions, text=texts, pieces=st.lists(texts, max_size=3), cancel=st.booleans())
    def cut_off(self, user: str, session: str, text: str, pieces: list[str], cancel: bool) -> None:
        self.run(self._cut_off(user, session, text, pieces, asyncio.CancelledError if cancel else Boom))
        if pieces:
            self.wrote(user, session, text, "".join(pieces), interrupted=True)

    async def _cut_off(self, user: str, session: str, text: str, pieces: list[str], error: type[BaseException]) -> None:
        with pytest.raises(error):
            async with self.nitka.turn(user, session, text=text) as turn:
                for piece in pieces:
                    turn.piece(piece)
                raise error()

    @rule(user=users, session=sessions, text=texts, reads=st.booleans())
    def private(self, user: str, session: str, text: str, reads: bool) -> None:
        receipt = self.run(self._say(user, session, text, private="reads" if reads else True))
        if reads:
            self.check_receipt(user, session, receipt)
        else:
            assert {entry.layer for entry in receipt.entries} == {"question"}

    @rule(user=users, session=sessions, text=texts, key=st.sampled_from(("k1", "k2")))
    def deliver(self, user: str, session: str, text: str, key: str) -> None:
        """Twice at the same moment, however often it came before."""
        known = self.keys.setdefault((user, session), {})
        got = self.run(self._deliver(user, session, text, key))
        if key not in known:
            assert got == [f"answer to {text}"] * 2
            known[key] = (text, self.wrote(user, session, text, f"answer to {text}"))
        elif known[key][1] not in self.rows.get((user, session), {}):
            assert all(isinstance(error, Forgotten) for error in got)
        elif known[key][0] == text:
            assert got == [f"answer to {text}"] * 2
        else:
            assert all(isinstance(error, KeyReused) for error in got)

    async def _deliver(self, user: str, session: str, text: str, key: str) -> list[Any]:
        replies = (self.nitka.say(user, session, text=text, key=key) for _ in range(2))
        got = await asyncio.gather(*replies, return_exceptions=True)
        return [reply if isinstance(reply, BaseException) else reply.text for reply in got]

    @rule(user=users, session=sessions, first=texts, second=texts)
    def two_at_once(self, user: str, session: str, first: str, second: str) -> None:
        """Two open turns; the later one ends first."""
        self.run(self._two_at_once(user, session, first, second))
        self.wrote(user, session, second, "two")
        self.wrote(user, session, first, "one")

    async def _two_at_once(self, user: str, session: str, first: str, second: str) -> None:
        async with self.nitka.turn(user, session, text=first) as one:
            async with self.nitka.turn(user, session, text=second) as two:
                two.answer("two")
            one.answer("one")

    @precondition(lambda self: any(self.rows.values()))
    @rule(data=st.data(), text=texts)
    def replace(self, data: st.DataObject, text: str) -> None:
        user, session = data.draw(st.sampled_from([place for place, rows in self.rows.items() if rows]))
        seq = data.draw(st.integers(0, self.head[user, session] - 1))
        first = seq - seq % 2
        receipt = self.run(self._say(user, session, text, replaces=seq))
        rows = self.rows[user, session]
        gone = [number for number in rows if number >= first]
        self.check_receipt(user, session, receipt, before=first)
        for number in gone:
            del rows[number]
        self.wrote(user, session, text, f"answer to {text}")

    @rule()
    def settle(self) -> None:
        self.run(self.nitka.settle())

    @precondition(lambda self: any(self.rows.values()))
    @rule(data=st.data())
    def forget_turn(self, data: st.DataObject) -> None:
        user, session = data.draw(st.sampled_from([place for place, rows in self.rows.items() if rows]))
        seq = data.draw(st.integers(0, self.head[user, session] + 1))
        first = seq - seq % 2
        gone = [number for number in (first, first + 1) if self.rows[user, session].pop(number, None)]
        erased = self.run(self.nitka.forget(user, session=session, turn=seq))
        assert erased.messages == len(gone)

    @rule(user=users, session=sessions)
    def forget_session(self, user: str, session: str) -> None:
        erased = self.run(self.nitka.forget(user, session=session))
        assert erased.messages == len(self.rows.pop((user, session), {}))
        for state in (self.head, self.keys, self.cursor):
            state.pop((user, session), None)

    @rule(user=users)
    def forget_user(self, user: str) -> None:
        erased = self.run(self.nitka.forget(user))
        gone = [place for place in self.rows if place[0] == user]
        assert erased.messages == sum(len(self.rows.pop(place)) for place in gone)
        for state in (self.head, self.keys, self.cursor):
            for place in [place for place in state if place[0] == user]:
                del state[place]

    @rule()
    def reopen(self) -> None:
        self.run(self.nitka.close())
        self.nitka = self.run(self.world.open().__aenter__())

    @rule(user=users, session=sessions, text=texts, at=st.integers(0, 8), after=st.booleans())
    def faulty_say(self, user: str, session: str, text: str, at: int, after: bool) -> None:
        """A fault at any call of the store: the turn is written once, or the caller is told that it was not."""
        self.run(self.nitka.close())
        written = self.run(self._faulty(user, session, text, at, after))
        self.nitka = self.run(self.world.open().__aenter__())
        if written:
            self.wrote(user, session, text, f"answer to {text}")

    async def _faulty(self, user: str, session: str, text: str, at: int, after: bool) -> bool:
        try:
            async with self.world.open(FaultyStore(self.world.store(), at=at, after=after)) as nitka:
                await nitka.say(user, session, text=text)
        except StoreError:
            return False
        return True

    # What must hold

    def check_receipt(self, user: str, session: str, receipt: Receipt, *, before: int | None = None) -> None:
        """Laws 2, 5, 6: the rows of `[cursor, head)` are in the request once, and the account adds up."""
        living = [seq for seq in self.rows.get((user, session), {}) if before is None or seq < before]
        assert receipt.used <= receipt.room
        spans = [
            (entry.first, entry.last)
            for entry in receipt.entries
            if entry.layer in ("history", "turn_summary") and entry.first is not None and entry.last is not None
        ]
        for seq in living:
            hits = sum(first <= seq <= last for first, last in spans)
            assert hits == (1 if seq >= receipt.cursor else 0), (seq, receipt)

    @invariant()
    def the_log_is_what_was_said(self) -> None:
        for user in USERS:
            infos = {info.id: info for info in self.run(self.nitka.sessions(user))}
            said = {session: rows for (name, session), rows in self.rows.items() if name == user and rows}
            assert infos.keys() == said.keys()
            for session, rows in said.items():
                assert infos[session].messages == len(rows)
                history = self.run(self.nitka.history(user, session, limit=10_000))
                assert {m.seq: (m.role, m.text, m.interrupted) for m in history} == rows

    @invariant()
    def the_summary_covers_what_left_the_window(self) -> None:
        """Laws 2, 3, 9: below the cursor each living row was folded once; nothing forgotten is left; the cursor
        never moves back.
        """
        for (user, session), rows in self.rows.items():
            summary = self.run(self.nitka.summary(user, session))
            assert [line.first for line in summary.lines] == sorted(seq for seq in rows if seq < summary.cursor)
            assert summary.cursor >= self.cursor.get((user, session), 0)
            self.cursor[user, session] = summary.cursor
            unfolded = sum(seq >= summary.cursor for seq in rows)
            assert unfolded >= min(4, len(rows)) or len(rows) < self.head[user, session]

    def teardown(self) -> None:
        try:
            self.world.clock.advance(hours=1)  # leases of workers that a fault killed have ended by then
            self.run(self.nitka.settle())
            for user, session in list(self.rows):
                summary = self.run(self.nitka.summary(user, session))
                assert sum(seq >= summary.cursor for seq in self.rows[user, session]) <= 4
            self.run(self.nitka.close())
        finally:
            self.runner.close()


class OnMemory(Conversations):
    pass


class OnSqlite(Conversations):
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        assert self.folder is not None
        shutil.rmtree(self.folder)


quick = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much]}
TestOnMemory = OnMemory.TestCase
TestOnMemory.settings = settings(max_examples=30, stateful_step_count=40, **quick)  # type: ignore[arg-type]
TestOnSqlite = OnSqlite.TestCase
TestOnSqlite.settings = settings(max_examples=15, stateful_step_count=25, **quick)  # type: ignore[arg-type]
