"""Who talks to the server in a soak, what each knows was acknowledged, and whether that is what is kept in the end.

A person does one thing at a time, chosen by a seeded random, and writes down what the server said yes to. What it said
nothing to, since it was killed or the line was cut, is sent again with the same key until it answers. Three things may
be known of a turn: it was acknowledged; it was cut off, and may or may not be there; it was forgotten.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from nitka import Nitka, User
from nitka.types import Message

SESSIONS = 3
CITIES = ("Leeds", "Riga", "Oslo", "Turin", "Brno", "Ghent", "Vilnius", "Porto")
CUT = "Cut off: "
TRY_AGAIN = 0.3  # seconds


@dataclass
class Said:
    """A turn that was acknowledged: its question, and the number of its first row where it was told."""

    text: str
    seq: int | None = None
    key: str = ""


@dataclass
class Talk:
    """One conversation as its person knows it."""

    turns: list[Said] = field(default_factory=list)
    cut: set[str] = field(default_factory=set)


class Person:
    """One of those who talk. `http` has the API key; `log` counts what was done and what went wrong on the way."""

    def __init__(self, name: str, http: httpx.AsyncClient, log: Counter[str], *, pause: float, seed: int) -> None:
        self.name = name
        self.talks: dict[str, Talk] = {}
        self._http, self._log, self._pause = http, log, pause
        self._random = random.Random(seed)
        self._count = 0

    async def live(self, over: asyncio.Event) -> None:
        """Does one thing after another until it is over."""
        acts: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self._chat, 30),
            (self._turn, 30),
            (self._stream, 15),
            (self._cut, 12),
            (self._read, 12),
            (self._deliver_again, 4),
            (self._forget_turn, 6),
            (self._forget_fact, 3),
            (self._forget_session, 2),
            (self._forget_all, 1),
        ]
        while not over.is_set():
            (act,) = self._random.choices([act for act, _ in acts], [weight for _, weight in acts])
            await act()
            self._log[act.__name__.strip("_")] += 1
            await asyncio.sleep(self._random.uniform(0, 2 * self._pause))

    def _new(self) -> tuple[str, Talk, Said]:
        """A session and something to say in it."""
        session = f"s{self._random.randrange(SESSIONS)}"
        self._count += 1
        what = self._random.choice(
            (f"I live in {self._random.choice(CITIES)}.", "Remind me of the candles.", "Мы решили: вишня и три коржа.")
        )
        said = Said(f"{self.name} {self._count}: {what}", key=f"{self.name}-{self._count}")
        return session, self.talks.setdefault(session, Talk()), said

    async def _chat(self) -> None:
        session, talk, said = self._new()
        await self._ask("POST", "/v1/chat/completions", self._chat_body(said, session), key=said.key)
        talk.turns.append(said)

    async def _turn(self) -> None:
        session, talk, said = self._new()
        told = await self._ask("POST", "/v1/turns", self._turn_body(said, session), key=said.key)
        said.seq = told.json()["seq"]
        talk.turns.append(said)

    async def _stream(self) -> None:
        """A stream that is read to its end; one that breaks is sent again."""
        session, talk, said = self._new()
        body = {**self._chat_body(said, session), "stream": True}
        told = await self._ask("POST", "/v1/chat/completions", body, key=said.key, ends=b"data: [DONE]\n\n")
        assert told.content.endswith(b"data: [DONE]\n\n")
        talk.turns.append(said)

    async def _cut(self) -> None:
        """A stream that is left after its first words."""
        session, talk, said = self._new()
        said.text = CUT + said.text
        body = {**self._chat_body(said, session), "stream": True}
        talk.cut.add(said.text)
        try:
            async with self._http.stream(
                "POST", "/v1/chat/completions", json=body, headers=self._who(said.key)
            ) as told:
                async for piece in told.aiter_bytes():
                    if b'"content"' in piece:
                        break
        except httpx.HTTPError:
            self._log["broken lines"] += 1

    async def _read(self) -> None:
        """All kinds of reads; what was acknowledged is there."""
        session = f"s{self._random.randrange(SESSIONS)}"
        for path in ("/v1/me/sessions", "/v1/me/facts", "/v1/me/profile"):
            await self._ask("GET", path)
        await self._ask("POST", "/v1/me/recall", {"query": "candles", "session": session})
        told = await self._ask("GET", "/v1/me/conversation?limit=500", session=session)
        rows = [row["text"] for row in reversed(told.json()["data"]) if row["role"] == "user"]
        wanted = [said.text for said in self.talks.get(session, Talk()).turns][-100:]
        found = [text for text in rows if not text.startswith(CUT)][-100:]
        assert found == wanted, f"{self.name} {session}: {len(found)} turns, {len(wanted)} acknowledged"

    async def _deliver_again(self) -> None:
        """A delivery that comes again is answered as before."""
        talk = self.talks.get(session := f"s{self._random.randrange(SESSIONS)}", Talk())
        if talk.turns:
            said = self._random.choice(talk.turns)
            if said.seq is None:
                told = await self._ask("POST", "/v1/chat/completions", self._chat_body(said, session), key=said.key)
                assert told.headers["x-nitka-replayed"] == "true"
            else:
                told = await self._ask("POST", "/v1/turns", self._turn_body(said, session), key=said.key)
                assert (told.json()["replayed"], told.json()["seq"]) == (True, said.seq)

    async def _forget_turn(self) -> None:
        session, talk = f"s{self._random.randrange(SESSIONS)}", Talk()
        talk = self.talks.get(session, talk)
        numbered = [said for said in talk.turns if said.seq is not None]
        if numbered:
            said = self._random.choice(numbered)
            await self._ask("POST", "/v1/me/forget", {"session": session, "turn": said.seq})
            talk.turns.remove(said)
            told = await self._ask("POST", "/v1/turns", self._turn_body(said, session), key=said.key, good=(410,))
            assert told.json()["error"]["code"] == "forgotten"

    async def _forget_fact(self) -> None:
        told = await self._ask("GET", "/v1/me/facts")
        if facts := told.json()["data"]:
            fact = self._random.choice(facts)["id"]
            await self._ask("POST", "/v1/me/forget", {"fact": fact})
            left = (await self._ask("GET", "/v1/me/facts?limit=500")).json()["data"]
            assert fact not in [one["id"] for one in left]

    async def _forget_session(self) -> None:
        session = f"s{self._random.randrange(SESSIONS)}"
        await self._ask("POST", "/v1/me/forget", {"session": session})
        self.talks.pop(session, None)

    async def _forget_all(self) -> None:
        await self._ask("DELETE", "/v1/me")
        self.talks.clear()
        assert (await self._ask("GET", "/v1/me/sessions")).json()["data"] == []

    def _chat_body(self, said: Said, session: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": said.text}], "metadata": {"session_id": session}}

    def _turn_body(self, said: Said, session: str) -> dict[str, Any]:
        return {"text": said.text, "session": session}

    def _who(self, key: str = "", session: str = "") -> dict[str, str]:
        named = {"Idempotency-Key": key, "X-Nitka-Session": session}
        return {"X-Nitka-User": self.name} | {name: value for name, value in named.items() if value}

    async def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str = "",
        session: str = "",
        good: tuple[int, ...] = (200,),
        ends: bytes = b"",
    ) -> httpx.Response:
        """One request, sent again until the server answers it: a process of it may be killed at any time. A stream is
        answered when it `ends` as it should.
        """
        while True:
            try:
                told = await self._http.request(method, path, json=body, headers=self._who(key, session))
                if told.status_code in good and told.content.endswith(ends):
                    return told
                trouble = f"status {told.status_code}" if told.status_code not in good else "broken streams"
                known = ends or told.status_code in (502, 503)
                assert known, f"{method} {path.partition('?')[0]}: {trouble}, {_code(told)}"
                self._log[trouble] += 1
            except httpx.HTTPError:
                self._log["broken lines"] += 1
            await asyncio.sleep(TRY_AGAIN)


def _code(told: httpx.Response) -> object:
    try:
        return told.json()["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return "no code"


async def check(nitka: Nitka, person: Person) -> Counter[str]:
    """The laws, on what is kept of one person; what was counted on the way. Raises `AssertionError`."""
    found: Counter[str] = Counter()
    sessions = {info.id: info for info in await nitka.sessions(person.name)}
    for session in sessions.keys() | person.talks.keys():
        talk = person.talks.get(session, Talk())
        rows = await nitka.history(person.name, session, limit=1_000_000)
        _two_rows(rows, talk)
        assert len(rows) == (sessions[session].messages if session in sessions else 0)
        if rows:
            await _no_gap(nitka, person.name, session, rows)
        found["messages"] += len(rows)
        found["interrupted"] += sum(row.interrupted for row in rows)
    found["sessions"] += len(sessions)
    facts = await nitka.facts(person.name)
    assert len({(fact.about, fact.slot, fact.value) for fact in facts}) == len(facts), "one slot, one fact"
    found["facts"] += len(facts)
    return found


def _two_rows(rows: tuple[Message, ...], talk: Talk) -> None:
    """Adjacent pairs; every acknowledged turn once, in order; of those that were cut off each at most once."""
    assert [row.role for row in rows] == ["user", "assistant"] * (len(rows) // 2)
    assert all(row.seq % 2 == (row.role == "assistant") for row in rows)
    assert all(one.seq + 1 == two.seq for one, two in zip(rows[::2], rows[1::2], strict=True))
    asked = [row.text for row in rows[::2]]
    assert [text for text in asked if not text.startswith(CUT)] == [said.text for said in talk.turns]
    left = Counter(text for text in asked if text.startswith(CUT))
    assert left.keys() <= talk.cut
    assert not left or max(left.values()) == 1


async def _no_gap(nitka: Nitka, user: str, session: str, rows: tuple[Message, ...]) -> None:
    """The summary covers what is before its cursor, and the verbatim messages exactly what is after it."""
    async with nitka.turn(user, session, text="And now?", private="reads") as turn:
        opened = turn.opened
        turn.discard()
    assert opened is not None
    cursor = opened.summary.cursor
    assert [row.seq for row in opened.history] == [row.seq for row in rows if row.seq >= cursor]
    after = sum(row.seq >= cursor for row in rows)
    assert after <= nitka._limits.window + nitka._limits.slack, "what is due was done"
    assert after >= min(len(rows), nitka._limits.window) or cursor < rows[-1].seq, "no more was folded than is due"
    spans = [(line.first, line.last) for line in opened.summary.lines]
    assert all(0 <= first <= last < cursor for first, last in spans)
    living = {row.seq for row in rows}
    assert all(living & set(range(first, last + 1)) for first, last in spans), "no line of what was forgotten alone"


async def gone(nitka: Nitka, user: str) -> bool:
    """Whether nothing is kept of a user."""
    records = [record async for record in nitka.export(User(user), what="all")]
    return not records and not await nitka.facts(user, include_past=True) and not await nitka.sessions(user)


def line_of(log: Counter[str]) -> str:
    return json.dumps(dict(sorted(log.items())), ensure_ascii=False)
