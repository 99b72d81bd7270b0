"""Many slow streams on few connections of PostgreSQL: how long any of them waits.

    python -m benchmarks.streams [--streams N] [--seconds N] [--connections N,...]

An upstream streams each answer for `--seconds`; all streams are asked for at once, each by somebody new. A private
server of PostgreSQL holds what is said, and the pool has `--connections`: few, and beside it one for each stream, which
says what of the lateness is the pool's and what the machine's. Told is how much longer each stream took than it must,
how often a connection was asked for, and how often and how long one was waited for, by the pool's own count.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from rich.console import Console

from benchmarks.server import free_port, process, request, streams
from nitka import Nitka
from nitka.server import keys
from nitka.server.app import create_app
from nitka.server.service import Options
from nitka.server.upstream import HttpUpstream
from nitka.store.postgres import PostgresStore
from tests.contract.cluster import binaries, new_cluster


async def run(
    url: str, folder: Path, upstream: int, size: int, args: argparse.Namespace
) -> tuple[list[float], dict[str, int]]:
    """Seconds that each stream was late, and what the pool counted meanwhile."""
    store = PostgresStore(url, size=size)
    nitka = Nitka.open(store, keys=folder / "keys.json")
    behind = HttpUpstream("m", base_url=f"http://127.0.0.1:{upstream}/v1")
    app = create_app(nitka, upstream=behind, options=Options(warm=True))
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, access_log=False, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.05)
    secret = keys.secret_of("server", os.urandom(32))
    grant = keys.grant_of(scopes=("turns",), rate=keys.MAX_RATE)
    sealing = await nitka._vault.keychain.system_key()
    await store.add_api_key(keys.seal(sealing, keys.hash_of(secret), 1, grant))
    pool = store._data._pool
    assert pool is not None
    pool.pop_stats()
    asks = [request(secret, f"u{number}", "s", stream=True) for number in range(args.streams)]
    late = await streams(port, asks, args.seconds)
    counted = pool.pop_stats()
    server.should_exit = True
    await serving
    return late, counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--connections", type=lambda text: [int(word) for word in text.split(",")], default=[5, 40])
    args = parser.parse_args()
    found = binaries()
    assert found is not None, "no PostgreSQL server is installed"
    for size in args.connections:
        with TemporaryDirectory() as folder, new_cluster(found) as cluster:
            cluster.init()
            cluster.start()
            port = free_port()
            with process("instant", str(port), str(args.seconds), port=port):
                late, counted = asyncio.run(run(cluster.url(), Path(folder), port, size, args))
        report(args, size, late, counted)


def report(args: argparse.Namespace, size: int, late: list[float], counted: dict[str, int]) -> None:
    middle, last = late[len(late) // 2], late[-1]
    asked, queued, waited = (counted.get(f"requests_{name}", 0) for name in ("num", "queued", "wait_ms"))
    told = f"{args.streams} streams of {args.seconds:g} s at once, {size} connections"
    Console(width=120, soft_wrap=True).print(
        f"{told}: late by {middle:.2f} s in the middle, {last:.2f} s at most; of {asked} loans {queued} waited, "
        f"{waited} ms in all"
    )


if __name__ == "__main__":
    main()
