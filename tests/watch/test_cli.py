"""`nitka parse` and `nitka watch lint`: what a person types, what comes back, and that nothing is lost or leaked."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from nitka.watch.cli import main

STORIES = {
    "en": ("Where are your parents now?", "Can you turn on your camera?"),
    "ru": ("Где сейчас твои родители?", "Ты можешь включить камеру?"),
}


def run(*words: str, stdin: str = "") -> tuple[int, str]:
    out = io.StringIO()
    code = main(list(words), stdin=io.StringIO(stdin), stdout=out)
    return code, out.getvalue()


@pytest.mark.parametrize("language", STORIES)
def test_the_memory_file_carries_the_story_from_one_command_to_the_next(tmp_path: Path, language: str) -> None:
    memory = str(tmp_path / "m.json")
    first, second = STORIES[language]
    _, quiet = run("parse", first, "--memory-file", memory)
    _, loud = run("parse", second, "--memory-file", memory, "--explain", "--snippets", "--state")
    assert "abuse" not in json.loads(quiet) and "memory" not in json.loads(quiet)
    (alert,) = [entry for entry in json.loads(loud)["abuse"] if "rule" in entry]
    assert alert["rule"] == "G01" and alert["explanation"] and alert["text"] in second
    assert json.loads(loud)["memory"] == json.loads(Path(memory).read_text(encoding="utf-8"))


def test_a_flag_put_in_by_hand_counts() -> None:
    _, answer = run("parse", STORIES["en"][1], "--flag", "ask_guardian_whereabouts")
    assert [entry["rule"] for entry in json.loads(answer)["abuse"] if "rule" in entry] == ["G01"]


def test_a_rule_can_be_switched_off() -> None:
    _, answer = run("parse", STORIES["en"][1], "--flag", "ask_guardian_whereabouts", "--off", "G01")
    assert all(entry.get("rule") != "G01" for entry in json.loads(answer).get("abuse", []))


@pytest.mark.parametrize("language", STORIES)
def test_a_dialogue_is_read_line_by_line(language: str) -> None:
    first, second = STORIES[language]
    code, said = run("parse", "-i", stdin=f"a: {first}\n\nb: ok\na: {second}\n")
    assert code == 0
    assert "ask_guardian_whereabouts" in said.split("b: ok")[0]
    assert "ALERT G01 (high)" in said.split(second)[1]


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"flags": 7}', "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace")]
)
def test_a_bad_memory_file_is_one_line_and_is_left_as_it_is(
    tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.json"
    file.write_text(content, encoding="utf-8")
    code, out = run("parse", "hello", "--memory-file", str(file))
    assert (code, out) == (2, "")
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert file.read_text(encoding="utf-8") == content


def test_a_missing_message_and_an_unknown_language_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("parse")[0] == 2
    assert run("parse", "secret-marker", "--language", "xx")[0] == 2
    errors = capsys.readouterr().err
    assert "message is missing" in errors and "language" in errors
    assert "secret-marker" not in errors


@pytest.mark.parametrize("table", ["[rule.Z99]\nformula = 7\n", "rule = 1", "[[rule]]\nid = 9", "[[", "flag = 'x'"])
def test_lint_names_what_is_wrong_in_a_folder_of_ones_own(
    tmp_path: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.toml").write_text(table, encoding="utf-8")
    code, said = run("watch", "lint", str(tmp_path))
    assert code != 0
    assert "broken.toml" in said + capsys.readouterr().err
