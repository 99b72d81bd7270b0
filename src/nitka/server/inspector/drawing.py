"""What is drawn: numbers in, shapes out. Pure. A picture is `WIDE` units wide; the page stretches it to its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nitka.server.inspector.flags import Noticed
from nitka.server.inspector.past import Log
from nitka.types import Request

WIDE = 1_000.0
TALL = 200.0  # of a chart
MARGIN = 40.0  # of a lane, at each end
LABEL = 110.0  # what the number of a row takes on a narrow screen
GAP = 0.15  # of a column, between it and the next


class Part(NamedTuple):
    """A stretch of a bar. `kind` chooses its colour, `block` is the number of the block it stands for."""

    kind: str
    x: float
    width: float
    tokens: int
    block: int | None = None


class Share(NamedTuple):
    """One layer of a request: what it takes, and how many blocks that are."""

    kind: str
    tokens: int
    blocks: int


class Stretch(NamedTuple):
    """Rows `first..last` and what became of them."""

    kind: str
    first: int
    last: int
    x: float
    width: float


class Column(NamedTuple):
    """One turn of a chart: a stack of layers from the ground up, in units of the picture."""

    seq: int
    x: float
    width: float
    parts: tuple[tuple[str, float, float], ...]  # layer, y of its top, height
    folded: tuple[float, float]  # y of its top, height, in a picture of its own
    sent: int
    folded_tokens: int


class Dot(NamedTuple):
    """A row at its place along a conversation. `level` is the line on which its number has room under it."""

    seq: int
    x: float
    level: int = 0


class Lane(NamedTuple):
    """One flag along a conversation."""

    flag: str
    words: str
    dots: list[Dot]


def budget_bar(request: Request) -> list[Part]:
    """The request to the scale of its budget: its layers, what is free, and what is kept for the answer."""
    receipt = request.receipt
    scale = WIDE / max(1, receipt.budget)
    parts: list[Part] = []
    used = 0
    for share in shares(request):
        parts.append(Part(share.kind, used * scale, share.tokens * scale, share.tokens))
        used += share.tokens
    end = receipt.used * scale
    free, kept = receipt.room - receipt.used, receipt.budget - receipt.room
    parts.append(Part("free", end, free * scale, free))
    parts.append(Part("answer_room", receipt.room * scale, kept * scale, kept))
    return parts


def close_up(request: Request) -> list[Part]:
    """The blocks of the request to the scale of what it used."""
    scale = WIDE / max(1, request.receipt.used)
    parts: list[Part] = []
    x = 0.0
    for number, block in enumerate(request.blocks):
        parts.append(Part(block.layer, x, block.tokens * scale, block.tokens, number))
        x += block.tokens * scale
    return parts


def shares(request: Request) -> list[Share]:
    """The layers of a request in their order."""
    found: dict[str, tuple[int, int]] = {}
    for block in request.blocks:
        tokens, blocks = found.get(block.layer, (0, 0))
        found[block.layer] = (tokens + block.tokens, blocks + 1)
    return [Share(kind, *sums) for kind, sums in found.items()]


def rows_strip(log: Log, seq: int, request: Request | None, cursor: int) -> list[Stretch]:
    """Which rows before a turn were folded, compacted, or word for word, or are forgotten since; and the question."""
    compacted = _compacted(request)
    kinds = [_kind(log, row, cursor, compacted) for row in range(log.first, seq)] + ["question"]
    scale = WIDE / len(kinds)
    strip: list[Stretch] = []
    begin = 0
    for at in range(1, len(kinds) + 1):
        if at == len(kinds) or kinds[at] != kinds[begin]:
            first, last = log.first + begin, log.first + at - 1
            strip.append(Stretch(kinds[begin], first, last, begin * scale, (at - begin) * scale))
            begin = at
    return strip


def _compacted(request: Request | None) -> tuple[int, int]:
    for entry in request.receipt.layer("history") if request is not None else ():
        if entry.outcome == "compacted" and entry.first is not None and entry.last is not None:
            return entry.first, entry.last
    return -1, -1


def _kind(log: Log, row: int, cursor: int, compacted: tuple[int, int]) -> str:
    if row in log.damaged:
        return "damaged"
    if row not in log.sizes:
        return "forgotten"
    if row < cursor:
        return "folded"
    return "compacted" if compacted[0] <= row <= compacted[1] else "verbatim"


def chart(turns: Sequence[tuple[int, Request | None, int]]) -> tuple[list[Column], int, int]:
    """Columns for turns (first row, request, tokens folded before it), and the highest of both numbers."""
    sent = [request.receipt.used if request else 0 for _, request, _ in turns]
    most, most_folded = max([1, *sent]), max([1, *(folded for _, _, folded in turns)])
    width = WIDE / max(1, len(turns))
    columns = []
    for at, (seq, request, folded) in enumerate(turns):
        height = folded / most_folded * TALL
        columns.append(
            Column(
                seq=seq,
                x=at * width + width * GAP / 2,
                width=width * (1 - GAP),
                parts=tuple(_stack(shares(request), most) if request else ()),
                folded=(TALL - height, height),
                sent=sent[at],
                folded_tokens=folded,
            )
        )
    return columns, most, most_folded


def _stack(layers: Sequence[Share], most: int) -> Iterable[tuple[str, float, float]]:
    y = TALL
    for share in layers:
        height = share.tokens / most * TALL
        y -= height
        yield share.kind, y, height


def dots(seqs: Iterable[int], first: int, end: int) -> list[Dot]:
    """Rows of `[first, end)` along a line, with room at its ends; no number covers another."""
    scale = (WIDE - 2 * MARGIN) / max(1, end - first)
    ends: list[float] = []  # of each level: where the next number may stand
    found = list[Dot]()
    for seq in sorted(set(seqs)):
        x = MARGIN + (seq - first + 0.5) * scale
        level = next((at for at, free in enumerate(ends) if x >= free), len(ends))
        ends[level:] = [x + LABEL, *ends[level + 1 :]]
        found.append(Dot(seq, x, level))
    return found


def lanes(noticed: Iterable[Noticed], first: int, end: int) -> list[Lane]:
    """A lane for each flag, in the order in which they came up."""
    found: dict[tuple[str, str], list[int]] = {}
    for row in noticed:
        for flag in row.flags:
            found.setdefault(flag, []).append(row.seq)
    return [Lane(flag, words, dots(rows, first, end)) for (flag, words), rows in found.items()]


def sampled(seqs: Sequence[int], most: int) -> list[int]:
    """At most so many of them, evenly spread, the last among them."""
    if len(seqs) <= most:
        return list(seqs)
    return [seqs[(at + 1) * len(seqs) // most - 1] for at in range(most)]
