"""Alerts are delivered to the operator: signed, tried again for a day, without a text, and not of what is forgotten."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from nitka import BadInput, Handle, Nitka, User
from nitka.alerting import millis
from nitka.config import Settings
from nitka.server.run import build
from nitka.server.webhook import BACK_OFF, Courier, Hook
from nitka.store.port import Store
from nitka.store.sqlite import SqliteStore
from nitka.testing import FakeModel, FixedClock, MemoryStore, memory_ring
from nitka.types import Sealed
from nitka.watching import Watching

pytestmark = pytest.mark.anyio

SECRET, OLDER = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_" + "C" * 43 + "="
HOOK = Hook.of("https://alerts.example/nitka", f"{SECRET} {OLDER}")
STORY = ("Where are your parents now?", "Can you turn on your camera?")
ON = {"shop": "a test", "school": "a test"}
ANNA = User("anna", "shop")


class Receiver:
    """Takes deliveries, or answers what `answer` says."""

    def __init__(self) -> None:
        self.answer: Callable[[httpx.Request], httpx.Response] = lambda _: httpx.Response(204)
        self.got: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.got.append(request)
        return self.answer(request)

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(request.content)["data"] for request in self.got]


class Place:
    """A watched nitka, and a courier whose rounds the test begins."""

    def __init__(self, nitka: Nitka, store: Store, clock: FixedClock) -> None:
        self.nitka, self.store, self.clock = nitka, store, clock
        self.receiver, self.counted = Receiver(), list[str]()
        self.courier = self.another()
        nitka._turns.watching.delivers = True

    def another(self, hook: Hook | None = HOOK) -> Courier:
        client = httpx.AsyncClient(transport=httpx.MockTransport(self.receiver))
        vault, apart = self.nitka._vault, Watching({})
        return Courier(vault, apart, hook, self.clock, counted=self.counted.append, client=client)

    async def alarm(self, who: User | Handle = ANNA, session: str = "web-1") -> None:
        for text in STORY:
            await self.nitka.say(who, session, text=text)


@pytest.fixture(params=["memory", "sqlite"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    store: Store = MemoryStore() if request.param == "memory" else SqliteStore(str(tmp_path / "nitka.db"))
    async with watched(store) as there:
        yield there


@asynccontextmanager
async def watched(store: Store) -> AsyncIterator[Place]:
    clock = FixedClock()
    nitka = Nitka.open(store, model=FakeModel(["No."]), fold_model="offline", keys=memory_ring(), clock=clock, watch=ON)
    async with nitka:
        yield Place(nitka, store, clock)


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """Their library verifies it, by the newer secret and by the older."""
    clock = FixedClock()
    clock.now = datetime.now(UTC)  # their library looks at the clock
    body = b'{"test": 2432232314}'
    headers = HOOK.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", clock(), body)
    for secret in (SECRET, OLDER):
        assert Webhook(secret).verify(body, headers) == {"test": 2432232314}
    with pytest.raises(Exception, match="signature"):
        Webhook(SECRET).verify(b'{"test": 1}', headers)
    known = Hook.of("https://a.example", SECRET)
    clock.now = datetime.fromtimestamp(1614265330, UTC)
    headers = known.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", clock(), body)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_an_alert_says_who_where_and_what_rule_and_no_word_of_the_talk(place: Place) -> None:
    await place.alarm()
    assert await place.courier.round() == 1
    (request,) = place.receiver.got
    assert str(request.url) == "https://alerts.example/nitka" and request.headers["content-type"] == "application/json"
    assert request.headers["webhook-timestamp"] == str(int(place.clock().timestamp()))
    envelope = json.loads(request.content)
    assert (envelope["type"], envelope["timestamp"]) == ("alert.raised", place.clock().isoformat())
    told = envelope["data"]
    assert told["id"] == request.headers["webhook-id"]
    assert (told["tenant"], told["user"], told["session"], told["seq"]) == ("shop", "anna", "web-1", 2)
    assert (told["rule"], told["severity"]) == ("G01", told["severity"]) and told["severity"] in ("high", "extreme")
    ages = {item["flag"]: item["messages_ago"] for item in told["evidence"]}
    assert ages["ask_guardian_whereabouts"] == 2
    words = {word.strip("?").lower() for text in STORY for word in text.split()} - {"where", "on", "are", "your", "you"}
    assert "explanation" not in told and not {"parents", "turn"} & words & set(request.content.decode().lower().split())
    assert all(text not in request.content.decode() for text in STORY)


async def test_it_is_delivered_once(place: Place) -> None:
    await place.alarm()
    await asyncio.gather(*(place.another().round() for _ in range(4)))
    assert await place.courier.round() == 0
    assert len(place.receiver.got) == 1 and place.counted == ["delivered"]


async def test_nothing_is_put_there_without_a_webhook(place: Place) -> None:
    place.nitka._turns.watching.delivers = False
    await place.alarm()
    assert await place.courier.round() == 0


@pytest.mark.parametrize("failure", [301, 400, 410, 429, 500, "unreachable", "slow"])
async def test_what_is_not_taken_is_tried_again_later_and_unchanged(place: Place, failure: Any) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if failure == "unreachable":
            raise httpx.ConnectError("no")
        if failure == "slow":
            raise httpx.ReadTimeout("slow")
        return httpx.Response(failure, headers={"location": "https://elsewhere.example"})

    await place.alarm()
    place.receiver.answer = answer
    for tried, wait in enumerate(BACK_OFF, 1):
        assert await place.courier.round() == 1 and len(place.receiver.got) == tried
        place.clock.advance(seconds=wait - 1)
        assert await place.courier.round() == 0
        place.clock.advance(seconds=1)
    place.receiver.answer = lambda _: httpx.Response(200)
    assert await place.courier.round() == 1 and await place.courier.round() == 0
    assert len({request.content for request in place.receiver.got}) == 1
    assert len({request.headers["webhook-id"] for request in place.receiver.got}) == 1
    assert place.counted == ["failed"] * len(BACK_OFF) + ["delivered"]


async def test_after_a_day_it_is_given_up(place: Place) -> None:
    await place.alarm()
    place.receiver.answer = lambda _: httpx.Response(500)
    for _ in range(40):
        place.clock.advance(hours=1)
        await place.courier.round()
    assert 20 <= len(place.receiver.got) <= 24
    now = millis(place.clock())
    assert await place.store.take_outbox(now=now, until=now, limit=5, oldest=0) == []


async def test_without_a_webhook_what_waited_for_one_goes_after_a_day(place: Place) -> None:
    await place.alarm()
    place.clock.advance(days=1, seconds=1)
    await place.another(None).round()
    assert await place.store.take_outbox(now=0, until=0, limit=5, oldest=0) == []
    assert place.receiver.got == []


@pytest.mark.parametrize("forget", [{}, {"session": "web-1"}, {"session": "web-1", "turn": 2}])
async def test_of_what_was_forgotten_nothing_is_told(place: Place, forget: dict[str, Any]) -> None:
    await place.alarm()
    await place.nitka.forget(ANNA, **forget)
    await place.courier.round()
    assert place.receiver.got == [] and set(place.counted) <= {"dropped"}
    await place.alarm(session="web-2")
    await place.courier.round()
    assert [told["session"] for told in place.receiver.told()] == ["web-2"]


async def test_another_turns_alert_is_told_though_an_earlier_turn_was_forgotten(place: Place) -> None:
    await place.nitka.say(ANNA, "web-1", text="Hello there.")
    await place.alarm()
    await place.nitka.forget(ANNA, session="web-1", turn=0)
    await place.courier.round()
    assert [told["seq"] for told in place.receiver.told()] == [4]


async def test_a_session_made_anew_is_another(place: Place) -> None:
    await place.alarm()
    await place.nitka.forget(ANNA, session="web-1")
    for _ in range(2):
        await place.nitka.say(ANNA, "web-1", text="Nothing special.")
    await place.courier.round()
    assert place.receiver.got == []


async def test_each_tenant_and_each_handle_is_named_as_its_caller_does(place: Place) -> None:
    await place.alarm(User("anna", "school"))
    await place.alarm(Handle("telegram", "8817", "shop"))
    await place.courier.round()
    who = [{name: told.get(name) for name in ("tenant", "user", "channel", "handle")} for told in place.receiver.told()]
    assert {"tenant": "school", "user": "anna", "channel": None, "handle": None} in who
    assert {"tenant": "shop", "user": None, "channel": "telegram", "handle": "8817"} in who and len(who) == 2


async def test_what_was_read_late_is_told_too_with_its_person(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch fails while the turn is written, and catches up afterwards."""
    with monkeypatch.context() as patch:
        patch.setattr(Watching, "reads", lambda *_: False)
        await place.alarm()
        assert await place.courier.round() == 0
    await place.nitka.settle(ANNA)
    await place.courier.round()
    (told,) = place.receiver.told()
    assert (told["user"], told["session"], told["rule"], told["seq"]) == ("anna", "web-1", "G01", 2)


async def test_a_delivery_that_comes_again_raises_no_second_alert(place: Place) -> None:
    for text in STORY:
        for _ in range(2):
            await place.nitka.say(ANNA, "web-1", text=text, key=text)
    await place.courier.round()
    assert len(place.receiver.got) == 1


async def test_a_row_of_somebody_elses_making_is_dropped(place: Place) -> None:
    await place.alarm()
    now = millis(place.clock())
    (row,) = await place.store.take_outbox(now=now, until=now, limit=5, oldest=0)
    broken = row._replace(body=Sealed(row.body[:-1] + bytes([row.body[-1] ^ 1])))
    await place.courier._deliver(broken)
    assert place.receiver.got == [] and place.counted == ["dropped"]
    assert await place.courier.round() == 0


async def test_nothing_of_it_is_in_clear_and_nothing_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with watched(SqliteStore(str(tmp_path / "nitka.db"))) as place:
        with caplog.at_level(logging.DEBUG, logger="nitka"):
            await place.alarm(User("Zaubermarke", "shop"), "Zaubersitzung")
            place.receiver.answer = lambda _: httpx.Response(500, text="Zaubermarke")
            await place.courier.round()
        files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert len(place.receiver.got) == 1
    assert not {text for text in ("Zauber", "G01", "ask_guardian") if text.encode() in files or text in caplog.text}
    assert "HTTP 500" in caplog.text


@pytest.mark.parametrize("secrets", ["", "hush", "whsec_", "whsec_c2hvcnQ=", SECRET[6:], f"{SECRET} hush"])
def test_a_secret_is_long_and_random_or_refused(secrets: str) -> None:
    with pytest.raises(BadInput) as caught:
        Hook.of("https://alerts.example", secrets)
    assert "hush" not in str(caught.value) and "hush" not in repr(HOOK)


async def test_a_server_delivers_by_itself(tmp_path: Path) -> None:
    """The whole way, from the environment to a receiver on this machine."""
    got: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:-2]
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        got.put_nowait((headers, await reader.readexactly(int(headers["content-length"]))))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    receiver = await asyncio.start_server(receive, "127.0.0.1", 0)
    port = receiver.sockets[0].getsockname()[1]
    environ = {
        "HOME": str(tmp_path),
        "NITKA_STORE": f"sqlite:///{tmp_path / 'nitka.db'}",
        "NITKA_WATCH": "shop=a test",
        "NITKA_WEBHOOK_URL": f"http://127.0.0.1:{port}/hook",
        "NITKA_WEBHOOK_SECRET": SECRET,
    }
    app = build(Settings.read(environ))
    async with app.router.lifespan_context(app):
        for text in STORY:
            await app.state.service.nitka.say(ANNA, "web-1", text=text)
        headers, body = await asyncio.wait_for(got.get(), 30)
    assert Webhook(SECRET).verify(body, headers)["data"]["rule"] == "G01"
    receiver.close()
