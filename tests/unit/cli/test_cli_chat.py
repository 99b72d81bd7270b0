"""`nitka chat` from a pipe: plain text, one turn a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def texts(result: Any) -> list[str]:
    return [json.loads(line)["text"] for line in result.out.splitlines()]


def test_a_turn_a_line_and_plain_text(cli: Any) -> None:
    """No prompt, no colour, nothing but what was answered."""
    result = cli("chat", lines="My name is Anna.\nWhat is my name?\n")
    assert result.code == 0
    assert "\x1b" not in result.out
    assert "> " not in result.out
    assert "Anna" in result.out.splitlines()[-1]


def test_the_first_use_says_where_the_key_is(cli: Any, home: Path) -> None:
    first = cli("chat", lines="Hello.\n")
    assert str(home / ".config/nitka/keys.json") in first.err
    assert first.err.count("\n") == 1
    assert cli("chat", lines="Hello.\n").err == ""


def test_store_and_keys_lie_apart_and_private(cli: Any, home: Path) -> None:
    """The store in the data folder, the ring in the configuration folder, nothing of it for others to read."""
    cli("chat", lines="Hello.\n")
    data, keys = home / ".local/share/nitka", home / ".config/nitka"
    assert (data / "nitka.db").is_file()
    assert (keys / "keys.json").is_file()
    for folder in (data, keys):
        assert folder.stat().st_mode & 0o777 == 0o700
        assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())


def test_folders_follow_the_base_directory_specification(cli: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "d"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "c"))
    cli("chat", lines="Hello.\n")
    assert (home / "d/nitka/nitka.db").is_file()
    assert (home / "c/nitka/keys.json").is_file()


def test_a_folder_that_was_named_is_not_made(cli: Any, tmp_path: Path) -> None:
    """A mistyped path is an error, not a new place."""
    result = cli("chat", "--store", f"sqlite:///{tmp_path}/no/such.db", lines="Hello.\n")
    assert "The store cannot be used." in result.complaint
    assert not (tmp_path / "no").exists()


def test_the_next_start_goes_on_with_the_conversation(cli: Any) -> None:
    cli("chat", lines="My name is Anna.\n")
    assert "Anna" in cli("chat", lines="What is my name?\n").out
    sessions = {json.loads(line)["session"] for line in cli("export", "--user", "me").out.splitlines()}
    assert len(sessions) == 1


def test_new_breaks_the_thread(cli: Any) -> None:
    """Nothing said before is in the next request (law 10); the facts are."""
    lines = "My name is Anna.\nThe party begins at seven.\n/new\nWhen does the party begin?\nWhat is my name?\n/why\n"
    result = cli("chat", lines=lines)
    after = result.out.split("A new conversation.")[1]
    assert "seven" not in after
    assert "Anna" in after
    assert "facts  " in after
    assert len({json.loads(line)["session"] for line in cli("export", "--user", "me").out.splitlines()}) == 2


def test_a_named_session_is_its_own(cli: Any) -> None:
    """Of what was said in another nothing is known but facts."""
    cli("chat", "--session", "one", lines="My name is Anna. The party begins at seven.\n")
    out = cli("chat", "--session", "two", lines="When does the party begin?\nWhat is my name?\n").out
    assert "seven" not in out
    assert "Anna" in out


def test_why_adds_up(cli: Any) -> None:
    """The rows of the table sum to its last row, which is what the title says was used."""
    out = cli("chat", "--system", "Be brief.", lines="Hello.\nHow are you?\n/why\n").out
    title, _, *rows, together, _ = out[out.index("What the model was given") :].splitlines()
    used = int(title.split(":")[1].split()[0])
    numbers = [next(int(word) for word in row.split() if word.isdigit()) for row in (*rows, together)]
    assert {row.split()[0] for row in rows} == {"system", "history", "question"}
    assert sum(numbers[:-1]) == numbers[-1] == used


def test_why_before_anything_was_asked(cli: Any) -> None:
    assert "Nothing has been asked yet." in cli("chat", lines="/why\n").out


def test_why_shows_what_was_shortened(cli: Any) -> None:
    """With a small budget the history gives way, and the table says so."""
    long = "The cake for the party on Friday has three layers and forty candles. " * 8
    out = cli("chat", "--budget", "400", lines=f"{long}\n{long}\n{long}\nAnd?\n/why\n").out
    assert "shortened history" in out


def test_summary_shows_what_left_the_window(cli: Any) -> None:
    """Eight turns leave four messages to the summary; they are in it, and it says which they are."""
    turns = "\n".join(f"My sister Vera is {age} years old and lives in Kazan." for age in range(30, 38))
    cli("chat", "--session", "s", lines=turns + "\n")
    cli("settle")  # what was due when the chat ended is done now, not at some moment after the next start
    out = cli("chat", "--session", "s", lines="/summary\n").out
    assert "Of messages 0–3" in out
    assert "Vera" in out


def test_no_summary_yet(cli: Any) -> None:
    assert "No summary yet" in cli("chat", lines="Hello.\n/summary\n").out


@pytest.mark.parametrize(("answer", "left"), [("y", 0), ("yes", 0), ("n", 2), ("", 2), ("maybe", 2)])
def test_forget_asks_first(cli: Any, answer: str, left: int) -> None:
    """From a pipe the next line is the answer; whatever is not a yes is a no."""
    result = cli("chat", lines=f"Hello.\n/forget\n{answer}\n")
    assert ("messages: 2" in result.out) == (left == 0)
    assert len(cli("export", "--user", "me").out.splitlines()) == left


def test_forget_is_about_this_session_alone(cli: Any) -> None:
    cli("chat", "--session", "one", lines="Hello one.\n")
    cli("chat", "--session", "two", lines="Hello two.\n/forget\ny\n")
    assert texts(cli("export", "--user", "me"))[0] == "Hello one."


def test_forget_me_is_about_everything(cli: Any) -> None:
    cli("chat", "--session", "one", lines="Hello one.\n")
    result = cli("chat", "--session", "two", lines="Hello two.\n/forget me\ny\nHello again.\n")
    assert "conversations: 2, messages: 4" in result.out
    assert texts(cli("export", "--user", "me"))[0] == "Hello again."


def test_quit_leaves_at_once(cli: Any) -> None:
    cli("chat", lines="/quit\nHello.\n")
    assert cli("export", "--user", "me").out == ""


def test_help_lists_every_command(cli: Any) -> None:
    from nitka.cli.chat import COMMANDS

    listed = {" ".join(line.split("  ")[0].split()) for line in cli("chat", lines="/help\n").out.splitlines()}
    assert set(COMMANDS) - {"/help"} <= listed


def test_an_unknown_command_is_not_said_to_the_model(cli: Any) -> None:
    result = cli("chat", lines="/froget me\n")
    assert "no such command" in result.out
    assert cli("export", "--user", "me").out == ""


def test_two_slashes_say_a_text_that_begins_with_one(cli: Any) -> None:
    cli("chat", lines="//etc/hosts is what I mean.\n")
    assert texts(cli("export", "--user", "me"))[0] == "/etc/hosts is what I mean."


def test_control_characters_do_not_reach_the_terminal(cli: Any, server: Any) -> None:
    """A model's answer must not move the cursor, change the title or clear the screen; it is stored as it came."""
    server.pieces = ("red \x1b[31m", "\x07\r end")
    result = cli("chat", "--model", "openai:any", lines="Hello.\n")
    assert "\x1b" not in result.out
    assert "\x07" not in result.out
    assert "red" in result.out


def test_bytes_that_are_no_text_do_not_break_the_chat(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    result = cli("chat", lines="caf\udce9 \x00 \n".encode("utf-8", "surrogateescape").decode("latin-1") + "\n")
    assert result.code == 0


@pytest.mark.parametrize("locale", ["ru_RU.UTF-8", "ru"])
def test_russian_where_the_locale_is_russian(cli: Any, monkeypatch: pytest.MonkeyPatch, locale: str) -> None:
    monkeypatch.setenv("LANG", locale)
    result = cli("chat", lines="Меня зовут Анна.\nКак меня зовут?\n/why\n/forget\nда\n")
    assert "Что получила модель" in result.out
    assert "вопрос" in result.out
    assert "Забыто: бесед: 1, сообщений: 4" in result.out


def test_lc_all_goes_before_lang(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    monkeypatch.setenv("LC_ALL", "ru_RU.UTF-8")
    assert "Вопросов ещё не было." in cli("chat", lines="/why\n").out


def test_the_language_can_be_named(cli: Any) -> None:
    assert "Вопросов ещё не было." in cli("--language", "ru", "chat", lines="/why\n").out
