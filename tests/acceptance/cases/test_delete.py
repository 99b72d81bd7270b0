"""DELETE: forgetting removes neither too little nor too much, and says truly what went."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from nitka import BadInput, Forgotten, Handle, Limits, Nitka, User
from nitka.types import Erased
from tests.acceptance.cases.stage import Stage, beside, fact, lay, reader, said, tell, whole
from tests.laws.recalled import Hashing

pytestmark = pytest.mark.anyio

ALIKE = [
    ("b", "a", "c"),
    ("b", "B", "b "),
    ("анна", "Анна", "анна1"),
    (User("b", "shop"), User("b", "shop2"), "b"),
    ("%", "a", "_"),
    ("*", "a*", "' or 1=1 --"),
]


async def export_of(nitka: Nitka, user: Any) -> list[Any]:
    return [record async for record in nitka.export(user, what="all")]


@pytest.mark.parametrize("users", ALIKE, ids=str)
async def test_de_1_deleting_one_user_leaves_the_others_as_they_were(stage: Stage, users: tuple[Any, ...]) -> None:
    """One user is gone everywhere; the others' rows are the same bytes as before, however alike the names are."""
    gone, *others = users
    async with stage.open() as nitka:
        for user in users:
            for session in ("s", "t"):
                await lay(nitka, user, session, 5)
        await nitka.settle()
        before = {user: await export_of(nitka, user) for user in others}
        rows_before = stage.everything()
        erased = await nitka.forget(gone)
        assert (erased.users, erased.sessions, erased.messages, erased.lines) == (1, 2, 20, 12)
        assert await nitka.sessions(gone) == () and await export_of(nitka, gone) == []
        assert {user: await export_of(nitka, user) for user in others} == before
        await nitka.settle()
        rows_after = stage.everything()
        for table, rows in rows_after.items():
            assert all(row in rows_before[table] for row in rows), f"{table} holds what it held"
        if stage.path:
            counts = {table.split(":")[1]: len(rows) for table, rows in rows_after.items()}
            assert (counts["owners"], counts["sessions"], counts["messages"]) == (2, 4, 40)
            assert counts["folds"] == 4 + 2 * 2, "a summary a session; facts and the recall index of each person"


async def test_de_2_what_is_deleted_is_found_nowhere(stage: Stage) -> None:
    """A forgotten turn is in no list, summary, export, request, replay or cache, of this worker or of another."""
    async with stage.open() as nitka, stage.open() as other:
        await lay(nitka, "anna", "s", 2)
        await nitka.record("anna", "s", text="my bank uses the word heron", answer="I note: heron", key="k")
        await lay(nitka, "anna", "s", 4, start=2)
        await nitka.settle()
        assert "heron" in (await other.summary("anna", "s")).text
        assert "heron" in str(await other.history("anna", "s"))
        erased = await nitka.forget("anna", session="s", turn=5)
        assert (erased.messages, erased.lines) == (2, 2)
        for worker in (nitka, other):
            found = [
                str(await worker.history("anna", "s")),
                (await worker.summary("anna", "s")).text,
                str(await export_of(worker, "anna")),
                str(await worker.sessions("anna")),
            ]
            async with worker.turn("anna", "s", text="Which word does my bank use?") as turn:
                found.append(said(turn.request.messages))
                turn.discard()
            assert not any("heron" in text for text in found)
            with pytest.raises(Forgotten):
                await worker.say("anna", "s", text="my bank uses the word heron", key="k")
        await nitka.settle()
        assert "heron" not in (await nitka.summary("anna", "s")).text, "nor does mending bring it back"


async def test_de_3_forget_tells_the_truth_when_there_is_nothing(stage: Stage) -> None:
    """Nothing to forget is all zeros: an unknown user, session or turn, a turn beyond the end, and a second time."""
    async with stage.open() as nitka:
        assert await nitka.forget("nobody") == Erased()
        assert await nitka.forget("nobody", session="s", turn=0) == Erased()
        await lay(nitka, "anna", "s", 1)
        assert await nitka.forget("anna", session="t") == Erased()
        assert await nitka.forget("anna", session="s", turn=2) == Erased()
        with pytest.raises(BadInput):
            await nitka.forget("anna", turn=0)
        with pytest.raises(BadInput):
            await nitka.forget("anna", session="s", turn=-1)
        assert (await nitka.forget("anna", session="s", turn=0)).messages == 2
        assert await nitka.forget("anna", session="s", turn=1) == Erased()
        assert await nitka.history("anna", "s") == ()


@pytest.mark.parametrize("turns", [1, 2, 3, 5])
async def test_de_3_counts_are_of_what_was_there(stage: Stage, turns: int) -> None:
    """What exists only as messages counts as messages, what is in the summary also as lines."""
    async with stage.open() as nitka:
        await lay(nitka, "anna", "s", turns)
        await nitka.settle()
        folded = max(0, 2 * turns - 4)
        first = await nitka.forget("anna", session="s", turn=0)
        assert (first.messages, first.lines, first.sessions) == (2, min(2, folded), 0)
        rest = await nitka.forget("anna", session="s")
        assert (rest.messages, rest.lines, rest.sessions) == (2 * turns - 2, max(0, folded - 2), 1)
        last = await nitka.forget("anna")
        assert (last.users, last.sessions, last.messages) == (1, 0, 0)


HIS = (":messages", ":sessions", ":folds", ":pieces", ":user_keys")


@pytest.mark.parametrize("marker", ["gold-pelican-7731", "золотой-пеликан-7731"])
async def test_de_4_user_removed_while_a_turn_and_a_fold_are_under_way(
    sqlite: Stage, marker: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A turn being answered and a fold being made do not bring a deleted user back, and no byte of his rows is left in
    the database, its log or what was logged.
    """
    caplog.set_level(logging.DEBUG)
    async with sqlite.open() as nitka:
        sqlite.tally.gate.clear()
        await lay(nitka, marker, marker, 6, text=marker + " {}")
        await asyncio.wait_for(sqlite.tally.waiting.wait(), 30)
        sealed = [
            value for name, rows in sqlite.everything().items() if name.endswith(HIS) for row in rows for value in row
        ]
        pieces = [value[9:41] for value in sealed if isinstance(value, bytes) and len(value) > 41]
        assert len(pieces) >= 12 + 1 + 1, "messages, session and key, and what was made of them"
        with pytest.raises(Forgotten):
            async with nitka.turn(marker, marker, text=f"late {marker}") as turn:
                erased = await nitka.forget(marker)
                assert (erased.users, erased.messages, erased.erasure) == (1, 12, "complete")
                turn.answer(f"late {marker}")
        sqlite.tally.gate.set()
        await nitka.settle()
        assert await nitka.sessions(marker) == ()
        files = b"\0".join(path.read_bytes() for path in sqlite.files("", "-wal", "-shm", ".lock"))
        assert not any(piece in files for piece in pieces)
        forms = (marker.encode(), marker.encode("utf-16-le"), marker.encode().hex().encode())
        assert not any(form in files for form in forms)
        assert marker not in caplog.text


async def test_de_5_forgetting_everybody_leaves_no_table_behind(stage: Stage) -> None:
    """After every user was forgotten, each table of each store holds what it held before anybody came."""
    async with stage.open() as nitka:
        await nitka.forget("warm up")
    fresh = {table: len(rows) for table, rows in stage.everything().items()}
    async with stage.open(redact=lambda text: text.replace("x", "y")) as nitka:
        for user in ("anna", User("boris", "shop")):
            await lay(nitka, user, "s", 6)
            await nitka.say(user, "t", text="hello", key="k", channel="web")
            async with nitka.turn(user, "t", text="cut off") as turn:
                turn.piece("half")
                turn.answer()
            await nitka.forget(user, session="t", turn=0)
        await nitka.settle()
        await nitka.forget("anna")
        await nitka.forget(User("boris", "shop"))
        await nitka.settle()
        assert not await whole(nitka, "anna", "s")
    left = {table: len(rows) for table, rows in stage.everything().items()}
    grown = {table for table in left if left[table] > fresh[table]}
    allowed = {"tag_keys", "_tag_keys", "spent", "_spent"}  # a tenant's tag key; how many tokens a day took, of nobody
    assert {table.split(":")[-1].split(".")[-1] for table in grown} <= allowed


async def test_de_1_forgetting_a_person_takes_all_his_channels_and_nobody_elses(stage: Stage) -> None:
    """By whichever of his names he is forgotten, all are gone with him, counted, and free for others; the other
    people's rows are the same bytes as before.
    """
    async with stage.open() as nitka:
        for number in range(3):
            await nitka.link("telegram", str(number), "anna")
            await lay(nitka, Handle("telegram", str(number)), f"s{number}", 3)
        await nitka.link("telegram", "9", "boris")
        await lay(nitka, Handle("telegram", "9"), "s0", 3)
        await lay(nitka, Handle("telegram", "10"), "s0", 3)
        await nitka.settle()
        before = stage.everything()
        erased = await nitka.forget(Handle("telegram", "2"))
        assert (erased.users, erased.sessions, erased.messages, erased.handles) == (1, 3, 18, 3)
        assert await nitka.sessions("anna") == () and await nitka.links("anna") == ()
        for table, rows in stage.everything().items():
            assert all(row in before[table] for row in rows), f"{table} holds what it held"
        assert await nitka.links("boris") == (Handle("telegram", "9"),)
        await nitka.link("telegram", "2", "boris")
        assert {info.id for info in await nitka.sessions(Handle("telegram", "2"))} == {"s0"}
        assert await nitka.forget("anna") == Erased()


async def test_de_2_what_a_visitor_said_is_forgotten_with_the_user_he_became(stage: Stage) -> None:
    """After an adoption nothing is left of the visitor himself, and after forgetting the user nothing of his words:
    no row, no key, nothing due, in no worker's cache.
    """
    visitor = Handle("web", "cookie")
    async with stage.open() as nitka, stage.open() as other:
        await lay(nitka, visitor, "s", 6, text="the heron {}")
        await nitka.settle()
        assert "heron" in str(await other.history(visitor, "s"))
        adopted = await nitka.adopt(visitor, "anna")
        assert (adopted.messages, adopted.erasure) == (12, "complete")
        assert await other.history(visitor, "s") == () and await export_of(other, visitor) == []
        assert "heron" in str(await other.history("anna", "s"))
        with pytest.raises(Forgotten):
            async with other.turn(visitor, "s", text="again") as turn:
                await other.forget(visitor)
                turn.answer("late")
        assert (await nitka.forget("anna")).messages == 12
        await nitka.settle()
        assert await export_of(other, "anna") == [] and await other.sessions("anna") == ()
        rows = stage.everything()
        if stage.path:
            left = {table.split(":")[1] for table, found in rows.items() if found}
            assert left <= {"meta", "migrations", "roots", "tag_keys", "keys", "sqlite_sequence", "store"}, left


async def test_de_3_removing_a_link_says_whether_there_was_one(stage: Stage) -> None:
    """`unlink` is not told as done where nothing was linked; nothing but the link goes."""
    async with stage.open() as nitka:
        await nitka.link("telegram", "1", "anna")
        await lay(nitka, Handle("telegram", "1"), "s", 2)
        assert not await nitka.unlink("telegram", "1", "boris")
        assert not await nitka.unlink("mail", "1", "anna")
        assert await nitka.unlink("telegram", "1", "anna")
        assert not await nitka.unlink("telegram", "1", "anna")
        assert len(await whole(nitka, "anna", "s")) == 2


HERON = "my bank uses the word heron"
KEPT = Limits(window=2, recall_slack=0, profile_every=1, recall_wait=30)


async def everywhere(nitka: Nitka) -> str:
    """All that can be had of the user, by every way of reading and asking."""
    found = [
        await beside(nitka, question, session="s", recall="user") for question in (HERON, "Which word has the bank?")
    ]
    found += [repr(await nitka.recall("anna", question, k=50)) for question in (HERON, "the bank's word", "цапля")]
    found += [repr(await nitka.facts("anna", include_past=True)), (await nitka.profile("anna")).text]
    found += [repr(await nitka.history("anna", "s", limit=100)), (await nitka.summary("anna", "s")).text]
    return "\n".join([*found, str(await export_of(nitka, "anna"))])


def _retold(messages: Any) -> str:
    """A profile that repeats what it was shown."""
    return json.dumps({"lines": ["speaks of a heron" if "heron" in str(messages) else "is brief"]})


@pytest.mark.parametrize("how", ["fact", "about", "turn", "session", "user"])
async def test_de_2_a_forgotten_fact_is_found_by_no_words_and_no_meaning(stage: Stage, how: str) -> None:
    """What was learnt, profiled, indexed and given vectors is after a forget in no list, index, vector, cache, profile,
    summary or export, of this worker or of another that had it in memory; what was said beside it is still there.
    """
    word = fact("note.bank", "heron", HERON, statement="its word is heron", about="bank")
    model = reader(word, fact("home.city", "Leeds", "I live in Leeds"), lines=_retold)
    async with (
        stage.open(fold_model=model, embedder=Hashing(), limits=KEPT) as nitka,
        stage.open(fold_model=model, embedder=Hashing(), limits=KEPT) as other,
    ):
        await tell(nitka, stage.clock, "I live in Leeds.", session="t")
        await tell(nitka, stage.clock, "hm", HERON, "and so on", "yes", "no", "well")
        for worker in (nitka, other):
            await worker.settle()
            assert (await everywhere(worker)).count("heron") >= 5
        (one,) = [one for one in await nitka.facts("anna") if one.about == "bank"]
        ways: dict[str, dict[str, Any]] = {
            "fact": {"fact": one.id, "with_turns": True},
            "about": {"about": "bank", "with_turns": True},
            "turn": {"session": "s", "turn": 2},
            "session": {"session": "s"},
            "user": {},
        }
        erased = await nitka.forget("anna", **ways[how])
        assert erased.facts == (2 if how == "user" else 1) and erased.erasure == "complete"
        for _ in range(2):
            assert "heron" not in await everywhere(nitka)
            assert "heron" not in await everywhere(other)
            await nitka.settle()
        assert any(one.value == "Leeds" for one in await other.facts("anna")) == (how != "user")


async def test_de_3_a_topic_that_exists_only_as_a_fact_is_counted_as_one(stage: Stage) -> None:
    """Facts are counted as facts, turns that still say them are told, and what was not there is not told as done."""
    async with stage.open(fold_model="offline") as nitka:
        await nitka.set_fact("anna", "hobby", "rowing")
        await tell(nitka, stage.clock, "My brother Corin lives in York.", "I live in Leeds.", "I live in Leeds!")
        facts = {one.slot: one for one in await nitka.facts("anna", about="user")}
        erased = await nitka.forget("anna", fact=facts["hobby"].id)
        assert (erased.facts, erased.still_said, erased.messages) == (1, 0, 0)
        assert await nitka.forget("anna", fact=facts["hobby"].id) == Erased()
        erased = await nitka.forget("anna", fact=facts["home.city"].id)
        assert (erased.facts, erased.still_said, erased.messages) == (1, 2, 0)
        erased = await nitka.forget("anna", about="Corin", with_turns=True)
        assert (erased.facts, erased.still_said, erased.messages) == (2, 0, 2)
        for nothing in (
            {"about": "Corin"},
            {"about": "nobody"},
            {"fact": "nonsense"},
            {"about": "Corin", "with_turns": True},
        ):
            assert await nitka.forget("anna", **nothing) == Erased()
            assert await nitka.forget("nobody", **nothing) == Erased()
        assert len(await whole(nitka, "anna", "s")) == 2 and await nitka.facts("anna") == ()


async def test_de_5_no_table_of_facts_profiles_and_indexes_is_left_behind(stage: Stage) -> None:
    """With everything switched on that keeps something, forgetting everybody leaves nothing anywhere."""
    model = reader(fact("home.city", "Leeds", "I live in Leeds"), lines=_retold)
    more: dict[str, Any] = {"fold_model": model, "embedder": Hashing(), "limits": KEPT, "watch": {"": "test"}}
    async with stage.open(**more) as nitka:
        await nitka.forget("warm up")
    fresh = {table: len(rows) for table, rows in stage.everything().items()}
    async with stage.open(**more) as nitka:
        await nitka.link("telegram", "1", "anna")
        for user in ("anna", "boris"):
            await tell(nitka, stage.clock, "I live in Leeds.", "Where are your parents now?", *"abcdef", user=user)
            await nitka.set_fact(user, "hobby", "rowing")
            await nitka.settle()
            assert (await nitka.profile(user)).text and len(await nitka.facts(user)) == 2
            assert await nitka.recall(user, "Leeds")
        filled = {table for table, rows in stage.everything().items() if len(rows) > fresh[table]}
        assert any("piece" in table for table in filled) or not stage.path
        for user in ("anna", "boris"):
            await nitka.forget(user)
        await nitka.settle(rescan=True)
    left = {table for table, rows in stage.everything().items() if len(rows) > fresh[table]}
    assert {table.split(":")[-1].split(".")[-1] for table in left} <= {"tag_keys", "_tag_keys"}
