"""`nitka copy`, and the other commands on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.contract.databases import Databases, server


@pytest.fixture
def used(cli: Any, home: Path) -> Path:
    """A store with one short conversation."""
    assert cli("chat", "--user", "anna", "--session", "s", lines="My name is Anna.\n").code == 0
    return home / ".local/share/nitka/nitka.db"


@pytest.fixture(scope="module")
def databases() -> Iterator[Databases]:
    with server() as made:
        yield made


@pytest.fixture
def postgres(databases: Databases) -> str:
    """The URL of an empty database."""
    return url_of(databases)


def url_of(databases: Databases) -> str:
    """The URL of a new database, as a person writes it."""
    parts = {name: quote(str(value), safe="") for name, value in conninfo_to_dict(databases.new()).items()}
    database = parts.pop("dbname")
    return f"postgresql:///{database}?" + "&".join(f"{name}={value}" for name, value in parts.items())


def test_a_store_is_copied_to_a_file_and_says_what_to_do_next(cli: Any, used: Path, tmp_path: Path) -> None:
    done = cli("copy", f"sqlite:///{used}", f"sqlite:///{tmp_path}/new.db")
    assert done.code == 0 and "NITKA_STORE" in done.out
    assert "My name is Anna." in cli("export", "--user", "anna", "--store", f"sqlite:///{tmp_path}/new.db").out


def test_a_target_that_is_in_use_or_a_source_that_is_not_there_is_one_line(
    cli: Any, used: Path, tmp_path: Path
) -> None:
    assert "empty" in cli("copy", f"sqlite:///{used}", f"sqlite:///{used}").complaint
    nothing = cli("copy", f"sqlite:///{tmp_path}/nothing.db", f"sqlite:///{tmp_path}/new.db")
    assert nothing.complaint
    assert not (tmp_path / "nothing.db").exists() and not (tmp_path / "new.db").exists()


def test_to_postgresql_and_back_and_every_command_works_there(
    cli: Any, used: Path, tmp_path: Path, postgres: str
) -> None:
    assert cli("copy", f"sqlite:///{used}", postgres).code == 0
    at = ("--store", postgres)
    assert "My name is Anna." in cli("export", "--user", "anna", *at).out
    assert cli("chat", "--user", "anna", "--session", "s", *at, lines="And I live in Kyiv.\n").code == 0
    assert cli("settle", "--rescan", *at).code == 0
    assert cli("keys", "rotate", *at).code == 0
    assert "active" in cli("keys", "show", *at).out
    doctor = cli("doctor", *at)
    assert doctor.code == 0 and "NITKA_KEYS" in doctor.out
    assert "pg_dump" in cli("backup", str(tmp_path / "folder"), *at).complaint
    back = f"sqlite:///{tmp_path}/back.db"
    assert cli("copy", postgres, back).code == 0
    assert "I live in Kyiv." in cli("export", "--user", "anna", "--store", back).out
    assert "messages: 4" in cli("forget", "--user", "anna", "--yes", *at).out
    assert cli("export", "--user", "anna", *at).complaint, "nothing is stored there any more"


def test_wrapped_keys_lie_where_the_environment_says(
    cli: Any, home: Path, databases: Databases, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apart from the data: `doctor` has nothing to note, and the data without them do not open."""
    monkeypatch.setenv("NITKA_STORE", postgres)
    monkeypatch.setenv("NITKA_KEYS", url_of(databases))
    assert cli("chat", "--user", "anna", "--session", "s", lines="My name is Anna.\n").code == 0
    doctor = cli("doctor")
    assert doctor.code == 0 and "NITKA_KEYS" not in doctor.out
    assert "keys wrapped anew: 2" in cli("keys", "rotate").out
    assert "My name is Anna." in cli("export", "--user", "anna").out
    monkeypatch.setenv("NITKA_KEYS", url_of(databases))
    assert cli("export", "--user", "anna").complaint
