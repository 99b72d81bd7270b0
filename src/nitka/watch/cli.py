"""The watch from the command line: `nitka parse` and `nitka watch lint`. The rim: arguments, files and the terminal.

Only the standard library, so that one message is answered in a fraction of a second. A memory file is read, and the
new memory is put in its place, written aside first: a crash loses neither. What is printed is what was asked for;
nothing is kept or logged.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from nitka.watch import Watch, WatchError, load, parse_json
from nitka.watch.lint import lint

NOTICE = "An alert is a reason for a trained person to look, never a verdict."


def main(arguments: Sequence[str], *, stdin: TextIO | None = None, stdout: TextIO | None = None) -> int:
    """Runs `parse …` or `watch lint …`; returns the exit code. What is wrong is one line on stderr."""
    chosen = _options().parse_args(arguments)
    out = stdout or sys.stdout
    try:
        if chosen.command == "watch":
            return _lint(chosen, out)
        return _dialogue(chosen, stdin or sys.stdin, out) if chosen.interactive else _parse(chosen, out)
    except (WatchError, OSError, ValueError) as error:
        what = f"{type(error).__name__}: {error}" if isinstance(error, WatchError) else _place(error)
        sys.stderr.write(f"nitka: {what}\n")
        return 2


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nitka", description="The watch: notices patterns that deserve a look.")
    commands = parser.add_subparsers(dest="command", required=True)
    parse = commands.add_parser(
        "parse",
        help="Read one message, or a dialogue, and print what the watch noticed.",
        description="Prints the answer of POST /parse as JSON; with -i reads a dialogue, one message a line.",
        epilog=NOTICE,
    )
    parse.add_argument("text", nargs="?", help="the message")
    parse.add_argument(
        "-i", "--interactive", action="store_true", help="read lines such as `a: hello` from standard input"
    )
    parse.add_argument("--language", default="*", metavar="CODE", help="en, ru, en|ru, or * (the default)")
    parse.add_argument("--state", action="store_true", help="print the memory too")
    parse.add_argument(
        "--memory-file", type=Path, metavar="FILE", help="the memory before; the new one is put in its place"
    )
    parse.add_argument(
        "--flag", action="append", default=[], metavar="NAME", help="add a flag to the memory; may be repeated"
    )
    parse.add_argument("--speaker", metavar="ID", help="who says it")
    parse.add_argument("--snippets", action="store_true", help="print the words an entry points at")
    parse.add_argument("--explain", action="store_true", help="say in words what an alert rests on")
    parse.add_argument("--rules", type=Path, metavar="FOLDER", help="a folder of rules of your own, added to ours")
    parse.add_argument("--off", action="append", default=[], metavar="RULE", help="switch a rule off; may be repeated")
    watch = commands.add_parser("watch", help="Tools for those who write rules.")
    tools = watch.add_subparsers(dest="tool", required=True)
    check = tools.add_parser("lint", help="Check a rule folder: examples, twins, and how much looks copied.")
    check.add_argument("folder", nargs="?", type=Path, help="a folder of rules; without one, the packaged rules")
    check.add_argument(
        "--against", type=Path, metavar="FILE", help="texts that the rules must not be copied from, one a line"
    )
    return parser


def _parse(chosen: argparse.Namespace, out: TextIO) -> int:
    if chosen.text is None:
        raise ValueError('a message is missing: nitka parse "text", or -i for a dialogue')
    memory = _with_flags(_read(chosen.memory_file), chosen.flag)
    answer = _ask(chosen, _rules(chosen), chosen.text, memory, chosen.speaker)
    if chosen.memory_file is not None:
        _write(chosen.memory_file, answer["memory"])
    if not chosen.state:
        del answer["memory"]
    out.write(json.dumps(answer, ensure_ascii=False, indent=1) + "\n")
    return 0


def _dialogue(chosen: argparse.Namespace, lines: Iterable[str], out: TextIO) -> int:
    rules = _rules(chosen)
    memory = _with_flags(_read(chosen.memory_file), chosen.flag)
    chosen.explain = True
    for line in lines:
        speaker, text = _spoken(line.rstrip("\n"))
        if not text:
            continue
        answer = _ask(chosen, rules, text, memory, speaker or chosen.speaker)
        memory = answer["memory"]
        out.write(f"{speaker or '?'}: {text}\n")
        out.write(f"    memory: {', '.join(map(str, memory['flags'])) or '-'}\n")
        for entry in answer.get("abuse", []):
            if "rule" in entry:
                out.write(f"    ALERT {entry['rule']} ({entry['severity']}): {entry['explanation']}\n")
        out.flush()
    if chosen.memory_file is not None:
        _write(chosen.memory_file, memory or {})
    return 0


def _spoken(line: str) -> tuple[str, str]:
    """A line `a: text` as speaker and text; a line without a short name before a colon has no speaker."""
    name, colon, text = line.partition(":")
    if colon and 0 < len(name.strip()) <= 20 and " " not in name.strip():
        return name.strip(), text.strip()
    return "", line.strip()


def _ask(
    chosen: argparse.Namespace, rules: Watch, text: str, memory: Mapping[str, Any] | None, speaker: str | None
) -> dict[str, Any]:
    settings: dict[str, Any] = {"state": True, "memory": memory, "snippets": chosen.snippets, "explain": chosen.explain}
    if speaker:
        settings["speaker"] = speaker
    settings["explanation_language"] = "ru" if any("а" <= letter <= "я" for letter in text.lower()) else "en"
    return parse_json({"language": chosen.language, "content": text, "settings": settings}, watch=rules)


def _rules(chosen: argparse.Namespace) -> Watch:
    return load(chosen.rules, chosen.off)


def _read(path: Path | None) -> dict[str, Any] | None:
    if path is None or not path.exists():
        return None
    memory = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(memory, dict):
        raise ValueError(f"{path}: a memory is a JSON object")
    return memory


def _with_flags(memory: dict[str, Any] | None, flags: Sequence[str]) -> dict[str, Any] | None:
    if not flags:
        return memory
    kept = memory or {}
    return {**kept, "flags": [*kept.get("flags", []), *flags]}


def _write(path: Path, memory: Mapping[str, Any]) -> None:
    aside = path.with_name(f".{path.name}.new")
    aside.write_text(json.dumps(memory, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(aside, path)


def _lint(chosen: argparse.Namespace, out: TextIO) -> int:
    against = chosen.against.read_text(encoding="utf-8").splitlines() if chosen.against else None
    complaints = lint(chosen.folder, against)
    for complaint in complaints:
        out.write(complaint + "\n")
    out.write(f"{len(complaints)} complaints\n" if complaints else "nothing to complain about\n")
    return 1 if complaints else 0


def _place(error: Exception) -> str:
    """An error of a file or its JSON, without a byte of what stands in it."""
    if isinstance(error, OSError):
        return f"{error.filename}: {os.strerror(error.errno or 0)}"
    if isinstance(error, json.JSONDecodeError):
        return f"the memory file is not JSON (line {error.lineno}, column {error.colno})"
    return str(error)
