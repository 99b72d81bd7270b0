"""`nitka demo` without a browser: what it says, what it leaves, and who it lets in."""

from __future__ import annotations

import socket
import subprocess
import sys
from datetime import timedelta

import pytest

from nitka.server.inspector.demo import examples
from nitka.server.inspector.render import HERE


@pytest.mark.parametrize("words", [["demo"], ["serve"], ["serve", "--workers", "2"]])
def test_a_port_that_is_taken_is_told_in_one_line(words: list[str]) -> None:
    """Before anything is loaded or made."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "nitka.cli", "--language", "en", *words, "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert port in done.stderr and "--port" in done.stderr and len(done.stderr.splitlines()) == 1


def test_an_address_that_is_not_this_machines_is_told_in_one_line() -> None:
    command = [sys.executable, "-m", "nitka.cli", "--language", "en", "serve", "--host", "999.1.1.1", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "999.1.1.1" in done.stderr and "--host" in done.stderr and len(done.stderr.splitlines()) == 1


def test_examples_are_turns_of_named_conversations_over_days() -> None:
    found = examples("# a remark\n= one\n> a\n< b\n> c\n< d\n---\n> e\n< f\n\n= two\n> g\n< h")
    assert {name: [(said.question, said.answer) for said in turns] for name, turns in found.items()} == {
        "one": [("a", "b"), ("c", "d"), ("e", "f")],
        "two": [("g", "h")],
    }
    assert found["one"][2].after == timedelta(days=1)
    with pytest.raises(ValueError, match="neither"):
        examples("= name\n> question\nanswer")


@pytest.mark.parametrize("language", ["en", "ru"])
def test_the_examples_can_stand_in_a_header_and_are_long_enough(language: str) -> None:
    """The widget sends the name of its conversation in a header; summary and cursor show from 12 messages on."""
    found = examples((HERE / "examples" / f"{language}.txt").read_text(encoding="utf-8"))
    assert all(name.isascii() for name in found)
    assert 2 * len(next(iter(found.values()))) > 40
    assert all(said.question and said.answer for turns in found.values() for said in turns)
