"""Law 7: a marker put everywhere a caller can put something is found nowhere on disk, in no log and in no error."""

from __future__ import annotations

import base64
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nitka import Handle, Limits, ModelError, Nitka, NitkaError, Passage, User
from nitka.models.ports import Answer
from nitka.testing import FakeModel

pytestmark = pytest.mark.anyio

MARKER = "Zaubermarke-чижик-7531"
LIMITS = Limits(window=4, summary_tokens=300, wait_seconds=5)


def disguises(marker: str) -> dict[str, bytes]:
    """The marker as it might hide in a file. Of base64 and UTF-16 the inner part, which does not depend on what stands
    around it.
    """
    plain = marker.encode("utf-8")
    found = {"utf-8": plain, "json": marker.encode("ascii", "backslashreplace"), "hex": plain.hex().encode()}
    found |= {"HEX": plain.hex().upper().encode(), "url": b"%".join([b"", *(b"%02X" % byte for byte in plain)])}
    found |= {"utf-16-le": marker.encode("utf-16-le"), "utf-16-be": marker.encode("utf-16-be")}
    found |= {"latin part": plain[:11], "cyrillic part": marker[12:17].encode("utf-8")}
    for shift in range(3):
        for name, encode in (("base64", base64.b64encode), ("urlsafe", base64.urlsafe_b64encode)):
            inner = encode(b"\0" * shift + plain)[4:-4]
            found[f"{name} {shift}"] = inner
    return found


NEEDLES = disguises(MARKER)


def seen(data: bytes) -> list[str]:
    return [name for name, needle in NEEDLES.items() if needle in data]


def test_the_search_finds_each_disguise() -> None:
    for name, wrap in WRAPPED.items():
        assert seen(wrap(MARKER)), name
    assert seen(b"nothing of the kind") == []


WRAPPED: dict[str, Callable[[str], bytes]] = {
    "plain": lambda text: f"before {text} after".encode(),
    "hex": lambda text: f"before {text}".encode().hex().encode(),
    "utf-16": lambda text: f"before {text}".encode("utf-16"),
    **{f"base64 after {n}": lambda text, n=n: base64.b64encode(b"x" * n + text.encode() + b"y") for n in range(3)},  # type: ignore[misc]
}


class Refusing:
    """A model whose every error quotes what it was asked, as a server's might."""

    name = "refusing"

    async def complete(self, messages: Any, *, max_tokens: int, schema: Any = None) -> Answer:
        raise ModelError(retryable=True, status=500)

    async def stream(self, messages: Any, *, max_tokens: int) -> Any:
        yield MARKER
        raise ModelError(retryable=False, status=500)

    async def close(self) -> None:
        pass


def opened(folder: Path, model: Any) -> Nitka:
    url = f"sqlite:///{folder / 'nitka.db'}"
    return Nitka.open(url, model=model, fold_model="offline", keys=folder / "keys.json", limits=LIMITS)


async def talk(nitka: Nitka, user: User) -> None:
    """Every argument that takes a text or an id."""
    for turn in range(12):
        await nitka.say(
            user,
            f"session {MARKER}",
            text=f"My name is {MARKER} and on 3 May {MARKER} moves to Riga, flat {turn}.",
            system=f"You serve {MARKER}.",
            knowledge=[MARKER, Passage(f"About {MARKER}", label=MARKER)],
            key=f"{turn} {MARKER}",
            channel=f"channel {MARKER}",
        )
    await nitka.record(user, MARKER, text=MARKER, answer=MARKER, key=MARKER, channel=MARKER)
    async with nitka.turn(user, MARKER, text=MARKER, tools=[{"type": "function", "name": MARKER}]) as turn_:
        turn_.piece(MARKER)
        turn_.answer()
    await nitka.say(user, MARKER, text=MARKER, private=True)
    handle = await nitka.link(MARKER, MARKER, user)
    await nitka.say(handle, MARKER, text=MARKER)
    visitor = Handle(f"channel {MARKER}", MARKER, user.tenant)
    await nitka.say(visitor, MARKER, text=MARKER, channel=MARKER)
    await nitka.adopt(visitor, user)
    await nitka.link(f"channel {MARKER}", MARKER, user)
    await nitka.unlink(f"channel {MARKER}", MARKER, user)
    await nitka.settle()


async def errors(nitka: Nitka, user: User) -> list[BaseException]:
    """What goes wrong with the marker at hand, each in its own way."""
    bad_id, long_id = MARKER + "\0", MARKER * 100
    calls: list[Callable[[], Any]] = [
        lambda: nitka.record(bad_id, "s", text="x", answer="y"),
        lambda: nitka.record(MARKER + "\ud800", "s", text="x", answer="y"),
        lambda: nitka.record(user, long_id, text="x", answer="y"),
        lambda: nitka.record(user, "s", text="x", answer="y", key=bad_id),
        lambda: nitka.record(user, "s", text="x", answer="y", zone=MARKER),
        lambda: nitka.link(MARKER, MARKER, User(f"other {MARKER}", user.tenant)),
        lambda: nitka.link(MARKER, bad_id, user),
        lambda: nitka.adopt(Handle(MARKER, MARKER, f"other {MARKER}"), user),
        lambda: nitka.record(user, "s", text=MARKER * 60_000, answer="y"),
        lambda: nitka.record(user, MARKER, text="other " + MARKER, answer="y", key=MARKER),
        lambda: nitka.record(user, MARKER, text=MARKER, answer="\u200b"),
        lambda: nitka.say(user, MARKER, text=MARKER, system=MARKER * 3000, budget=500),
        lambda: nitka.say(user, MARKER, text="\0" + MARKER, channel=MARKER, replaces=-1),
    ]
    found: list[BaseException] = []
    for call in calls:
        try:
            await call()
        except NitkaError as error:
            found.append(error)
    assert len(found) == len(calls)
    return found


async def cut_off(nitka: Nitka, user: User) -> list[BaseException]:
    """A model that fails, at once and in the middle."""
    found: list[BaseException] = []
    try:
        await nitka.say(user, MARKER, text=MARKER)
    except ModelError as error:
        found.append(error)
    try:
        async with nitka.say(user, MARKER, text=MARKER, stream=True) as pieces:
            async for _ in pieces:
                pass
    except ModelError as error:
        found.append(error)
    assert len(found) == 2
    return found


def said(error: BaseException) -> bytes:
    """The texts of an error and of its causes; of the traceback only what an error reporter without source has."""
    texts = []
    inner: BaseException | None = error
    while inner is not None:
        texts += traceback.format_exception_only(inner)
        inner = inner.__cause__ or inner.__context__
    return "\n".join(texts).encode("utf-8", "backslashreplace")


async def test_the_marker_is_found_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    user = User(f"user {MARKER}", tenant=f"tenant {MARKER}")
    folder = tmp_path / "files"
    folder.mkdir()
    with caplog.at_level(logging.DEBUG):
        async with opened(folder, FakeModel(lambda messages: f"{MARKER}, I heard: {messages[-1]['content']}")) as nitka:
            await talk(nitka, user)
            found = await errors(nitka, user)
            look(folder)  # with the write-ahead log in place
            assert any(MARKER in message.text for message in await nitka.history(user, MARKER)), "it is there, sealed"
            assert MARKER in (await nitka.summary(user, f"session {MARKER}")).text
        async with opened(folder, Refusing()) as nitka:
            found += await cut_off(nitka, user)
            (folder / "nitka.db.keys").chmod(0o600)
            look(folder)
            await nitka.forget(user, session=MARKER)
            await nitka.forget(user)
        look(folder)
    assert [seen(said(error)) for error in found] == [[]] * len(found)
    assert seen(caplog.text.encode("utf-8", "backslashreplace")) == []
    assert seen(repr([vars(record) for record in caplog.records]).encode("utf-8", "backslashreplace")) == []


def look(folder: Path) -> None:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    assert {"nitka.db", "nitka.db.keys", "nitka.db.lock", "keys.json"} <= {path.name for path in paths}
    assert {path.name: seen(path.read_bytes()) for path in paths} == {path.name: [] for path in paths}
    assert [path.name for path in paths if seen(path.name.encode())] == []
