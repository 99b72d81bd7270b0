"""How fast the watch is, and how small. On a busy machine everything takes longer."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.watch_talks import Turn
from nitka.watch import parse_json

Row = tuple[str, ...]
_SHORT = 60
_NASTY = {
    "letters": "a",
    "digits": "7",
    "nested brackets": "([{",
    "combining marks": "e\u0301\u0316",
    "English": "Where are your parents now? I will call you later, she said nothing at all. ",
    "Russian": "Где сейчас твои родители? Пришли код из смс, только никому не говори. ",
}


def pace(talks: Sequence[tuple[Sequence[Turn], str]], passes: int = 6) -> Iterator[Row]:
    """Per message, request and answer read and written as JSON, memory carried along; of each message the best of a few
    passes, so that other work on the machine counts as little as may be.
    """
    texts = [turn.text for turns, _ in talks for turn in turns]
    best = [min(times) for times in zip(*(list(_spent(talks)) for _ in range(passes)), strict=True)]
    short = [(spent, text) for spent, text in zip(best, texts, strict=True) if len(text) <= _SHORT]
    for name, chosen in (
        (f"messages a second, up to {_SHORT} characters", short),
        ("of any length", list(zip(best, texts, strict=True))),
    ):
        size = statistics.mean(len(text) for _, text in chosen)
        rate = len(chosen) / sum(spent for spent, _ in chosen)
        yield name, f"{rate:,.0f}", f"one core; {len(chosen):,} messages of {size:.0f} characters on average"
    best.sort()
    yield "a message, half of them", f"{best[len(best) // 2] * 1e3:.2f} ms", "p50"
    yield "a message, all but one in twenty", f"{best[len(best) * 19 // 20] * 1e3:.2f} ms", "p95"


def _spent(talks: Sequence[tuple[Sequence[Turn], str]]) -> Iterator[float]:
    for turns, language in talks:
        memory: Any = None
        for turn in turns:
            settings = {"state": True, "memory": memory, "speaker": turn.speaker}
            request = json.dumps({"language": language, "content": turn.text, "settings": settings})
            begun = time.perf_counter()
            answer = json.dumps(parse_json(json.loads(request)))
            yield time.perf_counter() - begun
            memory = json.loads(answer)["memory"]


def start(times: int = 5) -> Iterator[Row]:
    """A process of its own that answers one message, English and Russian ready."""
    cpu, wall = [], []
    for _ in range(times):
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-m", "nitka.cli", "parse", "привет, hello"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall.append(time.perf_counter() - begun)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    yield "cold `nitka parse`", f"{min(cpu):.2f} s", f"CPU; {min(wall):.2f} s by the clock"
    done = subprocess.run([sys.executable, "-c", _PEAK], check=True, capture_output=True, text=True)
    yield "resident memory", f"{int(done.stdout) / 1e6:.0f} MB", "both languages, one message answered"


# Linux lets a new process inherit the peak of its parent in ru_maxrss; /proc does not. macOS counts bytes, Linux KB.
_PEAK = """
import pathlib, resource, sys, nitka.watch
nitka.watch.parse("привет, hello")
status = pathlib.Path("/proc/self/status")
if status.exists():
    peak = int(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))) * 1024
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(peak)
"""


def memories(talks: Sequence[tuple[Sequence[Turn], str]], at: Sequence[int] = (10, 100, 500)) -> Iterator[Row]:
    """Bytes of memory, as JSON without blanks, after so many messages of ordinary talk."""
    sizes: dict[int, list[int]] = {n: [] for n in at}
    for turns, language in talks:
        memory: Any = None
        for number, turn in enumerate(turns, 1):
            settings = {"state": True, "memory": memory, "speaker": turn.speaker}
            memory = parse_json({"language": language, "content": turn.text, "settings": settings})["memory"]
            if number in sizes:
                sizes[number].append(len(json.dumps(memory, separators=(",", ":"), ensure_ascii=False).encode()))
    for number, found in sizes.items():
        if found:
            yield f"memory after {number} messages", f"{statistics.median(found):.0f} bytes", f"at most {max(found)}"


def long_texts(size: int = 100_000) -> Iterator[Row]:
    """One message of 100,000 code points, beside one of half that length: linear time shows as 2."""
    for name, unit in _NASTY.items():
        half, whole = (_once((unit * (n // len(unit) + 1))[:n]) for n in (size // 2, size))
        yield f"100,000 code points: {name}", f"{whole:.2f} s", f"{whole / half:.1f} times that of 50,000"


def _once(text: str) -> float:
    best = 9e9
    for _ in range(5):
        begun = time.process_time()
        parse_json({"language": "*", "content": text, "settings": {"state": True, "words": True}})
        best = min(best, time.process_time() - begun)
    return best
