"""Whoever may write to the files gets nobody to read something else than the truth: it is the truth or an error.

What cannot be noticed is not among the cases of `tampering.sql`: older copies of rows or files put back in their
places, and whole users or sessions removed.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
from collections.abc import Awaitable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nitka import Limits, Nitka, NitkaError, User
from nitka.conversation import find_owner, find_thread
from nitka.testing import FakeModel, memory_ring
from nitka.vault.keychain import NO_TENANT
from nitka.vault.roots import KeyRing

pytestmark = pytest.mark.anyio

CASES = dict(
    case.split("\n", maxsplit=1)
    for case in Path(__file__).with_name("tampering.sql").read_text("utf-8").split("-- name: ")[1:]
)
TURNS = 8
ANNA, BORIS, SHOP, BANK = User("anna"), User("boris"), User("anna", "shop"), User("anna", "bank")
SESSIONS = ((ANNA, "s"), (ANNA, "t"), (BORIS, "s"), (SHOP, "s"), (BANK, "s"))
LIMITS = Limits(window=4, backlog=40, wait_seconds=5, close_seconds=1)
SECONDS = 20


def opened(path: Path, ring: KeyRing) -> Nitka:
    return Nitka.open(f"sqlite:///{path}", model=FakeModel(), fold_model="offline", keys=ring, limits=LIMITS)


def told(user: User, session: str) -> list[str]:
    """What was said, in order; two turns with the same question are among them."""
    name = f"{user.id}/{user.tenant}/{session}"
    pairs = ((f"It weighs {min(at, 6)} kg, {name}.", f"Answer {at} to {name}.") for at in range(TURNS))
    return [text for pair in pairs for text in pair]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, KeyRing, dict[str, bytes]]:
    """A store with sessions of four users, its ring, and the tags by which its rows are found."""
    path, ring = tmp_path_factory.mktemp("tampering") / "base.db", memory_ring()

    async def make() -> dict[str, bytes]:
        async with opened(path, ring) as nitka:
            for user, session in SESSIONS:
                texts = told(user, session)
                for at in range(TURNS):
                    question, answer = texts[2 * at : 2 * at + 2]
                    await nitka.record(user, session, text=question, answer=answer, key=f"k{at}")
            await nitka.settle()
            return await _tags(nitka)

    return path, ring, asyncio.run(make())


async def _tags(nitka: Nitka) -> dict[str, bytes]:
    found: dict[str, bytes] = {"temp": b"t" * 16}
    for user, session in SESSIONS[:3]:
        owner = await find_owner(nitka._vault, user)
        assert owner is not None
        thread = await find_thread(nitka._vault, owner, session)
        assert thread is not None
        found |= {user.id: owner.id, f"{user.id[:3]}_{session}": thread[0].tag}
    key = await nitka._vault.keychain._tag_key(NO_TENANT)
    return found | {tenant: key.tag(b"tenant", tenant.encode()) for tenant in ("shop", "bank")}


def tamper(path: Path, statements: str, tags: Mapping[str, bytes]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("attach ? as keys", (f"{path}.keys",))
        for name, tag in tags.items():
            statements = re.sub(rf":{name}\b", f"x'{tag.hex()}'", statements)
        changes = db.total_changes
        db.executescript(statements)
        assert db.total_changes > changes or "trigger" in statements


async def ask(call: Awaitable[Any]) -> Any:
    """What the call gives, or None where it is refused; whatever else it raises fails the test, and so does waiting."""
    async with asyncio.timeout(SECONDS):
        try:
            return await call
        except NitkaError:
            return None


async def redelivered(nitka: Nitka, at: int) -> str | None:
    async with nitka.turn(ANNA, "s", text=told(ANNA, "s")[2 * at], key=f"k{at}") as turn:
        assert turn.stored
        return turn.text


async def sent(nitka: Nitka, user: User, session: str) -> str:
    async with nitka.turn(user, session, text="and now?", private="reads") as turn:
        return "\n".join(message["content"] for message in turn.request.messages)


async def exported(nitka: Nitka, user: User) -> list[dict[str, Any]]:
    return [record async for record in nitka.export(user)]


async def check(nitka: Nitka, user: User, session: str) -> None:
    """History, request and export hold what was said here, all of it and nothing else, or are refused or marked."""
    truth = told(user, session)
    history = await ask(nitka.history(user, session, limit=100))
    assert history is None or [message.text for message in history] == truth
    request = await ask(sent(nitka, user, session))
    if request is not None:
        assert truth[-1] in request
        foreign = {text for pair in SESSIONS if pair != (user, session) for text in told(*pair)}
        assert not [text for text in foreign if text in request]
    records = await ask(exported(nitka, user)) or []
    assert {record["text"] for record in records if record.get("session") == session and "text" in record} <= set(truth)


@pytest.mark.parametrize("case", CASES)
async def test_it_is_the_truth_or_an_error(
    case: str, base: tuple[Path, KeyRing, dict[str, bytes]], tmp_path: Path
) -> None:
    """Of every case: what is read is true or refused, background work goes on, and the user can be forgotten."""
    source, ring, tags = base
    path = tmp_path / "tampered.db"
    for end in ("", ".keys"):
        shutil.copy(f"{source}{end}", f"{path}{end}")
    tamper(path, CASES[case], tags)
    nitka = opened(path, ring)
    if await ask(nitka.__aenter__()) is None:
        return
    try:
        for user, session in SESSIONS:
            await check(nitka, user, session)
        for at in (6, 7):
            assert await ask(redelivered(nitka, at)) in (None, told(ANNA, "s")[2 * at + 1])
        await ask(nitka.say(ANNA, "s", text="and then?"))
        await ask(nitka.settle(rescan=True))
        await asyncio.sleep(0.01)
        task = nitka._folder._task
        assert task is not None
        assert not task.done()
        await ask(nitka.forget(ANNA))
    finally:
        await nitka.close()
