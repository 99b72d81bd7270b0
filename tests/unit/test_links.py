"""`Handle`, `link`, `unlink`, `links`: one person under many names, and never two under one."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from nitka import AlreadyKnown, BadId, BadInput, Damaged, Forgotten, Handle, Nitka, Turn, User
from tests.unit.linking import Between, Place, each_moment, listed, told

pytestmark = pytest.mark.anyio

HANDLE = Handle("telegram", "8817")


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """On memory and on SQLite."""
    return Place(tmp_path if request.param == "sqlite" else None)


async def test_a_handle_that_is_linked_to_nobody_is_a_user_of_its_own(place: Place) -> None:
    others = (
        Handle("telegram", "8818"),
        Handle("mail", "8817"),
        Handle("telegram", "8817", "shop"),
        "8817",
        "telegram",
    )
    async with place.open() as nitka:
        await nitka.say(HANDLE, "s", text="hello")
        assert await told(nitka, HANDLE) == {"s": [("hello", "re hello")]}
        for other in (*others, User("8817", "telegram")):
            assert await told(nitka, other) == {}


async def test_a_linked_handle_is_its_user_in_every_call(place: Place) -> None:
    async with place.open() as nitka:
        await nitka.link("telegram", "8817", "anna")
        await nitka.say(HANDLE, "s", text="from the handle", key="k")
        assert (await nitka.say("anna", "s", text="from the handle", key="k")).replayed
        async with nitka.turn(HANDLE, "s", text="again") as turn:
            assert "from the handle" in str(turn.request.messages)
            turn.answer("yes")
        await nitka.record(HANDLE, "t", text="long ago", answer="yes")
        await nitka.set_fact(HANDLE, "home.city", "Riga")
        assert await told(nitka, HANDLE) == await told(nitka, "anna") != {}
        assert await nitka.sessions(HANDLE) == await nitka.sessions("anna")
        assert await nitka.summary(HANDLE, "s") == await nitka.summary("anna", "s")
        assert [fact.value for fact in await nitka.facts("anna")] == ["Riga"]
        assert await listed(nitka.export(HANDLE, what="all")) == await listed(nitka.export("anna", what="all"))
        assert await nitka.links(HANDLE) == await nitka.links("anna") == (HANDLE,)
        await nitka.settle(HANDLE, "s")
        assert (await nitka.forget(HANDLE, session="t")).messages == 2
        assert await told(nitka, "anna") == {"s": [("from the handle", "re from the handle"), ("again", "yes")]}


async def test_a_link_holds_in_another_process_at_once_and_ends_there_at_once(place: Place) -> None:
    async with place.open() as here, place.open() as there:
        await there.say("anna", "s", text="hello")
        assert await told(there, HANDLE) == {}
        await here.link("telegram", "8817", "anna")
        assert await told(there, HANDLE) == {"s": [("hello", "re hello")]}
        assert await here.unlink("telegram", "8817", "anna")
        assert await told(there, HANDLE) == {}
        await there.say(HANDLE, "s", text="who am I?")
        assert await told(there, "anna") == {"s": [("hello", "re hello")]}


async def test_a_user_who_is_forgotten_in_another_process_and_begins_anew_keeps_no_handle(place: Place) -> None:
    async with place.open() as here, place.open() as there:
        await there.link("telegram", "8817", "anna")
        await there.say(HANDLE, "s", text="hello")
        assert (await here.forget("anna")).handles == 1
        await here.say("anna", "s", text="a new life")
        assert await told(there, HANDLE) == {}
        await here.link("telegram", "8817", "anna")
        assert await told(there, HANDLE) == {"s": [("a new life", "re a new life")]}


async def test_linking_twice_is_harmless_and_a_handle_has_one_user(place: Place) -> None:
    async with place.open() as nitka:
        assert await nitka.link("telegram", "8817", "anna") == HANDLE
        await nitka.say(HANDLE, "s", text="hello")
        assert await nitka.link("telegram", "8817", "anna") == HANDLE
        assert await nitka.link("telegram", "8817", HANDLE) == HANDLE, "a handle is its user, and his already"
        with pytest.raises(AlreadyKnown) as refused:
            await nitka.link("telegram", "8817", "boris")
        assert (refused.value.sessions, refused.value.messages, refused.value.facts) == (0, 0, 0)
        assert await nitka.links("boris") == () and await nitka.links("anna") == (HANDLE,)
        assert await nitka.sessions("boris") == ()


async def test_a_handle_with_memory_of_its_own_is_refused_with_counts(place: Place) -> None:
    async with place.open() as nitka:
        await nitka.say(HANDLE, "s", text="hello")
        await nitka.say(HANDLE, "t", text="hello")
        await nitka.say(HANDLE, "t", text="hello")
        await nitka.set_fact(HANDLE, "home.city", "Riga")
        with pytest.raises(AlreadyKnown, match=r"2 sessions, 6 messages, 1 facts") as refused:
            await nitka.link("telegram", "8817", "anna")
        assert (refused.value.sessions, refused.value.messages, refused.value.facts) == (2, 6, 1)
        assert isinstance(refused.value, BadInput)
        assert await nitka.links("anna") == ()
        await nitka.forget(HANDLE)
        assert await nitka.link("telegram", "8817", "anna") == HANDLE


async def test_a_fact_alone_is_memory(place: Place) -> None:
    async with place.open() as nitka:
        await nitka.set_fact(HANDLE, "home.city", "Riga")
        with pytest.raises(AlreadyKnown, match=r"0 sessions, 0 messages, 1 facts"):
            await nitka.link("telegram", "8817", "anna")


async def test_a_turn_that_was_never_answered_is_no_memory(place: Place) -> None:
    async with place.open() as nitka:
        with pytest.raises(ZeroDivisionError):
            async with nitka.turn(HANDLE, "s", text="hello"):
                _ = 1 / 0
        await nitka.link("telegram", "8817", "anna")
        await nitka.say(HANDLE, "s", text="hello")
        assert await told(nitka, "anna") == {"s": [("hello", "re hello")]}


async def test_a_handle_that_others_are_linked_to_is_refused(place: Place) -> None:
    async with place.open() as nitka:
        await nitka.link("mail", "a@example.org", HANDLE)
        with pytest.raises(AlreadyKnown, match="Other handles"):
            await nitka.link("telegram", "8817", "anna")
        assert await nitka.links(HANDLE) == (Handle("mail", "a@example.org"),)


async def test_unlinking_says_whether_it_was_his_and_leaves_what_was_said(place: Place) -> None:
    async with place.open() as nitka:
        await nitka.link("telegram", "8817", "anna")
        await nitka.say(HANDLE, "s", text="hello")
        assert not await nitka.unlink("telegram", "8817", "boris")
        assert not await nitka.unlink("telegram", "8818", "anna")
        assert not await nitka.unlink("telegram", "8817", User("anna", "shop"))
        assert await nitka.links("anna") == (HANDLE,)
        assert await nitka.unlink("telegram", "8817", "anna")
        assert not await nitka.unlink("telegram", "8817", "anna")
        assert await told(nitka, "anna") == {"s": [("hello", "re hello")]} and await told(nitka, HANDLE) == {}


async def test_a_handle_is_linked_within_the_tenant_of_its_user(place: Place) -> None:
    async with place.open() as nitka:
        assert await nitka.link("telegram", "8817", User("anna", "shop")) == Handle("telegram", "8817", "shop")
        await nitka.say(Handle("telegram", "8817", "shop"), "s", text="hello")
        assert await told(nitka, HANDLE) == {}
        await nitka.link("telegram", "8817", "anna")
        assert await told(nitka, HANDLE) == {}
        assert await nitka.links(User("anna", "shop")) == (Handle("telegram", "8817", "shop"),)


async def test_forgetting_a_user_removes_and_counts_his_handles(place: Place) -> None:
    async with place.open() as nitka:
        for number in range(3):
            await nitka.link("telegram", str(number), "anna")
        await nitka.link("telegram", "8817", "boris")
        await nitka.say(Handle("telegram", "1"), "s", text="hello")
        erased = await nitka.forget(Handle("telegram", "2"))
        assert (erased.users, erased.sessions, erased.messages, erased.handles) == (1, 1, 2, 3)
        assert await nitka.links("anna") == () and await nitka.links("boris") == (HANDLE,)
        assert (await nitka.forget(Handle("telegram", "2"))).users == 0
        await nitka.link("telegram", "2", "boris")
        assert await nitka.sessions(Handle("telegram", "2")) == ()


async def test_who_is_unknown_or_private_leaves_nothing_behind(place: Place) -> None:
    async with place.open() as nitka:
        await nitka.say(HANDLE, "s", text="hello", private=True)
        await nitka.say(HANDLE, "s", text="hello", private="reads")
        assert await nitka.links(HANDLE) == await nitka.links("anna") == ()
        assert not await nitka.unlink("telegram", "8817", "anna")
        assert (await nitka.adopt(HANDLE, "anna")).messages == 0
        assert await listed(nitka.export(HANDLE, what="all")) == []
        assert (await nitka.forget(HANDLE)).users == 0
        assert await nitka._vault.store.owners() == []


async def test_an_export_of_all_lists_the_handles(place: Place) -> None:
    async with place.open() as nitka:
        await nitka.say("anna", "s", text="hello")
        await nitka.link("telegram", "8817", "anna")
        await nitka.link("mail", "a@example.org", "anna")
        records = [record for record in await listed(nitka.export("anna", what="all")) if "link" in record]
        expected = [{"channel": "mail", "id": "a@example.org"}, {"channel": "telegram", "id": "8817"}]
        assert sorted((record["link"] for record in records), key=lambda link: link["channel"]) == expected
        assert not any("link" in record for record in await listed(nitka.export("anna")))


@pytest.mark.parametrize("bad", ["", "a\0", "\ud800", "x" * 513, 8817, None], ids=ascii)
async def test_what_is_no_id_is_refused(bad: Any) -> None:
    async with Place().open() as nitka:
        for call in (
            lambda: nitka.link(bad, "8817", "anna"),
            lambda: nitka.link("telegram", bad, "anna"),
            lambda: nitka.unlink("telegram", bad, "anna"),
            lambda: nitka.say(Handle(bad, "8817"), "s", text="hello"),
            lambda: nitka.say(Handle("telegram", bad), "s", text="hello"),
            lambda: nitka.sessions(Handle("telegram", bad)),
            lambda: nitka.adopt(Handle("telegram", bad), "anna"),
        ):
            with pytest.raises(BadId):
                await call()
        with pytest.raises(BadInput):
            await nitka.sessions(("telegram", "8817"))  # type: ignore[arg-type]
        assert await nitka._vault.store.owners() == []


@pytest.mark.parametrize("column", ["owner", "handle"])
async def test_a_link_that_was_moved_leads_nowhere(tmp_path: Path, column: str) -> None:
    """Whoever can write to the database cannot make another person of a handle."""
    place = Place(tmp_path)
    async with place.open() as nitka:
        await nitka.say("anna", "s", text="hello")
        await nitka.link("telegram", "8817", "anna")
        await nitka.link("telegram", "666", "boris")
    db = sqlite3.connect(str(place.path))
    (first, one), (second, other) = db.execute("select handle, owner from handles").fetchall()
    if column == "owner":
        db.execute("update handles set owner = ? where handle = ?", (other, first))
        db.execute("update handles set owner = ? where handle = ?", (one, second))
    else:
        db.execute("update handles set handle = x'00' where handle = ?", (first,))
        db.execute("update handles set handle = ? where handle = ?", (first, second))
        db.execute("update handles set handle = ? where handle = x'00'", (second,))
    db.commit()
    db.close()
    async with place.open() as nitka:
        for name in ("8817", "666"):
            with pytest.raises(Damaged):
                await nitka.sessions(Handle("telegram", name))
            with pytest.raises(Damaged):
                await nitka.say(Handle("telegram", name), "s", text="what did I say?")
        assert await told(nitka, "anna") == {"s": [("hello", "re hello")]}


async def test_the_names_lie_sealed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.open() as nitka:
        await nitka.link("the channel Tschisch", "the handle Tschisch", "the user Tschisch")
        await nitka.say(Handle("the channel Tschisch", "the handle Tschisch"), "s", text="hello")
        for path in tmp_path.iterdir():
            assert b"Tschisch" not in path.read_bytes()


class OpenTurn:
    """A turn of the handle in one process, and what became of it."""

    def __init__(self, nitka: Nitka) -> None:
        self._block = nitka.turn(HANDLE, "s", text="hello")
        self._turn: Turn | None = None
        self.said = "never ended"

    async def open(self) -> None:
        self._turn = await self._block.__aenter__()

    async def end(self) -> None:
        try:
            if self._turn is None:
                await self.open()
            assert self._turn is not None
            self._turn.answer("re hello")
            await self._block.__aexit__(None, None, None)
            self.said = "written"
        except Forgotten:
            self.said = "refused"


class OneLink:
    """The link of the handle in one process, and what became of it."""

    def __init__(self, nitka: Nitka) -> None:
        self._nitka = nitka
        self.linked = False

    async def make(self) -> None:
        try:
            await self._nitka.link("telegram", "8817", "anna")
            self.linked = True
        except AlreadyKnown as error:
            assert (error.sessions, error.messages) == (1, 2)


async def check_nothing_hidden(nitka: Nitka, turn: OpenTurn, link: OneLink) -> None:
    """What was acknowledged is where the handle looks for it, and nowhere else."""
    mine, annas = await told(nitka, HANDLE), await told(nitka, "anna")
    assert mine == ({"s": [("hello", "re hello")]} if turn.said == "written" else {})
    assert annas == (mine if link.linked else {})


async def fail(nitka: Nitka) -> None:
    """A turn that opens and is never answered."""
    with pytest.raises(ZeroDivisionError):
        async with nitka.turn(HANDLE, "s", text="no"):
            _ = 1 / 0


@pytest.mark.parametrize("opened", [False, True], ids=["whole", "opened before"])
@pytest.mark.parametrize("left", [False, True], ids=["new", "with rows of a failed turn"])
async def test_a_first_turn_at_any_moment_of_a_link_is_not_lost(opened: bool, left: bool) -> None:
    """It is the user's, or it is the handle's own and the link is refused, or it is refused; it is never hidden."""
    seen = set()

    async def meet(at: int) -> int:
        place = Place()
        between = Between(place.store())
        async with place.open() as other, place.open(between) as nitka:
            turn, link = OpenTurn(other), OneLink(nitka)
            if left:
                await fail(other)
            if opened:
                await turn.open()
            between.arm(at, turn.end)
            await link.make()
            calls = await between.disarm()
            await check_nothing_hidden(other, turn, link)
        seen.add((link.linked, turn.said))
        return calls

    await each_moment(meet)
    assert (True, "refused" if opened else "written") in seen


@pytest.mark.parametrize("left", [False, True], ids=["new", "with rows of a failed turn"])
async def test_a_link_at_any_moment_of_a_first_turn_hides_nothing(left: bool) -> None:
    """The same the other way round: the link is made in the middle of a turn."""
    seen = set()

    async def meet(at: int) -> int:
        place = Place()
        between = Between(place.store())
        async with place.open() as other, place.open(between) as nitka:
            turn, link = OpenTurn(nitka), OneLink(other)
            if left:
                await fail(other)
            between.arm(at, link.make)
            await turn.end()
            calls = await between.disarm()
            await check_nothing_hidden(other, turn, link)
        seen.add((link.linked, turn.said))
        return calls

    await each_moment(meet)
    assert {(True, "written"), (True, "refused")} <= seen
