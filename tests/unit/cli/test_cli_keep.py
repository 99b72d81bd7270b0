"""`nitka settle`, `keys`, `backup`, `doctor`."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nitka.store.sqlite_copy import copy, is_sound


@pytest.fixture
def used(cli: Any, home: Path) -> Path:
    """A store with one short conversation."""
    assert cli("chat", "--user", "anna", "--session", "s", lines="My name is Anna.\n").code == 0
    return home / ".local/share/nitka/nitka.db"


def test_settle_says_what_it_did(cli: Any, used: Path) -> None:
    assert cli("settle").out.startswith("Settled: folds: 0")
    assert cli("settle", "--user", "nobody").code == 0


def test_settle_rescan_finds_what_the_list_had_lost(cli: Any, used: Path) -> None:
    """The list of due work is an index: emptied by hand, it is rebuilt from the conversations."""
    turns = "".join(f"The cake has {n} candles.\n" for n in range(2, 9))
    cli("chat", "--user", "anna", "--session", "s", lines=turns)
    with closing(sqlite3.connect(used)) as db, db:
        db.execute("delete from due")
        db.execute("delete from folds")
    assert "folds: 0" in cli("settle").out
    assert "folds: 1, messages read: 4" in cli("settle", "--rescan").out


def test_keys_show_gives_ids_only(cli: Any, used: Path, home: Path) -> None:
    out = cli("keys", "show").out
    ring = (home / ".config/nitka/keys.json").read_text()
    assert len(out.splitlines()) == 1
    assert out.split()[0] in ring
    assert not any(secret in out for secret in ring.split('"') if secret.endswith("="))


def test_keys_rotate_then_all_opens(cli: Any, used: Path) -> None:
    before = cli("keys", "show").out.split()[0]
    assert "keys wrapped anew: 2" in cli("keys", "rotate").out
    rows = dict(line.split(maxsplit=1) for line in cli("keys", "show").out.splitlines())
    assert rows.pop(before) == "kept"
    assert list(rows.values()) == ["active"]
    assert "Anna" in cli("export", "--user", "anna").out


def test_keys_rotate_retire_old_closes_older_copies(cli: Any, used: Path, tmp_path: Path) -> None:
    """With what is left, a copy of the store from before does not open; the store itself does."""
    for path in (used, Path(f"{used}.keys")):
        shutil.copy(path, tmp_path / path.name)
    assert "Old root keys destroyed" in cli("keys", "rotate", "--retire-old").out
    assert len(cli("keys", "show").out.splitlines()) == 1
    assert "Anna" in cli("export", "--user", "anna").out
    assert "does not belong" in cli("export", "--user", "anna", "--store", f"sqlite:///{tmp_path}/nitka.db").complaint


def test_a_damaged_key_is_told_and_keeps_its_root_and_its_user_can_be_forgotten(cli: Any, used: Path) -> None:
    cli("chat", "--user", "boris", lines="I am Boris.\n")
    before = cli("keys", "show").out.split()[0]
    with closing(sqlite3.connect(f"{used}.keys")) as db, db:
        spoil = "update user_keys set wrapped = zeroblob(80) where owner = (select owner from user_keys limit 1)"
        assert db.execute(spoil).rowcount == 1
    result = cli("keys", "rotate", "--retire-old")
    assert "keys wrapped anew: 2" in result.out
    assert "left: 1." in result.complaint and before in result.complaint
    assert before in cli("keys", "show").out
    lost, whole = sorted(("anna", "boris"), key=lambda user: cli("export", "--user", user).code, reverse=True)
    assert "text" in cli("export", "--user", whole).out
    assert "messages: 2" in cli("forget", "--user", lost, "--yes").out
    assert cli("keys", "rotate", "--retire-old").code == 0
    assert before not in cli("keys", "show").out
    assert "text" in cli("export", "--user", whole).out


def test_backup_is_a_store_and_says_what_is_not_in_it(cli: Any, used: Path, home: Path, tmp_path: Path) -> None:
    result = cli("backup", str(tmp_path / "copy"))
    assert f"{home}/.config/nitka/keys.json is NOT in it" in result.out
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["nitka.db", "nitka.db.keys"]
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "copy").iterdir())
    url = result.out.split("--store ")[1].split(".\n")[0]
    assert "Anna" in cli("export", "--user", "anna", "--store", url).out


def test_backup_overwrites_nothing(cli: Any, used: Path, tmp_path: Path) -> None:
    cli("backup", str(tmp_path / "copy"))
    before = (tmp_path / "copy/nitka.db").read_bytes()
    assert "already" in cli("backup", str(tmp_path / "copy")).complaint
    assert (tmp_path / "copy/nitka.db").read_bytes() == before


BUSY = """
create table pair (name text, value integer);
insert into pair values ('a', 0), ('b', 0);
create table filler (bytes blob);
insert into filler values (zeroblob(20000000));
"""


def test_a_copy_is_one_snapshot_while_others_write(tmp_path: Path) -> None:
    """Two rows that always change together are equal in every copy, and no copy has to begin again, however busy the
    writer is.
    """
    source = str(tmp_path / "busy.db")
    with closing(sqlite3.connect(source)) as db:
        db.execute("pragma journal_mode=wal")
        db.executescript(BUSY)
    stop = threading.Event()
    told: list[int] = []

    def write() -> None:
        with closing(sqlite3.connect(source, isolation_level=None)) as busy:
            busy.execute("pragma synchronous=off")
            while not stop.is_set():
                busy.execute("update pair set value = value + 1")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            (target,) = copy([source], tmp_path / f"copy{number}", progress=lambda done, _: told.append(done))
            assert len(told) > 1 and told == sorted(told)
            told.clear()
            assert is_sound(str(target))
            with closing(sqlite3.connect(target)) as db:
                values = [value for (value,) in db.execute("select value from pair")]
            assert values[0] == values[1]
    finally:
        stop.set()
        writer.join()
    assert values[0] > 0


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(Exception, match="not a nitka database"):
        copy([str(tmp_path / "bad.db")], tmp_path / "copy")
    assert list((tmp_path / "copy").iterdir()) == []


def test_doctor_finds_all_well(cli: Any, used: Path) -> None:
    result = cli("doctor")
    assert result.code == 0
    assert result.out.splitlines()[-1] == "All is well."


def test_doctor_counts_what_is_due(cli: Any, used: Path) -> None:
    assert "is due" not in cli("doctor").out
    with closing(sqlite3.connect(used)) as db, db:
        db.execute("insert into due select owner, session, 'summary', 0, 0, 0 from sessions")
    assert "work that is due: 1;" in cli("doctor").out


def test_doctor_makes_nothing(cli: Any, home: Path) -> None:
    """On a machine where nothing was ever run it says so, and leaves it so."""
    result = cli("doctor")
    assert result.code == 0
    assert "none yet" in result.out
    assert not home.exists()


def test_doctor_says_who_can_read_what(cli: Any, used: Path) -> None:
    used.chmod(0o644)
    result = cli("doctor")
    assert result.code == 1
    assert f"chmod 600 {used}" in result.out


def test_doctor_finds_damage(cli: Any, used: Path) -> None:
    with used.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)
    result = cli("doctor")
    assert result.code == 1
    assert "PROBLEM" in result.out


def test_doctor_goes_on_after_a_problem(cli: Any, used: Path, home: Path) -> None:
    """Every check is told, whatever the one before it found."""
    (home / ".config/nitka/keys.json").write_text("{}")
    result = cli("doctor")
    assert result.code == 1
    assert "tokens" in result.out


def test_doctor_asks_the_model(cli: Any, used: Path, server: Any) -> None:
    assert "openai:any answered" in cli("doctor", "--model", "openai:any").out
    assert len(server.asked) == 1


def test_doctor_reports_a_model_that_refuses(cli: Any, used: Path, server: Any) -> None:
    server.status = 401
    result = cli("doctor", "--model", "openai:any")
    assert result.code == 1
    assert "OPENAI_API_KEY" in result.out


def test_a_root_key_that_another_store_needs_is_not_called_destroyed(cli: Any, used: Path, tmp_path: Path) -> None:
    """Copies still open then, and it says so, and what to do."""
    other = ("--store", f"sqlite:///{tmp_path / 'other.db'}")
    cli("chat", "--user", "boris", *other, lines="My secret is zeta.\n")
    cli("backup", str(tmp_path / "copy"), *other)
    cli("forget", "--user", "boris", "--yes", *other)
    said = cli("keys", "rotate", "--retire-old", *other).out
    assert "STILL OPEN" in said
    assert "destroyed" not in said
    copy = ("--store", f"sqlite:///{tmp_path / 'copy' / 'other.db'}")
    assert "zeta" in cli("export", "--user", "boris", *copy).out
