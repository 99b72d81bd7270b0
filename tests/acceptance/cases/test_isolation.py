"""ISOLATION: nothing of one user, tenant or session appears in what another gets, whatever the ids and the timing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nitka import AlreadyKnown, BadId, BadInput, Handle, Limits, Nitka, User
from nitka.testing import FakeModel
from tests.acceptance.cases.stage import Stage, beside, fact, known, lay, reader, said, whole

pytestmark = pytest.mark.anyio


async def everything_readable(nitka: Nitka, user: Any, session: str) -> str:
    """All that a user can get back, as one text: every way of reading, and what his next request holds."""
    async with nitka.turn(user, session, text="What do you know?") as turn:
        found = [said(turn.request.messages), repr(turn.request.blocks), repr(turn.receipt)]
        turn.discard()
    found.append(repr(await nitka.sessions(user)))
    found.append(repr(await nitka.history(user, session, limit=1_000)))
    found.append(repr(await nitka.summary(user, session)))
    found.append(repr(await nitka.facts(user, include_past=True)))
    found.append(repr(await nitka.profile(user)))
    found.append(repr(await nitka.links(user)))
    for query in ("What do you know?", "locker number, code word, heron, said by, live", "<user-1> <1>"):
        found.append(repr(await nitka.recall(user, query, k=100)))
        found.append(await beside(nitka, query, user=user, session=session, recall="user"))
    found += [repr(record) async for record in nitka.export(user, what="all")]
    return "\n".join(found)


async def test_is_1_two_users_with_one_session_id(stage: Stage) -> None:
    """The same session id of another user, or of the same name in another tenant, is another conversation."""
    people: list[Any] = ["user-a", "user-b", User("user-a", "t1"), User("user-a", "t2")]
    async with stage.open() as nitka:
        for at, user in enumerate(people):
            await lay(nitka, user, "s1", 4, text=f"my locker number is 27{at}")
        await nitka.settle()
        for at, user in enumerate(people):
            found = await everything_readable(nitka, user, "s1")
            assert [f"27{other}" in found for other in range(4)] == [other == at for other in range(4)]
        newcomer = await nitka.say("user-c", "s1", text="what is my locker number?")
        assert newcomer.receipt is not None
        assert {entry.layer for entry in newcomer.receipt.entries} == {"question"}


async def test_is_2_default_session_names_of_two_agents(stage: Stage) -> None:
    """Two agents whose sessions bear the same default name share nothing: one is a tenant, or a user, of its own."""
    async with stage.open() as nitka:
        await lay(nitka, User("anna", "agent-1"), "New chat 1", 5, text="the word is heron")
        await nitka.settle()
        for other in (User("anna", "agent-2"), "anna", User("agent-1", "anna")):
            assert await nitka.history(other, "New chat 1") == ()
            assert await nitka.sessions(other) == ()
            assert "heron" not in await everything_readable(nitka, other, "New chat 1")


async def test_is_3_many_users_at_the_same_instant(stage: Stage) -> None:
    """Fifty users talk fully interleaved through one nitka; no stored row, summary or request has a foreign word."""
    users = [f"user-{at}" for at in range(50)]
    model = FakeModel(lambda messages: f"noted: {messages[-1]['content']}")
    async with stage.open(model=model) as nitka:

        async def talk(user: str) -> None:
            for at in range(4):
                await nitka.say(user, "s", text=f"my code word is <{user}> {at}")

        await asyncio.gather(*map(talk, users), nitka.settle())
        await nitka.settle()
        for user in users:
            found = await everything_readable(nitka, user, "s")
            assert {other for other in users if f"<{other}>" in found} == {user}
            assert len(await whole(nitka, user, "s")) == 4
        for request in model.requests:
            assert len({other for other in users if f"<{other}>" in said(request)}) == 1
        for call in stage.tally.calls:
            assert len({other for other in users if any(f"<{other}>" in m.text for m in call)}) == 1


async def test_is_4_every_way_of_reading_is_scoped(stage: Stage) -> None:
    """Each returned field of each call is of the user who asks: texts, ids, channels, counts, receipts, what was
    settled and what was forgotten.
    """
    async with stage.open() as nitka:
        for user, turns in (("user-a", 5), ("user-b", 7)):
            await lay(nitka, user, f"session of {user}", turns, text=f"said by {user}")
            await nitka.say(user, "both", text=f"said by {user}", channel=f"channel of {user}", key="k")
        done = await nitka.settle("user-a")
        assert (await nitka.summary("user-b", "session of user-b")).cursor in (0, 10)
        assert done.messages in (0, 6)
        await nitka.settle()
        for session in ("session of user-a", "both"):
            assert "user-b" not in await everything_readable(nitka, "user-a", session)
        assert await nitka.history("user-a", "session of user-b") == ()
        assert (await nitka.summary("user-a", "session of user-b")).cursor == 0
        reply = await nitka.say("user-a", "both", text="said by user-a", key="k")
        assert reply.replayed and "user-b" not in reply.text
        erased = await nitka.forget("user-a")
        assert (erased.sessions, erased.messages, erased.lines) == (2, 12, 6)
        assert sorted(info.messages for info in await nitka.sessions("user-b")) == [2, 14]


names = st.text(st.sampled_from("aA:/%.&=|_ 1b'\"*é\u0301к"), min_size=1, max_size=4)
people = st.tuples(st.one_of(st.just(""), names), names, names)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(identities=st.lists(people, min_size=2, max_size=6, unique=True), swap=st.booleans())
@example(identities=[("", "a&run=1", "x"), ("", "a", "run=1"), ("a", "a", "1"), ("", "aa", "1")], swap=False)
@example(identities=[("a:b", "c", "s"), ("a", "b:c", "s"), ("", "a:b:c", "s"), ("", "a", "b:c:s")], swap=True)
@example(identities=[("", "é", "s"), ("", "e\u0301", "s"), ("", "É", "s"), ("", "É ", "s")], swap=False)
async def test_is_5_ids_with_separators_never_share_a_key(identities: list[tuple[str, str, str]], swap: bool) -> None:
    """Distinct (tenant, user, session) are distinct conversations, with one turn key for all of them."""
    async with Stage().open() as nitka:
        for at, (tenant, user, session) in enumerate(identities):
            reply = await nitka.say(User(user, tenant), session, text=f"<{at}>", key="a:1" if swap else None)
            assert not reply.replayed
        for at, (tenant, user, session) in enumerate(identities):
            assert await whole(nitka, User(user, tenant), session) == [(f"<{at}>", f"answer to <{at}>")]
        for tenant, user in {identity[:2] for identity in identities}:
            mine = [session for its, name, session in identities if (its, name) == (tenant, user)]
            assert sorted(info.id for info in await nitka.sessions(User(user, tenant))) == sorted(mine)


LONG = "x" * 512


@pytest.mark.parametrize("bad", ["", "a\0", "\ud800", LONG + "x", "ж" * 257], ids=lambda bad: ascii(bad[:6]))
async def test_is_5_odd_ids_are_refused_and_never_merged(stage: Stage, bad: str) -> None:
    """What cannot be an id is a `BadId` in each place where an id is asked for; nothing is cut to fit."""
    async with stage.open() as nitka:
        await nitka.say(LONG, LONG, text="hello", key=LONG)
        for call in (
            lambda: nitka.say(bad, "s", text="hi"),
            lambda: nitka.say("anna", bad, text="hi"),
            lambda: nitka.say("anna", "s", text="hi", key=bad),
            lambda: nitka.history(bad, "s"),
            lambda: nitka.history(LONG, bad),
            lambda: nitka.summary(LONG, bad),
            lambda: nitka.sessions(bad),
            lambda: nitka.forget(bad),
            lambda: nitka.forget(LONG, session=bad),
            lambda: nitka.settle(LONG, bad),
        ):
            with pytest.raises(BadId):
                await call()
        if bad:
            with pytest.raises(BadId):
                await nitka.say(User("anna", bad), "s", text="hi")
        assert len(await whole(nitka, LONG, LONG)) == 1
        assert await nitka.sessions("anna") == ()


async def test_is_1_one_name_in_two_channels_is_two_people(stage: Stage) -> None:
    """The same number in another messenger, or of another bot, is somebody else; a user of that name is nobody's
    handle; and the person with two channels has one memory, each session with the channel it came by.
    """
    annas: list[Any] = [Handle("telegram", "8817"), Handle("mail", "anna@example.org")]
    strangers: list[Any] = [
        Handle("sms", "8817"),
        Handle("telegram", "anna"),
        Handle("telegram", "8817", "shop"),
        "8817",
    ]
    async with stage.open() as nitka:
        for handle in annas:
            await nitka.link(handle.channel, handle.id, "anna")
            await nitka.say(
                handle, handle.channel, text=f"my locker is 270, by {handle.channel}", channel=handle.channel
            )
        for at, stranger in enumerate(strangers):
            await nitka.say(stranger, "telegram", text=f"my locker is 28{at}")
        await nitka.settle()
        for who in ("anna", *annas):
            assert {info.id: info.channel for info in await nitka.sessions(who)} == {
                "telegram": "telegram",
                "mail": "mail",
            }
            found = await everything_readable(nitka, who, "telegram")
            assert "by telegram" in found and not any(f"28{at}" in found for at in range(4))
        for at, stranger in enumerate(strangers):
            found = await everything_readable(nitka, stranger, "telegram")
            assert [f"28{other}" in found for other in range(4)] == [other == at for other in range(4)]
            assert "270" not in found and "anna@example.org" not in found


async def test_is_4_a_number_that_passes_to_another_person_shows_nothing_of_the_first(stage: Stage) -> None:
    """Unlinked, the handle is a stranger in every way of reading, and what he says is not the first one's."""
    old = Handle("sms", "+371 2000")
    async with stage.open() as nitka, stage.open() as other:
        await nitka.link(old.channel, old.id, "anna")
        await lay(nitka, old, "s", 6, text="my word is heron {}")
        await nitka.settle()
        assert "heron" in await everything_readable(other, old, "s")
        await nitka.unlink(old.channel, old.id, "anna")
        assert "heron" not in await everything_readable(other, old, "s")
        await other.say(old, "s", text="my word is egret")
        assert "egret" not in await everything_readable(nitka, "anna", "s")
        assert len(await whole(nitka, "anna", "s")) == 6


async def test_is_4_two_people_are_never_merged_by_a_link(stage: Stage) -> None:
    """Somebody else's handle, and one that has a memory of its own, are refused with counts, and the refusal tells
    nothing of whose it is.
    """
    async with stage.open() as nitka:
        await nitka.link("telegram", "1", "user-b")
        await lay(nitka, Handle("telegram", "1"), "s", 3, text="said by user-b {}")
        await lay(nitka, Handle("telegram", "2"), "s", 3, text="said by a visitor {}")
        with pytest.raises(AlreadyKnown) as anothers:
            await nitka.link("telegram", "1", "user-a")
        with pytest.raises(AlreadyKnown) as known:
            await nitka.link("telegram", "2", "user-a")
        assert "user-b" not in str(anothers.value) and (anothers.value.sessions, anothers.value.messages) == (0, 0)
        assert (known.value.sessions, known.value.messages) == (1, 6)
        with pytest.raises(BadInput):
            await nitka.adopt(Handle("telegram", "1"), "user-a")
        assert await nitka.sessions("user-a") == () and await nitka.links("user-a") == ()
        assert "said by" not in await everything_readable(nitka, "user-a", "s")


async def test_is_3_many_visitors_sign_in_at_the_same_instant(stage: Stage) -> None:
    """Twenty visitors are adopted at once, all with one session id; each user has his own visitor's words and no
    others.
    """
    async with stage.open() as nitka:

        async def come(at: int) -> None:
            await lay(nitka, Handle("web", f"cookie {at}"), "s", 2, text=f"<{at}> {{}}")
            adopted = await nitka.adopt(Handle("web", f"cookie {at}"), f"user-{at}")
            assert (adopted.sessions, adopted.messages) == (1, 4)

        await asyncio.gather(*map(come, range(20)), nitka.settle())
        await nitka.settle()
        for at in range(20):
            found = await everything_readable(nitka, f"user-{at}", "s")
            assert [f"<{other}>" in found for other in range(20)] == [other == at for other in range(20)]
            assert "<" not in await everything_readable(nitka, Handle("web", f"cookie {at}"), "t")


async def test_is_4_facts_profiles_and_passages_are_scoped(stage: Stage) -> None:
    """With facts, profile and recall on, each way of reading gives one user his own and nothing of the other who said
    the same kind of thing in a session of the same name; ids of facts from the other open nothing.
    """
    people: dict[Any, str] = {"user-a": "Leeds", User("user-a", "shop"): "Porto", "user-b": "York"}
    model = reader(
        *(fact("home.city", city, f"I live in {city}") for city in people.values()),
        lines=lambda messages: json.dumps({"lines": [city for city in people.values() if city in str(messages)]}),
    )
    limits = Limits(window=2, recall_slack=0, profile_every=1, recall_wait=30)
    async with stage.open(fold_model=model, limits=limits) as nitka:
        for user, city in people.items():
            await lay(nitka, user, "s", 4, text=f"I live in {city}, said by one {{}}")
        await nitka.settle()
        ids = {city: (await nitka.facts(user))[0].id for user, city in people.items()}
        assert len(set(ids.values())) == 3, "one slot and three people"
        for user, city in people.items():
            found = await everything_readable(nitka, user, "s")
            assert [other in found for other in people.values()] == [other == city for other in people.values()]
            assert city in (await nitka.profile(user)).text
            for other in set(ids) - {city}:
                assert not await nitka.retract_fact(user, ids[other])
                assert (await nitka.forget(user, fact=ids[other])).facts == 0
        for shown in model.fold_requests["facts"] + model.fold_requests["lines"]:
            assert sum(city in shown[-1]["content"] for city in people.values()) == 1
        await nitka.forget("user-a")
        assert await known(nitka, User("user-a", "shop")) == {("user", "home.city"): "Porto"}
        assert (await nitka.recall("user-b", "York"))[0].session == "s"
