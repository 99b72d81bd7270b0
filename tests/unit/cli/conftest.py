"""The command line, run inside the test's process with a home folder of its own."""

from __future__ import annotations

import http.server
import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nitka.cli import main


@dataclass(frozen=True, slots=True)
class Result:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line that an error is."""
        assert self.code != 0
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        return self.err.strip()


Cli = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder where nothing was ever run."""
    for name in (
        "NITKA_STORE",
        "NITKA_KEYS",
        "NITKA_MODEL",
        "NITKA_TIMEOUT",
        "NITKA_KEY_FILE",
        "NITKA_ROOT_KEYS",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def cli(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs a command line; `lines` come from a pipe."""

    def run(*words: str, lines: str = "") -> Result:
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode()), encoding="utf-8"))
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        out, err = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Result(code, out, err)

    return run


@dataclass
class Script:
    """What the local model server answers: a status, content in pieces, a pause before each in seconds."""

    status: int = 200
    pieces: tuple[str, ...] = ("Hello", " there")
    pause: float = 0.0
    silent_after: int | None = None  # pieces, until the test is over
    ending: str = "data: [DONE]\n\n"
    asked: list[dict[str, object]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def server(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    """A local server that speaks the chat protocol as its script says; `openai:any` reaches it."""
    script = Script()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.asked.append(body)
            self.send_response(script.status)
            kind = "text/event-stream" if body.get("stream") else "application/json"
            self.send_header("Content-Type", kind)
            self.end_headers()
            try:
                self._stream() if body.get("stream") else self._whole()
            except OSError:
                script.stopped.set()

        def _stream(self) -> None:
            for number, piece in enumerate(script.pieces):
                script.stopped.wait(60 if number == script.silent_after else script.pause)
                event = {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                self.wfile.flush()
            end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
            if script.ending:
                self.wfile.write(f"data: {json.dumps(end)}\n\n{script.ending}".encode())

        def _whole(self) -> None:
            message = {"role": "assistant", "content": "".join(script.pieces)}
            answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{listening.server_port}/v1")
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield script
        script.stopped.set()
        listening.shutdown()
        thread.join()
