"""Law 8 for people with many names: whatever the ids contain and whatever is linked, adopted and forgotten, each name
leads to one person's memory, and nothing of one is ever another's.

The oracle is three dictionaries. Two nitkas on one store do the steps by turns, so what one of them still holds in
memory never counts.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nitka import AlreadyKnown, BadInput, Handle, Nitka, User
from nitka.types import Person
from tests.laws.world import World

T = TypeVar("T")
Own = tuple[str, ...]

PARTS = ("a", "b", "a:b", "", "handle", "é", "e\u0301")
names = st.sampled_from([part for part in PARTS if part])
tenants = st.sampled_from(["", "a"])
users = st.builds(User, names, tenants)
handles = st.builds(Handle, names, names, tenants)
people = st.one_of(users, handles)
sessions = st.sampled_from(["s", "т"])


def own(who: Person) -> Own:
    """Who it is while it is linked to nobody."""
    return ("user", who.tenant, who.id) if isinstance(who, User) else ("handle", who.tenant, who.channel, who.id)


class Names(RuleBasedStateMachine):
    """Any course of events among a few people with odd names."""

    folder: Path | None = None

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world = World(self.folder)
        self.said: dict[Own, dict[str, list[str]]] = {}  # living words, by person and session
        self.linked: dict[Own, Own] = {}
        self.met: set[Person] = set()
        self.number = 0
        self.nitkas: list[Nitka] = [self.run(self.world.open().__aenter__()) for _ in range(2)]

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def next(self) -> Nitka:
        self.nitkas.reverse()
        return self.nitkas[0]

    def whose(self, who: Person) -> Own:
        self.met.add(who)
        return self.linked.get(own(who), own(who))

    def handles_of(self, person: Own) -> list[Own]:
        return [handle for handle, of in self.linked.items() if of == person]

    @rule(who=people, session=sessions)
    def say(self, who: Person, session: str) -> None:
        self.number += 1
        text = f"words {self.number}"
        self.run(self.next().record(who, session, text=text, answer="yes"))
        self.said.setdefault(self.whose(who), {}).setdefault(session, []).append(text)

    @rule(channel=names, handle=names, user=people)
    def link(self, channel: str, handle: str, user: Person) -> None:
        named = Handle(channel, handle, user.tenant)
        mine, target = own(named), self.whose(user)
        known = self.said.get(mine, {})
        try:
            assert self.run(self.next().link(channel, handle, user)) == named
        except AlreadyKnown as error:
            others = mine in self.linked
            counts = (0, 0) if others else (len(known), 2 * sum(map(len, known.values())))
            assert (error.sessions, error.messages) == counts
            assert self.whose(named) != target and (others or known or self.handles_of(mine))
        else:
            assert self.whose(named) in (target, mine)
            if target != mine:
                assert not known or mine in self.linked
                self.linked[mine] = target

    @rule(channel=names, handle=names, user=people)
    def unlink(self, channel: str, handle: str, user: Person) -> None:
        mine = own(Handle(channel, handle, user.tenant))
        his = self.linked.get(mine) == self.whose(user)
        assert self.run(self.next().unlink(channel, handle, user)) == his
        if his:
            del self.linked[mine]

    @rule(visitor=people, user=people)
    def adopt(self, visitor: Person, user: Person) -> None:
        leaving, staying = self.whose(visitor), self.whose(user)
        apart = leaving != staying
        if visitor.tenant != user.tenant or (apart and self.handles_of(leaving)):
            try:
                self.run(self.next().adopt(visitor, user))
            except BadInput:
                return
            raise AssertionError("one of another tenant, or with handles, is no visitor")
        adopted = self.run(self.next().adopt(visitor, user))
        moved = self.said.pop(leaving, {}) if apart else {}
        assert (adopted.sessions, adopted.messages) == (len(moved), 2 * sum(map(len, moved.values())))
        for session, words in moved.items():
            self.said.setdefault(staying, {}).setdefault(session, []).extend(words)

    @rule(who=people)
    def forget(self, who: Person) -> None:
        person = self.whose(who)
        erased = self.run(self.next().forget(who))
        gone, names = self.said.pop(person, {}), self.handles_of(person)
        counts = (len(gone), 2 * sum(map(len, gone.values())), len(names))
        assert (erased.sessions, erased.messages, erased.handles) == counts
        for handle in names:
            del self.linked[handle]

    @rule(who=people, session=sessions)
    def forget_session(self, who: Person, session: str) -> None:
        gone = self.said.get(self.whose(who), {}).pop(session, [])
        assert self.run(self.next().forget(who, session=session)).messages == 2 * len(gone)
        if not self.said.get(self.whose(who), {"": [""]}):
            del self.said[self.whose(who)]

    @invariant()
    def everybody_finds_what_is_theirs(self) -> None:
        self.run(self._look(self.next()))

    async def _look(self, nitka: Nitka) -> None:
        for who in self.met:
            expected = self.said.get(self.whose(who), {})
            assert {info.id for info in await nitka.sessions(who)} == set(expected)
            for session, words in expected.items():
                rows = await nitka.history(who, session, limit=1_000)
                assert [row.text for row in rows[::2]] == words
            found = {own(handle) for handle in await nitka.links(who)}
            assert found == set(self.handles_of(self.whose(who)))

    def teardown(self) -> None:
        for nitka in self.nitkas:
            self.run(nitka.close())
        self.runner.close()


class SqliteNames(Names):
    """The same on a SQLite file."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory()
        type(self).folder = Path(self._temporary.name)
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        self._temporary.cleanup()


quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]
TestNames = Names.TestCase
TestNames.settings = settings(max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=quiet)
TestSqliteNames = SqliteNames.TestCase
TestSqliteNames.settings = settings(max_examples=5, stateful_step_count=15, deadline=None, suppress_health_check=quiet)
