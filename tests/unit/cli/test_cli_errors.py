"""Every fault ends in one clear line on stderr and a non-zero exit, and loses nothing."""

from __future__ import annotations

import base64
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nitka.vault.roots import Ring


@pytest.fixture
def used(cli: Any, home: Path) -> Path:
    """A store with one short conversation."""
    assert cli("chat", "--user", "anna", "--session", "s", lines="My name is Anna.\n").code == 0
    return home / ".local/share/nitka/nitka.db"


EVERY = [
    ("chat", "--user", "anna"),
    ("export", "--user", "anna"),
    ("forget", "--user", "anna", "--yes"),
    ("settle",),
    ("keys", "rotate"),
    ("keys", "show"),
    ("doctor",),
]
COMMANDS = EVERY[:-1]


def history(cli: Any) -> list[str]:
    return [json.loads(line)["text"] for line in cli("export", "--user", "anna").out.splitlines()]


@pytest.mark.parametrize("url", ["mysql://localhost/x", "nitka.db", "sqlite://x.db", "sqlite:///"])
@pytest.mark.parametrize("words", COMMANDS)
def test_a_store_url_of_no_known_kind(cli: Any, words: tuple[str, ...], url: str) -> None:
    complaint = cli(*words, "--store", url).complaint
    assert "sqlite:///relative.db" in complaint
    assert "mysql" not in complaint  # a URL may hold a password


@pytest.mark.parametrize("words", EVERY[1:6])
def test_no_store_yet(cli: Any, home: Path, words: tuple[str, ...]) -> None:
    """Only a chat makes one; the others make neither files nor keys."""
    assert "no store there yet" in cli(*words).complaint
    assert not home.exists()


@pytest.mark.parametrize("words", COMMANDS)
def test_the_key_file_is_missing(cli: Any, used: Path, home: Path, words: tuple[str, ...]) -> None:
    """Never an empty history, and never a new key in the place of the lost one."""
    (home / ".config/nitka/keys.json").unlink()
    result = cli(*words, lines="Hello.\n")
    assert "copy of the key file" in result.complaint
    assert result.out == ""
    assert not (home / ".config/nitka/keys.json").exists()


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("ring", [Ring.new().to_json(), "no ring", "{}"])
def test_the_key_file_is_another_or_none(cli: Any, used: Path, home: Path, words: tuple[str, ...], ring: str) -> None:
    before = used.read_bytes()
    (home / ".config/nitka/keys.json").write_text(ring)
    result = cli(*words, lines="Hello.\n")
    assert "does not belong to this store" in result.complaint
    assert result.out == ""
    assert used.read_bytes() == before


@pytest.mark.parametrize("words", [*COMMANDS, ("doctor",)])
def test_a_newer_schema(cli: Any, used: Path, words: tuple[str, ...]) -> None:
    with closing(sqlite3.connect(used)) as db, db:
        db.execute("insert into migrations (number, name) values (9999, 'from the future')")
    result = cli(*words, lines="Hello.\n")
    assert result.code == 1
    assert "newer version of nitka" in result.out + result.err


def test_a_file_that_is_no_database(cli: Any, used: Path) -> None:
    used.write_bytes(b"something else" * 1000)
    assert "not a nitka database" in cli("chat", lines="Hello.\n").complaint


def test_a_damaged_row_in_the_window(cli: Any, used: Path) -> None:
    """The turn fails and names the row; nothing is lost by it."""
    with closing(sqlite3.connect(used)) as db, db:
        db.execute("update messages set body = zeroblob(200) where seq = 1")
    result = cli("chat", "--user", "anna", "--session", "s", lines="Hello.\n")
    assert "message 1" in result.complaint
    assert len(cli("export", "--user", "anna").out.splitlines()) == 2


def test_a_damaged_conversation_is_told_and_another_can_be_held(cli: Any, used: Path) -> None:
    with closing(sqlite3.connect(used)) as db, db:
        db.execute("update sessions set body = zeroblob(200)")
    result = cli("chat", "--user", "anna", lines="Hello.\n")
    assert "do not open: 1" in result.complaint
    assert "Hello" in result.out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("chat", "--model", "gpt"), "openai:NAME"),
        (("chat", "--model", "openai:x"), "OPENAI_API_KEY"),
        (("chat", "--user", ""), "1 to 512 bytes"),
        (("chat", "--session", "x" * 600), "1 to 512 bytes"),
        (("chat", "--budget", "3"), "budget"),
        (("chat", "--budget", "many"), "--budget"),
        (("export",), "--user"),
        (("export", "--user", "a", "--format", "xml"), "--format"),
        (("frobnicate",), "frobnicate"),
        (("chat", "--frob"), "--frob"),
        (("--language", "de", "chat"), "--language"),
        (("facts", "--user", "anna", "--set", "home.city"), "SLOT=VALUE"),
        (("settle", "--retain-days", "0"), "--retain-days"),
    ],
)
def test_bad_arguments(cli: Any, used: Path, words: tuple[str, ...], named: str) -> None:
    assert named in cli(*words, lines="Hello.\n").complaint


def test_a_bad_environment_is_named_without_its_value(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "secret nonsense")
    complaint = cli("chat").complaint
    assert "OPENAI_BASE_URL" in complaint
    assert "nonsense" not in complaint


def test_a_bad_argument_is_said_at_once(cli: Any, used: Path) -> None:
    """That it cannot be used goes without saying."""
    complaint = cli("facts", "--user", "anna", "--set", "home.city").complaint
    assert complaint == "nitka: A fact is set as SLOT=VALUE."


def test_a_locale_of_another_language_is_no_error(cli: Any, used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    assert cli("facts", "--user", "nobody").code == 0


def test_wrong_keys_of_the_environment_are_looked_for_there(cli: Any, used: Path, monkeypatch: Any) -> None:
    """Not in the key file, which then is not read."""
    monkeypatch.setenv("NITKA_ROOT_KEYS", base64.b64encode(bytes(range(32))).decode())
    complaint = cli("export", "--user", "anna").complaint
    assert "NITKA_ROOT_KEYS" in complaint and "NITKA_KEY_FILE" not in complaint


def test_errors_in_russian(cli: Any, used: Path, home: Path) -> None:
    (home / ".config/nitka/keys.json").unlink()
    assert "связки ключей к ним нет" in cli("--language", "ru", "chat", lines="Hello.\n").complaint


class Broken(io.TextIOWrapper):
    """A standard input that fails in a way nobody thought of, with a text of a user in it."""

    def readline(self, *_: Any) -> Any:
        raise RuntimeError("secret text")


def test_the_unexpected_is_named_by_its_type_alone(cli: Any, used: Path, monkeypatch: Any, capsys: Any) -> None:
    """What such an error says may quote a user; --debug shows it to who asks."""
    from nitka.cli import main

    monkeypatch.setattr(sys, "stdin", Broken(io.BytesIO()))
    for words, shown in ((["chat"], False), (["chat", "--debug"], True), (["--debug", "chat"], True)):
        with pytest.raises(SystemExit) as ended:
            main(words)
        err = capsys.readouterr().err
        assert ended.value.code == 1
        assert "unexpected: RuntimeError" in err
        assert ("Traceback" in err) == ("secret text" in err) == shown


MODEL = ("chat", "--user", "anna", "--session", "s", "--model", "openai:any")


@pytest.mark.parametrize(
    ("pieces", "named"),
    [
        ((), "no usable answer"),
        (("", ""), "no usable answer"),
        (("   ", "\n"), "no usable answer"),
        (("<think>", "only thoughts", "</think>"), "no usable answer"),
    ],
)
def test_a_model_that_returns_nothing(cli: Any, used: Path, server: Any, pieces: tuple[str, ...], named: str) -> None:
    server.pieces = pieces
    result = cli(*MODEL, lines="What is my name?\n")
    assert named in result.complaint
    assert result.out == ""
    assert len(history(cli)) == 2


def test_a_model_that_says_nothing_for_too_long(cli: Any, used: Path, server: Any) -> None:
    """It is asked again, then given up; the turn leaves nothing, and the conversation goes on."""
    server.silent_after = 0
    result = cli(*MODEL, "--timeout", "0.1", lines="What is my name?\n")
    assert "ReadTimeout" in result.complaint
    assert len(server.asked) == 4
    assert len(history(cli)) == 2


def test_a_model_that_falls_silent_in_the_middle(cli: Any, used: Path, server: Any) -> None:
    server.silent_after = 1
    result = cli(*MODEL, "--timeout", "0.1", lines="What is my name?\n")
    assert "what was shown is kept" in result.complaint and "ReadTimeout" in result.complaint
    assert (result.out, history(cli)[-1]) == ("Hello\n", "Hello")
    assert sum(bool(body.get("stream")) for body in server.asked) == 1  # the others are folds that look for facts


def test_the_timeout_of_the_environment_and_of_doctor(cli: Any, used: Path, server: Any, monkeypatch: Any) -> None:
    server.pause = 0.3
    monkeypatch.setenv("NITKA_TIMEOUT", "0.1")
    assert cli(*MODEL, "--timeout", "5", lines="Hello.\n").code == 0  # what is named goes before what is set
    server.silent_after = 0
    assert "ReadTimeout" in cli(*MODEL, lines="Hello.\n").complaint
    monkeypatch.setenv("NITKA_TIMEOUT", "soon")
    assert "NITKA_TIMEOUT" in cli("doctor").complaint


def test_reasoning_is_neither_shown_nor_kept(cli: Any, used: Path, server: Any) -> None:
    server.pieces = ("<thi", "nk>secret plan</think>", "You are ", "Anna.")
    result = cli(*MODEL, lines="What is my name?\n")
    assert (result.code, result.out) == (0, "You are Anna.\n")
    assert history(cli)[-1] == "You are Anna."


def test_a_model_that_returns_ten_megabytes(cli: Any, used: Path, server: Any) -> None:
    """What was shown is kept and said to be cut off; it is within the limit of one message."""
    server.pieces = ("word " * 20_000,) * 105
    result = cli(*MODEL, lines="What is my name?\n")
    assert "what was shown is kept" in result.complaint
    last = json.loads(cli("export", "--user", "anna").out.splitlines()[-1])
    assert last["interrupted"]
    assert last["text"].strip() == result.out.strip()
    assert len(last["text"].encode()) <= 1 << 20


def test_a_model_that_breaks_off(cli: Any, used: Path, server: Any) -> None:
    server.ending = ""
    result = cli(*MODEL, lines="What is my name?\n")
    assert "what was shown is kept" in result.complaint
    assert history(cli)[-1] == "Hello there"


def test_a_model_that_refuses(cli: Any, used: Path, server: Any) -> None:
    server.status = 401
    result = cli(*MODEL, lines="What is my name?\n")
    assert "401" in result.complaint
    assert "OPENAI_API_KEY" in result.complaint
    assert len(history(cli)) == 2


def test_a_pipe_goes_on_after_a_turn_that_failed(cli: Any, used: Path, server: Any) -> None:
    """The exit code tells of it all the same."""
    server.status = 401
    result = cli(*MODEL, lines="What is my name?\n/why\n")
    assert result.code == 1
    assert "What the model was given" in result.out


def test_a_summary_that_fails_is_told_and_loses_nothing(cli: Any, used: Path, server: Any) -> None:
    """The model answers well but writes neither summary nor facts; the turns stand, and both stay due."""
    lines = "".join(f"The cake has {n} candles.\n" for n in range(12))
    result = cli(*MODEL, lines=lines)
    assert result.code == 0
    assert result.err == "[memory could not be brought up to date just now; it will be tried again]\n"
    assert len(history(cli)) == 26
    assert "failed: 2" in cli("settle", "--model", "openai:any").err
    done = cli("settle", "--model", "offline")
    assert done.code == 0 and "folds: 0" not in done.out
    assert "folds: 0" in cli("settle", "--model", "offline").out


def test_a_model_that_is_not_there(cli: Any, used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert "Network" in cli(*MODEL, lines="What is my name?\n").complaint
    assert len(history(cli)) == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_ending_in_mid_answer_keeps_what_was_shown(cli: Any, used: Path, server: Any, number: int, code: int) -> None:
    """Whoever ends the process: two rows, the answer being what was shown, marked interrupted (law 1)."""
    server.pieces, server.pause = ("Hello", " never"), 1.5
    words = [sys.executable, "-m", "nitka.cli", *MODEL]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as it:
        assert it.stdin is not None and it.stdout is not None
        it.stdin.write("What is my name?\n")
        it.stdin.flush()
        assert it.stdout.read(5) == "Hello"
        time.sleep(0.1)
        it.send_signal(number)
        assert it.wait(20) == code
    last = json.loads(cli("export", "--user", "anna").out.splitlines()[-1])
    assert (last["text"], last.get("interrupted")) == ("Hello", True)


def test_a_reader_that_has_had_enough(cli: Any, used: Path) -> None:
    """`nitka export | head -1` is no error worth a line."""
    words = [sys.executable, "-m", "nitka.cli", "export", "--user", "anna"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, env=dict(os.environ), timeout=60, check=False)
    os.close(writing)
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_output_that_is_full_is_one_line(used: Path) -> None:
    words = [sys.executable, "-m", "nitka.cli", "export", "--user", "anna"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, env=dict(os.environ), timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.decode() == "nitka: No space left on device.\n"


def test_ctrl_c_while_the_command_is_loaded_ends_it_quietly(monkeypatch: Any, capsys: Any) -> None:
    from nitka import cli as command

    def interrupted(words: list[str] | None) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_code", interrupted)
    with pytest.raises(SystemExit) as ended:
        command.main(["chat"])
    assert ended.value.code == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("serve", "--port", "99999"), "--port"),
        (("serve", "--prt", "9"), "--prt"),
        (("keys", "create"), "--scope"),
        (("keys", "create", "--scope", "foo"), "Права бывают такие"),
    ],
)
def test_what_was_typed_wrong_is_told_in_russian(cli: Any, words: tuple[str, ...], expected: str) -> None:
    done = cli("--language", "ru", *words)
    assert done.code != 0 and expected in done.err
    assert not {"Invalid", "Input", "Missing", "No", "such", "Scopes"} & set(done.err.split())


@pytest.mark.parametrize(("language", "words"), [("en", "named by a URL"), ("ru", "называет URL")])
def test_a_store_that_is_no_url_is_told_how_one_is_written(
    cli: Any, monkeypatch: pytest.MonkeyPatch, language: str, words: str
) -> None:
    monkeypatch.setenv("NITKA_KEYS", "/nope")
    done = cli("--language", language, "keys", "list")
    assert done.code != 0 and words in done.err and "postgresql://" in done.err
