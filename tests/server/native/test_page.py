"""The page on the native side keeps its word: its commands run, and answer as it says, in both languages."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = {"en": ROOT / "docs/server-native.md", "ru": ROOT / "docs/server-native.ru.md"}
BLOCK = re.compile(r"^```(sh|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
END = "~~~ end of a block ~~~"


def blocks(language: str) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in BLOCK.finditer(PAGES[language].read_text(encoding="utf-8"))]


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A server as a person would start it, and the environment of his shell."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = f"sqlite:///{tmp_path / 'nitka.db'}"
    names = {name: value for name, value in os.environ.items() if not name.startswith(("NITKA_", "OPENAI_"))}
    environ = names | {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "nitka.cli", "serve", "--store", store, "--port", str(port)]
    server = subprocess.Popen(command, env=environ, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            if server.poll() is not None or is_ready(address):
                break
            time.sleep(0.2)
        assert server.poll() is None, server.communicate()[1]
        yield environ | {"NITKA": address, "STORE": store}
    finally:
        server.terminate()
        said = server.communicate(timeout=60)[1]
    assert "anna" not in said and "web-1" not in said and "Rex" not in said


def is_ready(address: str) -> bool:
    try:
        return httpx.get(f"{address}/readyz", timeout=5, verify=False).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.slow
def test_commands_run_and_answer_as_the_page_says(serving: dict[str, str], tmp_path: Path) -> None:
    found = blocks("en")
    commands = [text for kind, text in found if kind == "sh"]
    script = "set -euo pipefail\n" + "".join(f"{command}echo\necho '{END}'\n" for command in commands)
    done = subprocess.run(
        ["bash", "-c", script], env=serving, cwd=tmp_path, capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    outputs = done.stdout.split(END)
    assert len(outputs) == len(commands) + 1
    promised = 0
    for at, (kind, text) in enumerate(found):
        if kind == "json" and found[at - 1][0] == "sh" and "whsec_" not in found[at - 1][1]:
            output = outputs[sum(one == "sh" for one, _ in found[:at]) - 1]
            assert shape(json.loads(output)) == shape(json.loads(text)), output
            promised += 1
    assert promised >= 4
    assert "event: done" in done.stdout and "nitka_requests_total" in done.stdout and '"G01"' in done.stdout


def shape(value: Any) -> Any:
    """Names and kinds of a JSON value; of a list those of its first item, and nothing where the page leaves it out."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items() if not isinstance(item, list) or name == "data"}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def test_both_pages_say_the_same() -> None:
    assert blocks("en") == blocks("ru")
    texts = [path.read_text(encoding="utf-8") for path in PAGES.values()]
    outlines = [[line[:2] for line in text.splitlines() if line.startswith(("#", "|", "*"))] for text in texts]
    assert outlines[0] == outlines[1]
    names = [set(re.findall(r"`([^`\n]+)`", re.sub(BLOCK, "", text))) for text in texts]
    assert names[0] == names[1]


@pytest.mark.parametrize("language", PAGES)
def test_links_lead_somewhere(language: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGES[language].read_text(encoding="utf-8")):
        assert target.startswith("https://") or (ROOT / "docs" / target).exists(), target
