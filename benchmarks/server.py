"""What the server costs beside a bare handler that forwards to the same upstream.

    python -m benchmarks.server [--store sqlite,postgres] [--seconds N] [--rounds N] [--connections N]
        [--workers 1,2] [--sizes 20,20000] [--folds here|apart]

Three kinds of process on this machine: an upstream that answers at once, written on bare sockets so that it costs next
to nothing; the server, or a bare FastAPI handler with an HTTP client, on uvicorn both; and this one, which asks on
`--connections` kept-alive connections, each for `EACH` users in turn. Bare and served rounds alternate, so that what
else the machine does falls on both. PostgreSQL is a private server on this machine, and as durable as it is by default.

Folds are made by the offline rules `here`, in the serving process after each turn; or they are `apart`: the summaries'
cursors are moved on between the rounds, off the clock, as a worker would. (Laid conversations have no facts yet; folded
`here`, large ones would first be read from their beginning.)

`cpu` is the processor time of the serving processes for one turn, in milliseconds: it says what throughput a machine
has that does nothing else. The streams are `--streams` at once, each `--stream-seconds` long.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI, Request
from rich.console import Console
from rich.table import Table
from uvicorn.supervisors import Multiprocess

from benchmarks.lay import lay
from benchmarks.stores import KINDS, new_store
from nitka import Nitka
from nitka.config import Serving, Settings
from nitka.server import keys
from nitka.server.run import build
from nitka.types import Limits

EACH = 2  # users of one connection: no conversation grows by much in a round
QUESTION = "What did we decide about the cake, and who brings the candles on Saturday?"
ANSWER = "The cake has three layers with cherries; Boris brings the candles on Saturday, and Vera the music."


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Instant(asyncio.Protocol):
    """One connection to an upstream that answers at once, or streams for `seconds`."""

    seconds = 20.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._held = transport, b""

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = self._held[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._held) < end + 4 + length:
                return
            body, self._held = self._held[end + 4 : end + 4 + length], self._held[end + 4 + length :]
            if b'"stream":true' in body:
                self._task = asyncio.ensure_future(self._stream())
            else:
                self._transport.write(WHOLE)

    async def _stream(self) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        self._transport.write(head)
        for _ in range(20):
            self._transport.write(_event({"content": "word "}, None))
            await asyncio.sleep(self.seconds / 20)
        self._transport.write(_event({}, "stop") + b"data: [DONE]\n\n")
        self._transport.close()


def _event(delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n"


def _whole() -> bytes:
    message = {"role": "assistant", "content": ANSWER}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = json.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    ).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body


WHOLE = _whole()


async def instant(port: int, seconds: float) -> None:
    """Runs the upstream until it is ended."""
    Instant.seconds = seconds
    server = await asyncio.get_running_loop().create_server(Instant, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


def bare(base_url: str) -> FastAPI:
    """A FastAPI handler that forwards and does nothing else."""
    app = FastAPI()
    client = httpx.AsyncClient(limits=httpx.Limits(max_connections=1000, max_keepalive_connections=100))

    @app.post("/v1/chat/completions")
    async def forward(request: Request) -> Any:
        answer = await client.post(f"{base_url}/chat/completions", json=await request.json())
        return answer.json()

    return app


@dataclass(frozen=True)
class Result:
    """One round: turns a second, milliseconds at the middle and at 95 %, processor milliseconds a turn."""

    rate: float
    p50: float
    p95: float
    cpu: float


@dataclass(frozen=True)
class Place:
    """Where everything of a run lies."""

    folder: Path
    upstream: int
    store: str

    def settings(self, port: int, workers: int) -> Settings:
        serving = Serving(port=port, workers=workers, fold_model="offline")
        return replace(
            Settings.read({"HOME": str(self.folder)}),
            base_url=f"http://127.0.0.1:{self.upstream}/v1",
            store=self.store,
            key_file=self.folder / "keys.json",
            model="openai:m",
            serving=serving,
        )


@contextmanager
def process(*words: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """This module in another process, once it listens."""
    log = subprocess.DEVNULL
    begun = subprocess.Popen([sys.executable, "-m", "benchmarks.server", *words], stdout=log, stderr=log)
    try:
        until = time.monotonic() + 120
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert begun.poll() is None and time.monotonic() < until, "it did not start"
            time.sleep(0.05)
        yield begun
    finally:
        begun.send_signal(signal.SIGTERM)
        begun.wait(60)


def processor(pid: int) -> float:
    """Seconds of processor time of a process and those it started."""
    tick = os.sysconf("SC_CLK_TCK")
    spent = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) == pid or int(fields[1]) == pid:
            spent += (int(fields[11]) + int(fields[12])) / tick
    return spent


def request(secret: str, user: str, session: str, *, stream: bool = False) -> bytes:
    body = {"model": "m", "messages": [{"role": "user", "content": QUESTION}], "user": user, "stream": stream}
    body["metadata"] = {"session_id": session}
    data = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n"
    return f"{head}content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data


async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> None:
    """One call; the answer is read whole."""
    writer.write(data)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    assert head.startswith(b"http/1.1 200"), head[:200]
    length = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
    await reader.readexactly(length)


async def load(port: int, requests: list[list[bytes]], seconds: float) -> list[float]:
    """Milliseconds of each call; every connection asks the next of its requests as soon as one is answered."""
    times: list[float] = []
    until = time.perf_counter() + seconds

    async def ask(mine: list[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        turns = cycle(mine)
        while (begin := time.perf_counter()) < until:
            await one(reader, writer, next(turns))
            times.append((time.perf_counter() - begin) * 1e3)
        writer.close()

    await asyncio.gather(*map(ask, requests))
    return times


def round_of(port: int, pid: int, requests: list[list[bytes]], seconds: float) -> Result:
    asyncio.run(load(port, requests, 0.5))  # warm
    before, begin = processor(pid), time.perf_counter()
    times = sorted(asyncio.run(load(port, requests, seconds)))
    elapsed, spent = time.perf_counter() - begin, processor(pid) - before
    middle, late = times[len(times) // 2], times[int(len(times) * 0.95)]
    return Result(len(times) / elapsed, middle, late, spent / len(times) * 1e3)


def middle(results: list[Result]) -> Result:
    """The round in the middle by throughput."""
    return sorted(results, key=lambda result: result.rate)[len(results) // 2]


async def prepare(place: Place, connections: int, sizes: list[int]) -> str:
    """Lays out every conversation and makes an API key."""
    settings = place.settings(0, 1)
    nitka = Nitka.open(settings.store, settings=settings, limits=Limits())
    async with nitka:
        for size in sizes:
            for number in range(connections * EACH):
                await lay(nitka, f"u{size}-{number}", "s", size)
        grant = keys.grant_of(scopes=("turns",), rate=keys.MAX_RATE)
        secret = keys.secret_of("server", os.urandom(32))
        sealed = keys.seal(await nitka._vault.keychain.system_key(), keys.hash_of(secret), 1, grant)
        await nitka._vault.store.add_api_key(sealed)
    return secret


async def fold(place: Place, connections: int, size: int) -> None:
    """Puts the summaries' cursors where a worker would have them by now."""
    settings = place.settings(0, 1)
    async with Nitka.open(settings.store, settings=settings) as nitka:
        nitka._folder.wake = lambda: None  # type: ignore[method-assign]
        for number in range(connections * EACH):
            await lay(nitka, f"u{size}-{number}", "s", 0)


async def streams(port: int, data: list[bytes], seconds: float) -> list[float]:
    """How much longer each stream takes than it must, in seconds, and that all were answered."""

    async def read(one: bytes) -> float:
        begin = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(one)
        await reader.readuntil(b"[DONE]\n\n")
        writer.close()
        return time.perf_counter() - begin - seconds

    return sorted(await asyncio.gather(*map(read, data)))


def compare(place: Place, secret: str, args: argparse.Namespace, kind: str, console: Console) -> None:
    how = f"{kind}, {args.connections} connections, folds {args.folds}"
    table = Table(title=f"{how}, the middle one of {args.rounds} rounds of {args.seconds:g} s")
    for column in ("workers", "messages", "what", "turns/s", "p50 ms", "p95 ms", "cpu ms/turn", "of bare"):
        table.add_column(column, justify="right" if column != "what" else "left")
    for workers in args.workers:
        bare_port, port = free_port(), free_port()
        upstream = str(place.upstream)
        with (
            process("bare", str(bare_port), upstream, str(workers), port=bare_port) as floor,
            process(
                "serve", str(port), upstream, str(workers), str(place.folder), args.folds, place.store, port=port
            ) as server,
        ):
            time.sleep(3 if workers > 1 else 1)
            for size in args.sizes:
                every = [request(secret, f"u{size}-{number}", "s") for number in range(args.connections * EACH)]
                asks = [every[at :: args.connections] for at in range(args.connections)]
                rounds: list[tuple[Result, Result]] = []
                for _ in range(args.rounds):
                    if args.folds == "apart":
                        asyncio.run(fold(place, args.connections, size))
                    below = round_of(bare_port, floor.pid, asks, args.seconds)
                    rounds.append((below, round_of(port, server.pid, asks, args.seconds)))
                below, above = middle([pair[0] for pair in rounds]), middle([pair[1] for pair in rounds])
                for name, result in (("bare", below), ("nitka", above)):
                    share = f"{result.rate / below.rate:.0%}"
                    numbers = (result.rate, result.p50, result.p95, result.cpu)
                    table.add_row(str(workers), str(size), name, *(f"{number:.2f}" for number in numbers), share)
            if workers == args.workers[0]:
                slow = [request(secret, f"stream-{number}", "s", stream=True) for number in range(args.streams)]
                late = asyncio.run(streams(port, slow, args.stream_seconds))
    console.print(table)
    told = f"{args.streams} streams of {args.stream_seconds:g} s at once"
    console.print(f"{told}: the slowest took {late[-1]:.2f} s more than it must")


def main() -> None:
    if sys.argv[1:2] == ["instant"]:
        asyncio.run(instant(int(sys.argv[2]), float(sys.argv[3])))
        return
    if sys.argv[1:2] in (["bare"], ["serve"]):
        _serve(sys.argv[1:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=lambda text: text.split(","), default=list(KINDS))
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--workers", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2])
    parser.add_argument("--sizes", type=lambda text: [int(word) for word in text.split(",")], default=[20, 20_000])
    parser.add_argument("--folds", choices=("here", "apart"), default="here")
    parser.add_argument("--streams", type=int, default=40)
    parser.add_argument("--stream-seconds", type=float, default=20.0)
    args = parser.parse_args()
    for kind in args.store:
        with tempfile.TemporaryDirectory() as folder, new_store(kind, Path(folder)) as url:
            place = Place(Path(folder), free_port(), url)
            secret = asyncio.run(prepare(place, args.connections, args.sizes))
            with process("instant", str(place.upstream), str(args.stream_seconds), port=place.upstream):
                compare(place, secret, args, kind, Console(width=120))


def _serve(words: list[str]) -> None:
    """`bare PORT UPSTREAM WORKERS` or `serve PORT UPSTREAM WORKERS FOLDER FOLDS STORE`."""
    port, upstream, workers = map(int, words[1:4])
    if words[0] == "serve":
        settings = Place(Path(words[4]), upstream, words[6]).settings(port, workers)
        _run(partial(serving, settings, folds=words[5] == "here"), port, workers)
        return
    _run(partial(bare, f"http://127.0.0.1:{upstream}/v1"), port, workers)


def serving(settings: Settings, *, folds: bool) -> FastAPI:
    """The server as `nitka serve` builds it; without `folds` nothing is folded in its process."""
    app = build(settings)
    if not folds:
        app.state.service.nitka._folder.start = lambda: None
        app.state.service.nitka._folder.wake = lambda: None
    return app


def _run(app: Callable[[], FastAPI], port: int, workers: int) -> None:
    config = uvicorn.Config(app, factory=True, port=port, workers=workers, access_log=False, log_level="error")
    if workers > 1:
        Multiprocess(config, sockets=[config.bind_socket()]).run()
    else:
        uvicorn.Server(config).run()


if __name__ == "__main__":
    main()
