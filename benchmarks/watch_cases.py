"""Score the watch on written conversations with the scorer that belongs to them.

    python benchmarks/watch_cases.py CASES.jsonl ... --scorer score_watch.py [--half even|odd] [--between 5] [--out
  fired.jsonl]

Each conversation is fed message by message through the memory, serialised to JSON between any two. A line of the
input is `{"id", "lang", "expect", "turns": [{"s", "t"}]}`; `--half` keeps the ids whose CRC-32 is even or odd;
`--between` puts so many harmless messages between the turns. Rules that need an assistant are given one: in a
conversation with `kind` pos_llm, speaker B has role assistant.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nitka.watch import parse_json

HARMLESS = {
    "en": ("ok", "haha", "nice weather today", "I had soup for lunch"),
    "ru": ("ок", "ага", "погода хорошая", "на обед был суп"),
}


def fired(case: Mapping[str, Any], between: int) -> list[dict[str, Any]]:
    """The alerts of one conversation, `index` being the message of the conversation as written."""
    alerts: list[dict[str, Any]] = []
    memory: dict[str, Any] | None = None
    for index, turn, counted in _turns(case, between):
        settings = {"state": True, "memory": memory, "speaker": _speaker(case, turn["s"])}
        language = "*" if counted and case["lang"] not in ("en", "ru") else "en|ru"
        answer = parse_json({"language": language, "content": turn["t"], "settings": settings})
        memory = json.loads(json.dumps(answer["memory"]))
        alerts += [
            {"index": index, "rule": entry["rule"], "severity": entry["severity"]}
            for entry in answer.get("abuse", ())
            if "rule" in entry
        ]
    return alerts


def _turns(case: Mapping[str, Any], between: int) -> Iterator[tuple[int, Mapping[str, str], bool]]:
    harmless = HARMLESS["ru" if case["lang"] == "ru" else "en"]
    for index, turn in enumerate(case["turns"]):
        yield index, turn, True
        for filler in range(between if index + 1 < len(case["turns"]) else 0):
            yield index, {"s": "AB"[filler % 2], "t": harmless[filler % len(harmless)]}, False


def _speaker(case: Mapping[str, Any], name: str) -> dict[str, str]:
    told = case.get("kind") == "pos_llm" and name == "B"
    return {"id": name, "role": "assistant"} if told or name == "assistant" else {"id": name}


def _cases(paths: list[Path], half: str) -> Iterator[dict[str, Any]]:
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            odd = zlib.crc32(case["id"].encode()) % 2
            if half == "all" or odd == (half == "odd"):
                case["id"] = case["id"] if case["id"].endswith(case["lang"]) else f"{case['id']}-{case['lang']}"
                yield case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--scorer", type=Path, required=True)
    parser.add_argument("--half", choices=("all", "even", "odd"), default="all")
    parser.add_argument("--between", type=int, default=0)
    parser.add_argument("--out", type=Path)
    wanted = parser.parse_args()
    cases = list(_cases(wanted.paths, wanted.half))
    with tempfile.TemporaryDirectory() as folder:
        out = wanted.out or Path(folder) / "fired.jsonl"
        chosen = Path(folder) / "cases.jsonl"
        chosen.write_text("".join(json.dumps(c) + "\n" for c in cases), encoding="utf-8")
        lines = [json.dumps({"id": c["id"], "alerts": fired(c, wanted.between)}) + "\n" for c in cases]
        out.write_text("".join(lines), encoding="utf-8")
        subprocess.run([sys.executable, str(wanted.scorer), str(chosen), str(out)], check=True)


if __name__ == "__main__":
    main()
