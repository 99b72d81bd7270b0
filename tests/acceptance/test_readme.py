"""The READMEs and the pages on memory keep their word: commands and snippets run, transcripts are what a chat says.

Both pages are read as a person would use them: the blocks of one page in their order, in one clean home folder.
"""

from __future__ import annotations

import difflib
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from nitka import Limits

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"en": "README.md", "ru": "README.ru.md"}
MEMORY = {"en": "docs/memory.md", "ru": "docs/memory.ru.md"}
PROMPT = re.compile(r"^(?:you|вы)> ", re.MULTILINE)
ALIKE = 0.6  # of an answer: the stand-in may learn to word things better, a transcript of something else is found out


def blocks(page: str, kind: str) -> list[str]:
    """The fenced blocks of one kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[str]:
    lines = [line.split("  # ")[0].strip() for block in blocks(page, "sh") for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.mark.parametrize("page", [*PAGES.values(), "CONTRIBUTING.md"])
def test_make_targets_exist(page: str) -> None:
    targets = [line.split()[1] for line in commands(page) if line.startswith("make ")]
    assert {"chat", "test"} <= set(targets)
    done = subprocess.run(["make", "-n", *targets], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES.values())
def test_commands_run_in_their_order(page: str, env: dict[str, str], tmp_path: Path) -> None:
    """Each ends well and says something, but for a chat that is told nothing."""
    run = [line for line in commands(page) if not line.startswith("make ")]
    assert len(run) >= 8
    for line in run:
        done = subprocess.run(
            ["bash", "-c", line],
            env=env,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout or "llama" in line, line


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("README.md", ["Anna", "home.city Leeds web-3 0", "jazz|trains", "messages=2"]),
        ("README.ru.md", ["Анна", "home.city Тверь web-3 0", "поезда", "messages=2"]),
        ("docs/memory.md", [r"York .* web-1 2 \['Leeds'\]", "1 fact; 2 turns", "2 messages"]),
        ("docs/memory.ru.md", [r"Псков .* web-1 2 \['Тверь'\]", "фактов: 1 .* сказано: 2", "Анны: 2"]),
    ],
)
def test_snippets_run_in_their_order(page: str, says: list[str], env: dict[str, str], tmp_path: Path) -> None:
    """The library in ten lines does what the page says: it knows the name."""
    said = ""
    found = blocks(page, "python")
    assert len(found) >= 2
    for snippet in found:
        done = subprocess.run(
            ["python", "-W", "error", "-c", snippet], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        said += done.stdout
    for what in says:
        assert re.search(what, said), (what, said)


@pytest.mark.alone  # a turn waits 50 ms for what is recalled, and says so where that was not enough
@pytest.mark.parametrize("language", PAGES)
def test_the_transcript_is_real(language: str, terminal: Any) -> None:
    """The page's questions, asked again, are answered alike, receipt and first screen included."""
    (shown,) = blocks(PAGES[language], "console")
    screen, *turns = re.split(PROMPT, shown.split("\n", maxsplit=1)[1])
    lines = [turn.split("\n")[0] for turn in turns]
    assert len([line for line in lines if not line.startswith("/")]) >= 8
    assert "/why" in lines and "/new" in lines
    again = held(terminal("--user", "anna", language=language), lines)
    assert len(again) == len(turns) + 1
    for before, after in zip([screen, *turns], again, strict=True):
        alike = difflib.SequenceMatcher(None, before.strip(), after.strip(), autojunk=False).ratio()
        assert alike >= ALIKE, (before, after)


def held(chat: Any, lines: list[str]) -> list[str]:
    """What is shown: the first screen, and each line with what it was answered. A person takes a while to type."""
    parts = [chat.until_prompt()]
    for line in lines:
        time.sleep(0.5)  # folds run behind the answer
        chat.type(f"{line}\n")
        parts.append(chat.until_prompt())
    return [re.sub(PROMPT, "", part) for part in parts]


@pytest.mark.parametrize("page", [*PAGES.values(), *MEMORY.values(), "CHANGELOG.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or ((ROOT / page).parent / target).exists(), target


@pytest.mark.parametrize("pages", [PAGES, MEMORY])
def test_both_pages_say_the_same(pages: dict[str, str]) -> None:
    """As many headings, blocks, table rows and list items, and the same commands, options and names in them."""

    def outline(page: str) -> list[str]:
        text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        return [line[:2] for line in text.splitlines() if line.startswith(("#", "|", "* "))]

    def names(page: str) -> set[str]:
        return set(re.findall(r"`([^`\n]+)`", (ROOT / page).read_text(encoding="utf-8")))

    assert outline(pages["en"]) == outline(pages["ru"])
    assert names(pages["en"]) - names(pages["ru"]) == set()
    assert all(len(blocks(pages["en"], kind)) == len(blocks(pages["ru"], kind)) for kind in ("sh", "python"))


@pytest.mark.parametrize("page", MEMORY.values())
def test_the_page_on_memory_names_the_limits_as_they_are(page: str) -> None:
    """Where a default is in its tables, it is that of `Limits`."""
    rows = [line for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    named = [(value, name) for row in rows for value, name in re.findall(r"(\d+)[^|`]*\(`(\w+)`\)", row)]
    assert len(named) >= 5
    assert {name: int(value) for value, name in named} == {name: getattr(Limits(), name) for _, name in named}
