"""`nitka export` and `nitka forget`."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka import sync
from nitka.cli.markdown import to_markdown
from nitka.cli.texts import ENGLISH


@pytest.fixture
def filled(cli: Any, home: Path) -> Path:
    """A store with two conversations of Anna's and one of Boris's."""
    (home / ".local/share/nitka").mkdir(parents=True)
    path = home / ".local/share/nitka/nitka.db"
    with sync.Nitka.open(f"sqlite:///{path}") as nitka:
        at = datetime(2026, 5, 1, 9, 30, tzinfo=UTC)
        nitka.record("anna", "web-1", text="Hello.", answer="Hi, Anna.", at=at, zone="Europe/Moscow")
        nitka.record("anna", "web-1", text="# Not a heading\n- nor a list", answer="Noted.", at=at)
        nitka.record("anna", "web-2", text="Привет.", answer="Здравствуйте.", at=at + timedelta(days=1))
        nitka.record("boris", "web-1", text="I am Boris.", answer="Hi, Boris.", at=at)
    return path


def test_jsonl_is_every_message_in_order(cli: Any, filled: Path) -> None:
    records = [json.loads(line) for line in cli("export", "--user", "anna").out.splitlines()]
    assert [(r["session"], r["seq"], r["role"], r["text"]) for r in records] == [
        ("web-1", 0, "user", "Hello."),
        ("web-1", 1, "assistant", "Hi, Anna."),
        ("web-1", 2, "user", "# Not a heading\n- nor a list"),
        ("web-1", 3, "assistant", "Noted."),
        ("web-2", 0, "user", "Привет."),
        ("web-2", 1, "assistant", "Здравствуйте."),
    ]


def test_markdown_reads_as_a_conversation(cli: Any, filled: Path) -> None:
    """Headings are the conversations and nothing else; times are on the speaker's clock."""
    out = cli("export", "--user", "anna", "--format", "markdown").out
    assert [line for line in out.splitlines() if line.startswith("#")] == [
        "# Conversation web-1",
        "# Conversation web-2",
    ]
    assert out.startswith(
        "# Conversation web-1\n\n**User**, 2026-05-01 12:30 Europe/Moscow\n\n> Hello.\n\n"
        "**Assistant**, 2026-05-01 12:30 Europe/Moscow\n\n> Hi, Anna.\n\n"
        "**User**, 2026-05-01 09:30 UTC\n\n> # Not a heading\n> - nor a list\n\n"
    )


def test_markdown_in_russian(cli: Any, filled: Path) -> None:
    out = cli("--language", "ru", "export", "--user", "anna", "--format", "markdown").out
    assert "# Беседа web-1" in out
    assert "**Пользователь**" in out


def test_an_export_holds_one_user_only(cli: Any, filled: Path) -> None:
    assert "Boris" not in cli("export", "--user", "anna", "--what", "all").out


def test_all_adds_what_was_made_from_it(cli: Any, filled: Path) -> None:
    records = [json.loads(line) for line in cli("export", "--user", "anna", "--what", "all").out.splitlines()]
    assert sum("summary" in record for record in records) == 2


def test_a_file_is_private_and_whole(cli: Any, filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "anna.jsonl"
    result = cli("export", "--user", "anna", "--output", str(target))
    assert (result.code, result.out) == (0, "")
    assert str(target) in result.err
    assert target.stat().st_mode & 0o777 == 0o600
    assert len(target.read_text(encoding="utf-8").splitlines()) == 6
    assert [path.name for path in tmp_path.iterdir() if "anna" in path.name] == ["anna.jsonl"]


def test_a_file_that_cannot_be_written(cli: Any, filled: Path, tmp_path: Path) -> None:
    assert "cannot be written" in cli("export", "--user", "anna", "--output", str(tmp_path / "no/x")).complaint


def test_nobody_has_nothing(cli: Any, filled: Path, tmp_path: Path) -> None:
    """An unknown user is told from an empty file, and leaves none."""
    target = tmp_path / "carla"
    result = cli("export", "--user", "carla", "--output", str(target))
    assert "Nothing is stored for this user." in result.complaint
    assert not target.exists()
    target.write_text("an older export")
    cli("export", "--user", "carla", "--output", str(target), "--force")
    assert target.read_text() == "an older export"


def test_what_is_no_plain_file_is_not_replaced(cli: Any, filled: Path, tmp_path: Path) -> None:
    """Through a link the file behind it is written; a device stays one, and what it does not take is told."""
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to(real)
    assert cli("export", "--user", "anna", "--output", str(link), "--force").code == 0
    assert link.is_symlink() and len(real.read_text("utf-8").splitlines()) == 6
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text("utf-8")))
    reader.start()
    assert cli("export", "--user", "anna", "--output", str(pipe), "--force").code == 0
    reader.join(30)
    assert len(read[0].splitlines()) == 6 and stat.S_ISFIFO(pipe.stat().st_mode)
    if Path("/dev/full").is_char_device():
        link.unlink()
        link.symlink_to("/dev/full")
        assert "cannot be written" in cli("export", "--user", "anna", "--output", str(link), "--force").complaint
        assert Path("/dev/full").is_char_device()


def test_a_damaged_row_is_named_and_the_rest_given(cli: Any, filled: Path) -> None:
    """Never an error in place of the history, never a history without the error."""
    damage(filled, seq=1)
    result = cli("export", "--user", "anna")
    records = [json.loads(line) for line in result.out.splitlines()]
    assert len(records) == 6
    bad = [record for record in records if record.get("damaged")]
    assert {record["seq"] for record in bad} == {1}
    assert "1:1, 2:1" in result.complaint
    assert "does not open" in cli("export", "--user", "anna", "--format", "markdown").out


def test_a_damaged_conversation_hides_no_other(cli: Any, filled: Path) -> None:
    """Its messages are given without its name, after a mark; it is named in the complaint."""
    with closing(sqlite3.connect(filled)) as db, db:
        assert db.execute("update sessions set body = zeroblob(200) where head = 4").rowcount == 1
    result = cli("export", "--user", "anna")
    records = [json.loads(line) for line in result.out.splitlines()]
    lost = [record for record in records if record["session"] is None]
    assert lost[0] == {"session": None, "damaged": True}
    assert [record["seq"] for record in lost[1:]] == [0, 1, 2, 3]
    assert [record["text"] for record in records[:2]] == ["Привет.", "Здравствуйте."]
    assert "): 2. " in result.complaint
    page = cli("export", "--user", "anna", "--format", "markdown").out
    assert "does not open" in page and "I am Boris" not in page and "> Hello." in page


def test_what_was_made_from_a_conversation_is_damaged_by_itself(cli: Any, home: Path) -> None:
    cli("chat", "--user", "anna", lines="".join(f"Vera is {age}.\n" for age in range(30, 38)))
    with closing(sqlite3.connect(home / ".local/share/nitka/nitka.db")) as db, db:
        assert db.execute("update folds set body = zeroblob(200) where kind = 'summary'").rowcount == 1
    result = cli("export", "--user", "anna", "--what", "all")
    records = [json.loads(line) for line in result.out.splitlines()]
    assert sum("text" in record for record in records) == 16
    assert [record["damaged"] for record in records if "summary" in record] == [True]
    assert "1:summary" in result.complaint
    assert "does not open" in cli("export", "--user", "anna", "--what", "all", "--format", "markdown").out


def test_forgetting_everything_asks_though_a_conversation_is_damaged(cli: Any, filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as db, db:
        db.execute("update sessions set body = zeroblob(200)")
    assert "messages: 6" in cli("forget", "--user", "anna", "--yes").out


def damage(path: Path, seq: int) -> None:
    """Flips the last byte of the rows with this number."""
    with closing(sqlite3.connect(path)) as db, db:
        for owner, session, body in db.execute("select owner, session, body from messages where seq = ?", (seq,)):
            worse = body[:-1] + bytes([body[-1] ^ 1])
            where = (worse, owner, session, seq)
            db.execute("update messages set body = ? where owner = ? and session = ? and seq = ?", where)


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("#>-*\n\t`"), min_size=1)


@given(st.lists(TEXT, min_size=1, max_size=5))
def test_markdown_loses_no_text(texts: list[str]) -> None:
    """Whatever a text holds, it stands in the document line by line, and adds no heading."""
    records = [
        {"session": "s", "seq": n, "role": "user", "text": t, "at": "2026-01-01T00:00:00+00:00"}
        for n, t in enumerate(texts)
    ]
    document = "".join(to_markdown(records, ENGLISH))
    quoted = [line[2:] for line in document.split("\n") if line.startswith(">")]
    assert quoted == [line.rstrip() for text in texts for line in text.split("\n")]
    assert [line for line in document.split("\n") if line.startswith("#")] == ["# Conversation s"]


def test_records_of_unknown_kinds_are_kept() -> None:
    """What another version adds to an export is shown as it is, not dropped."""
    assert '"city": "Kazan"' in "".join(to_markdown([{"mood": {"city": "Kazan"}}], ENGLISH))


def test_forget_counts_truly(cli: Any, filled: Path) -> None:
    result = cli("forget", "--user", "anna", "--yes")
    assert (result.code, result.out) == (0, "Forgotten: conversations: 2, messages: 6, summary lines: 0, facts: 0.\n")
    assert cli("export", "--user", "anna").code == 1
    assert "Boris" in cli("export", "--user", "boris").out


def test_forget_one_conversation(cli: Any, filled: Path) -> None:
    assert "conversations: 1, messages: 4" in cli("forget", "--user", "anna", "--session", "web-1", "--yes").out
    assert len(cli("export", "--user", "anna").out.splitlines()) == 2


@pytest.mark.parametrize("number", ["2", "3"])
def test_forget_one_turn_by_either_message(cli: Any, filled: Path, number: str) -> None:
    assert "messages: 2" in cli("forget", "--user", "anna", "--session", "web-1", "--turn", number, "--yes").out
    assert "Not a heading" not in cli("export", "--user", "anna").out


@pytest.mark.parametrize(
    "words",
    [
        ["--user", "carla"],
        ["--user", "anna", "--session", "no"],
        ["--user", "anna", "--session", "web-1", "--turn", "98"],
    ],
)
def test_nothing_to_forget_is_said_and_fails(cli: Any, filled: Path, words: list[str]) -> None:
    result = cli("forget", *words, "--yes")
    assert (result.code, result.out) == (1, "There is nothing to forget.\n")


def test_forget_asks_nobody_in_a_script(cli: Any, filled: Path) -> None:
    """Without --yes a pipe is not taken for consent."""
    assert "--yes" in cli("forget", "--user", "anna", lines="y\n").complaint
    assert len(cli("export", "--user", "anna").out.splitlines()) == 6


def test_a_turn_needs_its_conversation(cli: Any, filled: Path) -> None:
    assert "--session" in cli("forget", "--user", "anna", "--turn", "0", "--yes").complaint


def test_a_damaged_row_can_be_forgotten(cli: Any, filled: Path) -> None:
    damage(filled, seq=1)
    assert "messages: 6" in cli("forget", "--user", "anna", "--yes").out
