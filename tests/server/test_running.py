"""`nitka serve` as an operator runs it: a process, its keys, its logs, its stop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx
import pytest
from openai import OpenAI

from nitka import Nitka
from nitka.config import Settings
from nitka.server import keys
from nitka.world import random_bytes
from tests.server.stage import Script, http_client, says, upstream

pytestmark = pytest.mark.slow

SECONDS = 240  # for a start on a busy machine
MARK = "MARKED-51c2"
CHAT = {"messages": [{"role": "user", "content": f"A cake {MARK}"}], "user": MARK, "metadata": {"session_id": MARK}}


@dataclass
class Command:
    """Runs `nitka` with a home folder of its own."""

    home: Path
    env: dict[str, str]

    def run(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "nitka.cli", *words], env=self.env, capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == code, done.stderr
        return done.stdout.strip() or done.stderr.strip()

    def key(self) -> str:
        """A new API key, made without a process of its own."""
        return asyncio.run(_new_key(Settings.read(self.env)))

    @contextmanager
    def serve(self, *words: str, folds: bool = False) -> Iterator[Server]:
        """A server; without `folds` it need not load the rules for them, which takes seconds."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = self.home / "log"
        with log.open("w") as stderr:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "nitka.cli",
                    "serve",
                    "--port",
                    str(port),
                    *([] if folds else ["--no-folds"]),
                    *words,
                ],
                env=self.env,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
            server = Server(process, f"http://127.0.0.1:{port}", log)
            try:
                server.wait()
                yield server
            finally:
                server.stop()
                server.printed.close()


async def _new_key(settings: Settings) -> str:
    secret = keys.secret_of("server", random_bytes(keys.SECRET_BYTES))
    folder = Path(settings.store.removeprefix("sqlite:///")).parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with Nitka.open(settings.store, settings=settings, background=False) as nitka:
        sealing = await nitka._vault.keychain.system_key()
        row = keys.seal(sealing, keys.hash_of(secret), 1, keys.grant_of(scopes=("turns",)))
        await nitka._vault.store.add_api_key(row)
    return secret


@dataclass
class Server:
    """A running `nitka serve`."""

    process: subprocess.Popen[str]
    url: str
    log: Path

    @property
    def printed(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def wait(self) -> None:
        until = time.monotonic() + SECONDS
        while True:
            try:
                httpx.get(self.url + "/v1/models", verify=False)
                return
            except httpx.TransportError:
                assert self.process.poll() is None, self.log.read_text()
                assert time.monotonic() < until, self.log.read_text()
                time.sleep(0.1)

    def stop(self) -> str:
        """Tells it to stop, and gives what it printed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(SECONDS)
        return self.printed.read() if not self.printed.closed else ""


@pytest.fixture
def command(tmp_path: Path, script: Script) -> Iterator[Command]:
    with upstream(script) as base:
        names = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
        env = {name: os.environ[name] for name in names if name in os.environ}
        env |= {"HOME": str(tmp_path), "OPENAI_BASE_URL": base, "NITKA_MODEL": "openai:scripted-1", "LANG": "C.UTF-8"}
        yield Command(tmp_path, env | {"NITKA_FOLD_MODEL": "offline"})


def client(server: Server, key: str) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0, timeout=SECONDS)


def ask(server: Server, key: str, **more: object) -> httpx.Response:
    auth = {"Authorization": f"Bearer {key}"}
    return httpx.post(
        f"{server.url}/v1/chat/completions", json={**CHAT, **more}, headers=auth, timeout=SECONDS, verify=False
    )


def converse(server: Server, key: str, script: Script) -> None:
    """Six turns, each of which finds those before it, whichever worker answers."""
    script.answer = lambda body: says(f"{len(body['messages'])}")
    with client(server, key) as library:
        for turn in range(6):
            answer = library.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": f"turn {turn}"}],
                user="anna",
                metadata={"session_id": "s"},
            )
            assert answer.choices[0].message.content == str(2 * turn + 1)


def test_keys_are_made_used_listed_and_revoked(command: Command) -> None:
    """The first start makes one and tells it once, whatever is started or made later."""
    with command.serve("--make-key") as server:
        first = server.stop().strip()
    assert first.startswith("nk_")
    assert first not in server.log.read_text()
    key = command.run("keys", "create", "--tenant", "shop", "--scope", "turns", "--name", "till 4", "--days", "30")
    assert key.startswith("nk_")
    with command.serve("--make-key") as server:
        assert ask(server, first).status_code == 200
        assert ask(server, key).status_code == 200
        listed = command.run("keys", "list")
        assert len(listed.splitlines()) == 2
        assert "shop" in listed
        assert "till 4" in listed
        assert key not in listed
        assert key.removeprefix("nk_")[:12] not in listed
        till, other = sorted(listed.splitlines(), key=lambda line: "till 4" not in line)
        command.run("keys", "revoke", till.split()[0])
        until = time.monotonic() + 30
        while ask(server, key).status_code != 401:
            assert time.monotonic() < until
            time.sleep(0.5)
        assert ask(server, first).status_code == 200
        assert server.stop() == ""
    command.run("keys", "revoke", other.split()[0])
    assert command.run("keys", "list") == ""
    assert "no API key" in command.run("keys", "revoke", "abc", code=1)


def test_a_widgets_key_needs_its_pages(command: Command) -> None:
    assert "origins" in command.run("keys", "create", "--scope", "widget", code=1)
    made = command.run("keys", "create", "--scope", "widget", "--origin", "https://shop.example").splitlines()
    assert [line[:3] for line in made] == ["pk_", "ws_"]
    assert made[1] not in command.run("keys", "list")


def test_nothing_that_was_sent_is_printed(command: Command) -> None:
    """The log has templates, no paths; and uvicorn's own access log is off."""
    key = command.key()
    with command.serve(folds=True) as server:
        ask(server, key)
        ask(server, key, n=5)
        httpx.get(f"{server.url}/{MARK}?{MARK}", headers={"User-Agent": MARK}, verify=False)
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as raw:
            raw.sendall(f"{MARK} nonsense\r\n\r\n".encode())
            raw.recv(1_000)
    printed = server.log.read_text()
    assert "POST /v1/chat/completions 200" in printed
    assert "POST /v1/chat/completions 400" in printed
    assert "GET - 404" in printed
    assert MARK not in printed
    assert key not in printed
    assert MARK.encode() not in b"".join(path.read_bytes() for path in command.home.rglob("*") if path.is_file())


@pytest.mark.parametrize("workers", ["1", "2"])
def test_workers_serve_one_conversation_and_end_after_their_open_answers(
    command: Command, script: Script, workers: str
) -> None:
    key = command.key()
    said: list[str] = []
    with command.serve("--workers", workers, "--grace", "60") as server:
        converse(server, key, script)
        script.answer = lambda body: says("One two three four five six seven eight.")
        script.hold = 4
        script.asked.clear()
        reading = threading.Thread(target=lambda: said.append(ask(server, key, stream=True).text))
        reading.start()
        until = time.monotonic() + SECONDS
        while not script.asked:
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(1)
        script.go.set()
        reading.join(SECONDS)
        assert said[0].rstrip().endswith("data: [DONE]")
        assert server.process.wait(SECONDS) in (0, -signal.SIGTERM)
    with command.serve() as server:
        script.hold = None
        assert ask(server, key).status_code == 200
        assert [message["role"] for message in script.last["messages"]] == ["user", "assistant", "user"]


def test_a_killed_server_has_written_nothing_of_an_open_turn(command: Command, script: Script) -> None:
    script.answer = lambda body: says("One two three four five six.")
    key = command.key()
    with command.serve() as server:
        assert ask(server, key).status_code == 200
        script.hold = 3
        auth = {"Authorization": f"Bearer {key}"}
        with (
            http_client(timeout=SECONDS) as http,
            http.stream(
                "POST", f"{server.url}/v1/chat/completions", json={**CHAT, "stream": True}, headers=auth
            ) as got,
        ):
            next(got.iter_lines())
            server.process.kill()
            server.process.wait(SECONDS)
    script.hold = None
    with command.serve() as server:
        ask(server, key)
        assert len(script.last["messages"]) == 3


def test_a_wrong_key_file_is_one_line_and_not_a_traceback(command: Command) -> None:
    command.key()
    (command.home / ".config/nitka/keys.json").unlink()
    told = command.run("serve", "--port", "0", code=1)
    assert "Traceback" not in told
    assert "key" in told
