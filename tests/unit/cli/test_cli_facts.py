"""What is known of a person, from the command line: shown, corrected, forgotten, given out. In both languages."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nitka import sync
from nitka.cli.texts import ENGLISH, RUSSIAN, Texts
from nitka.world import system_clock

AT = datetime(2026, 5, 1, 9, 30, tzinfo=UTC)


@pytest.fixture
def filled(home: Path) -> str:
    """A store where Anna has a name, a city, a sister, and a handle; its URL."""
    (home / ".local/share/nitka").mkdir(parents=True)
    url = f"sqlite:///{home}/.local/share/nitka/nitka.db"
    with sync.Nitka.open(url) as nitka:
        nitka.record("anna", "web-1", text="My name is Anna. I live in Leeds.", answer="Noted.", at=AT)
        nitka.record("anna", "web-1", text="My sister Vera likes jazz.", answer="Noted.", at=AT)
        nitka.link("telegram", "8817", "anna")
        nitka.settle()
    return url


def known(cli: Any, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in cli("facts", "--user", "anna", "--json", *words).out.splitlines()]


def fact(cli: Any, slot: str, *words: str) -> dict[str, Any]:
    (found,) = [one for one in known(cli, *words) if one["slot"] == slot]
    return found


def test_each_fact_names_the_message_it_comes_from(cli: Any, filled: str) -> None:
    city = fact(cli, "home.city")
    assert (city["value"], city["session"], city["seq"], city["by_hand"]) == ("Leeds", "web-1", 0, False)
    assert city["quote"] in "My name is Anna. I live in Leeds."
    row = next(line for line in cli("facts", "--user", "anna").out.splitlines() if "home.city" in line)
    assert city["id"].startswith(row.split()[0])
    assert "2026-05-01" in row and "web-1:0" in row


@pytest.mark.parametrize(("language", "texts"), [("en", ENGLISH), ("ru", RUSSIAN)])
def test_the_table_in_both_languages(cli: Any, filled: str, language: str, texts: Texts) -> None:
    head, *rows = cli("--language", language, "facts", "--user", "anna").out.splitlines()
    assert head.split("  ")[0] == texts.facts_head[0]
    assert all(word in head for word in texts.facts_head)
    assert len(rows) >= 3
    assert cli("--language", language, "facts", "--user", "carla").out == f"{texts.no_facts}\n"


def test_about_shows_one_person_alone(cli: Any, filled: str) -> None:
    assert {one["about"] for one in known(cli, "--about", "Vera")} == {"Vera"}
    assert {one["about"] for one in known(cli, "--about", "user")} == {"user"}


def test_a_fact_set_by_hand_takes_the_old_value_s_place(cli: Any, filled: str) -> None:
    assert "by hand" in cli("facts", "--user", "anna", "--set", "home.city=York").out
    city = fact(cli, "home.city", "--past")
    assert (city["value"], city["by_hand"], [past["value"] for past in city["past"]]) == ("York", True, ["Leeds"])
    assert "(before)" in cli("facts", "--user", "anna", "--past").out
    assert "Leeds" not in cli("facts", "--user", "anna").out


def test_a_fact_is_switched_off_by_the_beginning_of_its_id(cli: Any, filled: str) -> None:
    start = fact(cli, "home.city")["id"][:8]
    assert "Leeds" not in cli("facts", "--user", "anna", "--retract", start).out
    assert "(taken back)" in cli("facts", "--user", "anna", "--past").out
    again = cli("facts", "--user", "anna", "--retract", start)
    assert "no such fact" in again.complaint


def test_a_forgotten_fact_does_not_come_back_and_is_still_said(cli: Any, filled: str) -> None:
    start = fact(cli, "home.city")["id"][:8]
    out = cli("forget", "--user", "anna", "--fact", start, "--yes").out
    assert "facts: 1" in out and "messages: 0" in out and "still say it: 1" in out
    assert cli("settle", "--rescan").code == 0
    assert not any(one["slot"] == "home.city" for one in known(cli, "--past"))
    assert "Leeds" in cli("export", "--user", "anna").out


def test_with_turns_forgets_those_that_say_it_too(cli: Any, filled: str) -> None:
    out = cli("forget", "--user", "anna", "--fact", fact(cli, "home.city")["id"], "--with-turns", "--yes").out
    assert "messages: 2" in out and "still say it" not in out
    assert "Leeds" not in cli("export", "--user", "anna", "--what", "all").out


def test_forgetting_a_named_other(cli: Any, filled: str) -> None:
    result = cli("forget", "--user", "anna", "--about", "Vera", "--yes")
    assert result.code == 0 and "facts: 0" not in result.out
    assert "Vera" not in cli("facts", "--user", "anna", "--past").out
    assert cli("facts", "--user", "anna").out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--fact", "0" * 16, "--session", "web-1"], "Name one"),
        (["--fact", "0" * 16, "--about", "Vera"], "Name one"),
        (["--with-turns"], "with_turns"),
    ],
)
def test_what_cannot_be_forgotten_together(cli: Any, filled: str, words: list[str], named: str) -> None:
    assert named in cli("forget", "--user", "anna", *words, "--yes").complaint
    assert len(cli("export", "--user", "anna").out.splitlines()) == 4


def test_no_such_fact_is_nothing_to_forget(cli: Any, filled: str) -> None:
    result = cli("forget", "--user", "anna", "--fact", "0" * 16, "--yes")
    assert (result.code, result.out) == (1, "There is nothing to forget.\n")


@pytest.mark.parametrize(("language", "line"), [("en", "channels that led here: 1"), ("ru", "сюда вели: 1")])
def test_a_user_s_handles_go_and_are_counted(cli: Any, filled: str, language: str, line: str) -> None:
    assert line in cli("--language", language, "forget", "--user", "anna", "--yes").out
    with sync.Nitka.open(filled) as nitka:
        assert nitka.links("anna") == ()


def test_an_export_of_all_has_facts_and_links(cli: Any, filled: str) -> None:
    records = [json.loads(line) for line in cli("export", "--user", "anna", "--what", "all").out.splitlines()]
    assert {"link": {"channel": "telegram", "id": "8817"}} in records
    city = next(record["fact"] for record in records if record.get("fact", {}).get("slot") == "home.city")
    assert (city["value"], city["session"], city["seq"]) == ("Leeds", "web-1", 0)
    assert "link" not in cli("export", "--user", "anna").out


def test_an_export_of_all_has_the_profile(cli: Any, home: Path) -> None:
    cli("chat", "--user", "anna", lines="".join(f"Please be brief, number {n}.\n" for n in range(22)))
    assert cli("settle").code == 0
    store = f"sqlite:///{home}/.local/share/nitka/nitka.db"
    with sync.Nitka.open(store) as nitka:
        profile = nitka.profile("anna").text
    assert profile
    records = [json.loads(line) for line in cli("export", "--user", "anna", "--what", "all").out.splitlines()]
    assert {"profile": profile} in records


@pytest.mark.parametrize(("language", "texts"), [("en", ENGLISH), ("ru", RUSSIAN)])
def test_facts_in_an_export_to_read(cli: Any, filled: str, language: str, texts: Texts) -> None:
    cli("facts", "--user", "anna", "--set", "home.city=York")
    out = cli("--language", language, "export", "--user", "anna", "--what", "all", "--format", "markdown").out
    assert f"**{texts.fact}**" in out
    assert f"({texts.former}" in out
    assert texts.by_hand in out
    assert "telegram" in out and "8817" in out


def test_facts_in_a_pipe_are_those_of_the_line_before(cli: Any) -> None:
    """A person takes longer to type than memory to learn; a pipe waits for it."""
    out = cli("chat", "--user", "anna", lines="My name is Anna.\n/facts\n").out
    assert any("name" in line and "Anna" in line for line in out.splitlines())


def test_settle_lets_facts_and_turns_go_by_age(cli: Any, filled: str) -> None:
    """Only where it is asked to, and it says how many went."""
    assert "Gone" not in cli("settle").out
    out = cli("settle", "--retain-days", "36500", "--retain-facts-days", "36500").out
    assert "messages: 0, facts: 0" in out
    with sync.Nitka.open(filled) as nitka:
        nitka.set_fact("anna", "job.title", "baker")
        nitka.record("anna", "web-1", text="Hello.", answer="Hello.")
    old = (system_clock() - AT).days
    out = cli("settle", "--retain-days", str(old - 1), "--retain-facts-days", str(old - 1)).out
    assert "messages: 4" in out and "facts: 0" not in out
    assert [one["slot"] for one in known(cli)] == ["job.title"]
    assert len(cli("export", "--user", "anna").out.splitlines()) == 2


def test_a_file_that_is_there_is_not_written_over(cli: Any, filled: str, tmp_path: Path) -> None:
    target = tmp_path / "anna.jsonl"
    target.write_text("mine")
    assert "--force" in cli("export", "--user", "anna", "--output", str(target)).complaint
    assert target.read_text() == "mine"
    assert cli("export", "--user", "anna", "--output", str(target), "--force").code == 0
    assert "Leeds" in target.read_text()
