"""The watch from the command line: `nitka parse` and `nitka watch lint`. The rim: arguments, files and the terminal.

Only the standard library, so that one message is answered in a fraction of a second. An answer is printed before its
memory is kept: whoever did not get it may ask again. What is printed is what was asked for; nothing else is kept or
logged. What a person mistyped is said, not passed over.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from nitka.watch import RuleError, Watch, WatchError, load, parse_json
from nitka.watch.data import default, unread
from nitka.watch.lint import lint
from nitka.watch.memory_file import MemoryFile, Trouble, locked, read_text, reason
from nitka.watch.parse import MOST_CONTENT
from nitka.watch.wire_memory import CALLER_ONLY, CODES, flag_name

NOTICE = "An alert is a reason for a trained person to look, never a verdict."
MOST_AGAINST = 1 << 28  # bytes of texts to compare with
_SPOKEN = re.compile(r"\s*([^\s:]{1,20})\s*:(?:\s+(.*)|\s*)\Z", re.DOTALL)  # so "12:30" and "http://" name nobody
_ID = re.compile(r"[\w.-]{1,64}\Z")


def main(arguments: Sequence[str], *, stdin: TextIO | None = None, stdout: TextIO | None = None) -> int:
    """Runs `parse …` or `watch lint …`; returns the exit code. What is wrong is one line on stderr."""
    chosen = _options(arguments)
    try:
        out = _Out(stdout or sys.stdout)
        if chosen.command == "watch":
            return _lint(chosen, out)
        return _dialogue(chosen, stdin, out) if chosen.interactive else _parse(chosen, stdin, out)
    except BrokenPipeError:  # the reader had enough
        _give_up_output()
        return 1
    except Trouble as error:
        _say(str(error))
    except RuleError as error:
        _say(f"{chosen.rules or 'rules'}: {error}" if chosen.command == "parse" and chosen.rules else str(error))
    except WatchError as error:
        where = chosen.memory_file if chosen.command == "parse" and error.path.startswith("settings.memory") else None
        _say(f"{where}: {str(error).removeprefix('settings.')}" if where else str(error))
    except OSError as error:
        _say(f"{error.filename or 'a file'}: {reason(error)}")
    return 2


class _Out:
    """Standard output, or a clear word where it is closed or full."""

    def __init__(self, stream: TextIO | None) -> None:
        if stream is None:
            raise Trouble("standard output is closed; let the answer go somewhere")
        self._stream = stream

    def write(self, text: str) -> None:
        """Raises `BrokenPipeError`, `Trouble`."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            _give_up_output()
            raise Trouble(f"standard output: {reason(error)}") from None


def _give_up_output() -> None:
    """Lets what could not be written go, or the interpreter tries again at its end and says so in its own way."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(text: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"nitka: {text}\n")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nitka", description="The watch: notices patterns that deserve a look.")
    commands = parser.add_subparsers(dest="command", required=True)
    parse = commands.add_parser(
        "parse",
        help="Read one message, or a dialogue, and print what the watch noticed.",
        description="Prints the answer of POST /parse as JSON; with -i reads a dialogue, one message a line.",
        epilog=NOTICE,
    )
    _of_parse(parse)
    watch = commands.add_parser("watch", help="Tools for those who write rules.")
    tools = watch.add_subparsers(dest="tool", required=True)
    check = tools.add_parser("lint", help="Check a rule folder: examples, twins, and how much looks copied.")
    check.add_argument("folder", nargs="?", type=Path, help="a folder of rules; without one, the packaged rules")
    check.add_argument(
        "--against", type=Path, metavar="FILE", help="texts that the rules must not be copied from, one a line"
    )
    chosen = parser.parse_args(arguments)
    if chosen.command == "parse" and chosen.interactive == (chosen.text is not None):
        both = chosen.interactive
        parse.error("a message, or -i for a dialogue: not both" if both else 'a message is missing: "text", - or -i')
    return chosen


def _of_parse(parse: argparse.ArgumentParser) -> None:
    parse.add_argument("text", nargs="?", help="the message; - reads it from standard input")
    parse.add_argument(
        "-i", "--interactive", action="store_true", help="read lines such as `a: hello` from standard input"
    )
    parse.add_argument("--language", default="*", metavar="CODE", help="en, ru, en|ru, or * (the default)")
    parse.add_argument("--state", action="store_true", help="print the memory too (-i always tells its flags)")
    parse.add_argument(
        "--memory-file", type=Path, metavar="FILE", help="the memory before; the new one is put in its place"
    )
    parse.add_argument(
        "--flag", action="append", default=[], metavar="NAME", help="add a flag to the memory; may be repeated"
    )
    parse.add_argument("--speaker", metavar="ID", help="who says it; with -i, who says a line that names nobody")
    parse.add_argument("--snippets", action="store_true", help="print the words an entry points at")
    parse.add_argument("--explain", action="store_true", help="say in words what an alert rests on (-i always does)")
    parse.add_argument(
        "--explanation-language", choices=("en", "ru"), help="of the explanations; by default, that of the message"
    )
    parse.add_argument("--rules", type=Path, metavar="FOLDER", help="a folder of rules of your own, added to ours")
    parse.add_argument("--off", action="append", default=[], metavar="RULE", help="switch a rule off; may be repeated")


def _parse(chosen: argparse.Namespace, stdin: TextIO | None, out: _Out) -> int:
    text = _stdin(stdin).read(MOST_CONTENT + 2).removesuffix("\n") if chosen.text == "-" else chosen.text
    rules = _rules(chosen)
    with _kept(chosen.memory_file) as file:
        memory = _with_flags(_noted(file, rules, chosen), chosen.flag)
        answer = _ask(chosen, rules, text, memory, chosen.speaker)
        after = answer["memory"]
        if not chosen.state:
            del answer["memory"]
        out.write(json.dumps(answer, ensure_ascii=False, indent=1) + "\n")
        if file is not None:
            file.put(after)
    return 0


def _dialogue(chosen: argparse.Namespace, stdin: TextIO | None, out: _Out) -> int:
    """Each line is a step of its own from memory to memory: nobody waits for the end of a dialogue to use the file."""
    lines, rules = _stdin(stdin), _rules(chosen)
    memory, first = None, True
    chosen.explain = True
    for line in iter(lambda: lines.readline(MOST_CONTENT + 2), ""):
        speaker, text = _spoken(line)
        if not text:
            continue
        with _kept(chosen.memory_file) as file:
            if file is not None:
                memory = _noted(file, rules, chosen) if first else file.memory
            if first:
                memory, first = _with_flags(memory, chosen.flag), False
            answer = _ask(chosen, rules, text, memory, speaker or chosen.speaker)
            memory = answer["memory"]
            out.write(_shown(answer, speaker or chosen.speaker or "?", text))
            if file is not None:
                file.put(memory or {})
    return 0


def _shown(answer: Mapping[str, Any], speaker: str, text: str) -> str:
    flags = ", ".join(flag_name(flag) or "?" for flag in answer["memory"]["flags"])
    said = [f"{speaker}: {text}", f"    memory: {flags or '-'}"]
    for entry in answer.get("abuse", []):
        if "rule" in entry:
            said.append(f"    ALERT {entry['rule']} ({entry['severity']}): {entry['explanation']}")
            said += [f"        {entry['text']}"] if "text" in entry else []
    return "\n".join(said) + "\n"


def _stdin(stream: TextIO | None) -> TextIO:
    stream = stream or sys.stdin
    if stream is None:
        raise Trouble("standard input is closed; there is nothing to read")
    return stream


def _spoken(line: str) -> tuple[str, str]:
    """A line `a: text` as speaker and text; one without a short name, a colon and a blank has no speaker."""
    match = _SPOKEN.match(line)
    return (match[1], (match[2] or "").strip()) if match else ("", line.strip())


def _ask(
    chosen: argparse.Namespace, rules: Watch, text: str, memory: Mapping[str, Any] | None, speaker: str | None
) -> dict[str, Any]:
    settings: dict[str, Any] = {"state": True, "memory": memory, "snippets": chosen.snippets, "explain": chosen.explain}
    if speaker:
        settings["speaker"] = speaker
    russian = any("а" <= letter <= "я" for letter in text.lower())
    settings["explanation_language"] = chosen.explanation_language or ("ru" if russian else "en")
    return parse_json({"language": chosen.language, "content": text, "settings": settings}, watch=rules)


def _rules(chosen: argparse.Namespace) -> Watch:
    """The rules asked for, once every flag named on the command line is known to them. Raises `Trouble`."""
    rules = load(chosen.rules, chosen.off) if chosen.rules or chosen.off else default()
    for ignored in unread(chosen.rules):
        _say(f"{ignored}: not read; words of your own stand in forms.txt beside it")
    known = _known(rules)
    strange = [flag for flag in chosen.flag if flag not in known]
    if strange:
        raise Trouble(f"--flag: no flag of the rules: {_named(strange, known)}")
    return rules


def _known(rules: Watch) -> set[str]:
    return {*rules.kinds, *CODES, *CODES.values(), *CALLER_ONLY}


def _named(flags: Sequence[str], known: set[str]) -> str:
    """Ids with the nearest that there is; what does not look like an id is not repeated."""
    said = []
    for flag in flags:
        near = difflib.get_close_matches(flag[:64], sorted(known), 1)
        said.append((flag if _ID.match(flag) else "(not an id)") + (f" (is it {near[0]}?)" if near else ""))
    return ", ".join(said)


def _noted(file: MemoryFile | None, rules: Watch, chosen: argparse.Namespace) -> dict[str, Any] | None:
    """The memory of the file; flags in it that the rules do not know are kept, and said on stderr."""
    memory = file.memory if file else None
    flags = (memory or {}).get("flags")
    if isinstance(flags, list):
        known = _known(rules)
        strange = [name for name in map(flag_name, flags) if name and name not in known]
        if strange:
            _say(f"{chosen.memory_file}: flags kept that no rule knows: {_named(strange[:8], known)}")
    return memory


@contextlib.contextmanager
def _kept(path: Path | None) -> Iterator[MemoryFile | None]:
    if path is None:
        yield None
    else:
        with locked(path) as file:
            yield file


def _with_flags(memory: dict[str, Any] | None, flags: Sequence[str]) -> dict[str, Any] | None:
    kept = memory or {}
    there = kept.get("flags") or []
    if not flags or not isinstance(there, list):  # what is no list is refused with its path
        return memory
    return {**kept, "flags": [*there, *flags]}


def _lint(chosen: argparse.Namespace, out: _Out) -> int:
    against = read_text(chosen.against, MOST_AGAINST).splitlines() if chosen.against else None
    complaints = [f"{place}: not read; words of your own stand in forms.txt" for place in unread(chosen.folder)]
    complaints += lint(chosen.folder, against)
    for complaint in complaints:
        out.write(complaint + "\n")
    many = "complaint" if len(complaints) == 1 else "complaints"
    out.write(f"{len(complaints)} {many}\n" if complaints else "nothing to complain about\n")
    return 1 if complaints else 0
