"""`nitka parse` and `nitka watch lint`: what a person types, what comes back, and that nothing is lost or leaked."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nitka.watch import WatchError, load, merge, parse
from nitka.watch.cli import main
from nitka.watch.data import default

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
    with pytest.raises(SystemExit):
        run("parse")
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


# The memory file.


def modes(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_memory_file_keeps_its_mode_and_a_new_one_is_private(tmp_path: Path, mode: int) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("{}", encoding="utf-8")
    old.chmod(mode)
    for file in (old, new):
        assert run("parse", "Where are your parents now?", "--memory-file", str(file))[0] == 0
    assert (modes(old), modes(new)) == (mode, 0o600)
    assert sorted(tmp_path.iterdir()) == [new, old]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link_and_what_it_leads_to_is_replaced(tmp_path: Path, there: bool) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far/m.json", tmp_path / "m.json"
    if there:
        target.write_text("{}", encoding="utf-8")
    link.symlink_to(target)
    assert run("parse", "Where are your parents now?", "--memory-file", str(link))[0] == 0
    assert link.is_symlink() and "ask_guardian_whereabouts" in target.read_text(encoding="utf-8")


def test_processes_on_one_memory_file_lose_no_update(tmp_path: Path) -> None:
    """Each puts in a flag of its own; all of them stand in the end."""
    file, flags = tmp_path / "m.json", sorted(default().kinds)[:4]
    command = [sys.executable, "-m", "nitka.cli", "parse", "ok", "--memory-file", str(file), "--flag"]
    running = [subprocess.Popen([*command, flag], stdout=subprocess.DEVNULL) for flag in flags]
    assert [one.wait(60) for one in running] == [0] * 4
    assert set(json.loads(file.read_text(encoding="utf-8"))["flags"]) >= set(flags)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[" * 20_000, "no JSON that a memory may hold"),
        (b'{"flags": [' + b"9" * 5_000 + b"]}", "no JSON that a memory may hold"),
        (b'{"flags": ["\xff"]}', "not UTF-8"),
        (b"{", "not JSON (line 1"),
        (b" " * 2_000_000, "larger than"),
        (b'{"flags": 7}', "memory.flags: found a number"),
    ],
)
def test_what_is_wrong_with_a_memory_file_names_it(
    tmp_path: Path, content: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.json"
    file.write_bytes(content)
    assert run("parse", "hello", "--memory-file", str(file), "--flag", "urgency") == (2, "")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"nitka: {file}: ") and said in line
    assert file.read_bytes() == content


def test_a_byte_order_mark_and_an_empty_file_are_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    for content in (b'\xef\xbb\xbf{"flags": ["ask_guardian_whereabouts"]}', b""):
        file.write_bytes(content)
        code, answer = run("parse", STORIES["en"][1], "--memory-file", str(file))
        assert code == 0 and ("G01" in answer) == bool(content)


def test_a_missing_folder_a_folder_a_pipe_and_a_device_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "no/m.json", tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        assert run("parse", "hello", "--memory-file", str(name)) == (2, "")
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"nitka: {name}: ") and ".new" not in line
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


def test_a_refused_message_leaves_no_empty_file_behind(tmp_path: Path) -> None:
    assert run("parse", "hello", "--memory-file", str(tmp_path / "m.json"), "--language", "xx")[0] == 2
    assert not list(tmp_path.iterdir())


def shell(line: str) -> subprocess.CompletedProcess[str]:
    line = line.replace("nitka", f"{sys.executable} -m nitka.cli", 1)
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nitka parse hi >&-", "standard output is closed"),
        ("nitka parse -i <&-", "standard input is closed"),
        ("nitka parse - <&-", "standard input is closed"),
        ("nitka parse hi >/dev/full", "standard output: No space left on device"),
        ("nitka parse hi | true; exit 2", None),
        ("nitka parse -i 2>&- <&-", ""),
    ],
)
def test_a_closed_or_full_stream_is_one_line(line: str, said: str | None) -> None:
    ended = shell(line)
    assert ended.returncode == 2 and "Traceback" not in ended.stderr
    assert ended.stderr.count("\n") == (1 if said else 0) and (said or "") in ended.stderr


# What a person mistypes.


@pytest.mark.parametrize("name", ["nonsense", "urgency,rapport", "urgencyy"])
def test_a_flag_that_no_rule_knows_is_refused_by_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("parse", "hello", "--flag", name) == (2, "")
    err = capsys.readouterr().err
    assert "--flag" in err and (name in err or "," in name)


@pytest.mark.parametrize("name", ["TRPA", "trusted_party", "game_violence_ok"])
def test_a_flag_of_the_contract_is_taken(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("parse", "hello", "--flag", name)[0] == 0
    assert not capsys.readouterr().err


def test_an_unknown_flag_of_a_memory_is_kept_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.json"
    file.write_text('{"flags": ["ask_camra", {"index": 36, "value": "TRPA"}]}', encoding="utf-8")
    assert run("parse", "hello", "--memory-file", str(file))[0] == 0
    assert "ask_camra (is it ask_camera?)" in capsys.readouterr().err
    assert "ask_camra" in json.loads(file.read_text(encoding="utf-8"))["flags"]


def test_a_rule_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("parse", "hello", "--off", "G99") == (2, "")
    assert "G99" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("-i", "hello"), ()])
def test_a_message_or_a_dialogue_and_not_both(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("parse", *words)
    assert ended.value.code == 2


def test_a_dash_reads_standard_input() -> None:
    code, answer = run("parse", "-", stdin=STORIES["ru"][1] + "\n")
    assert code == 0 and json.loads(answer)["text"] == STORIES["ru"][1]


@pytest.mark.parametrize("line", ["12:30 meet me", "http://x", "see you :)", "at noon: meet me"])
def test_a_time_a_link_and_a_smile_name_no_speaker(line: str) -> None:
    assert run("parse", "-i", stdin=line + "\n")[1].startswith(f"?: {line}\n")


def test_the_speaker_and_the_snippets_of_a_dialogue_are_shown() -> None:
    first, second = STORIES["en"]
    _, said = run("parse", "-i", "--speaker", "kim", "--snippets", stdin=f"{first}\n{second}\n")
    assert said.startswith(f"kim: {first}\n") and said.splitlines()[-1].strip() in second


def test_the_language_of_an_explanation_is_that_of_the_message_or_the_one_asked_for() -> None:
    asked = ("parse", STORIES["en"][1], "--flag", "ask_guardian_whereabouts", "--explain")
    assert "parents" in run(*asked)[1]
    assert "родители" in run(*asked, "--explanation-language", "ru")[1]


def test_words_of_ones_own_that_are_not_read_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "languages/en/words").mkdir(parents=True)
    assert run("parse", "hello", "--rules", str(tmp_path))[0] == 0
    assert "words: not read" in capsys.readouterr().err
    code, said = run("watch", "lint", str(tmp_path))
    assert code == 1 and said.endswith("1 complaint\n")


@pytest.mark.parametrize(
    ("speaker", "path"),
    [({"id": "b", "Age": 12}, "speaker"), ({"id": "b", "age": 150}, "speaker.age"), ({"id": 5}, "speaker.id")],
)
def test_a_speaker_with_a_mistake_is_refused(speaker: Any, path: str) -> None:
    with pytest.raises(WatchError, match=rf"settings\.{path}: found .*; allowed: "):
        parse("hello", settings={"speaker": speaker})


@pytest.mark.parametrize("wrong", [5, None, b"x"])
def test_what_is_no_text_and_no_list_is_refused(wrong: Any) -> None:
    with pytest.raises(WatchError, match="text: found"):
        parse(wrong)
    with pytest.raises(WatchError, match="memories: found .* a list of memories"):
        merge(wrong)
    with pytest.raises(WatchError, match="memories: found an object"):
        merge(parse("hello").memory)  # type: ignore[arg-type]
    with pytest.raises(WatchError, match="off: found a string"):
        load(off="D2")
