"""The rolling summary: a pure fold step and its views.

Rules (law 4):
* A fold appends lines. Each line was written once, in two forms; after that its bytes never change and no two lines
  are ever joined.
* At the cap the oldest full lines give way to their gist, and only when every line is a gist do the oldest gists go.
* A line goes early only when the fold that reads its replacement writes one: `replaced` without a new line is ignored.
* What a summariser returns is not trusted: newlines, blanks, duplicates, giant lines, positions and ranges that do not
  exist are put right
  here, before anything is stored, so that after every step the summary is within its cap.
* One statement is one line of text. A line's range says which rows it rests on, so that forgetting a row finds every
  line that may hold it.

Doubt: token counts of a joined text are not exactly additive, so every decision counts the joined text itself.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nitka.errors import Damaged
from nitka.types import Line, Proposal, Summary

Count = Callable[[str], int]
Range = tuple[int, int]

FULL_SHARE = 2  # a full line takes at most cap / 2, a gist at most cap / 4: one line never pushes out all others
GIST_SHARE = 4
CUT_MARK = "…"


def advance(summary: Summary, proposal: Proposal, *, cursor: int, cap: int, count: Count, counter: str) -> Summary:
    """The summary after one fold step that read the rows `[summary.cursor, cursor)`.

    `cap` is in tokens of `count`, whose name is `counter`. Raises `ValueError` for a cursor that moves back; never for
    what a model
    proposed. A line whose range leaves the rows of the step, or is upside down, is taken to rest on all of them.
    """
    if cursor < summary.cursor:
        raise ValueError("a cursor never moves back")
    rows = (summary.cursor, max(summary.cursor, cursor - 1))
    added = _usable(proposal.add, rows=rows, present=summary.lines, replaced=proposal.replaced, cap=cap, count=count)
    gone = frozenset(proposal.replaced) if added else frozenset()
    kept = tuple(line for at, line in enumerate(summary.lines) if at not in gone)
    lines = _fit(kept + added, room=cap, count=count)
    return _write(summary, lines, cursor=cursor, count=count, counter=counter)


def forget(summary: Summary, first: int, last: int, *, count: Count) -> Summary:
    """The summary without every line whose range meets the rows `first..last`.

    What those lines said of other rows becomes `gaps`, and gaps lose the forgotten rows. `count` is the counter named
    in the summary. The
    cursor stays.
    """
    hit = (first, last)
    gone = [line for line in summary.lines if _meet((line.first, line.last), hit)]
    kept = tuple(line for line in summary.lines if not _meet((line.first, line.last), hit))
    open_rows = [*summary.gaps, *((line.first, line.last) for line in gone)]
    gaps = _merge(piece for rows in open_rows for piece in _without(rows, hit))
    return _write(replace(summary, gaps=gaps), kept, cursor=summary.cursor, count=count, counter=summary.counter)


def expire(summary: Summary, lives: Callable[[Line], bool], *, count: Count) -> Summary:
    """The summary without the lines whose rows live no more. Unlike forgetting this leaves no gaps: what a line said
    of rows that went by age goes with the line's last row. The cursor stays.
    """
    kept = tuple(line for line in summary.lines if lives(line))
    return _write(summary, kept, cursor=summary.cursor, count=count, counter=summary.counter)


def mend(summary: Summary, gap: Range, lines: Sequence[Line], *, cap: int, count: Count, counter: str) -> Summary:
    """The summary with the lines that were written anew for `gap` put in at their place in seq order; the gap is
    closed.

    Raises `ValueError` when there is no such gap: it has been mended, or was forgotten since.
    """
    if gap not in summary.gaps:
        raise ValueError("no such gap")
    added = _usable(lines, rows=gap, present=summary.lines, replaced=(), cap=cap, count=count)
    merged = list(summary.lines)
    for line in added:
        at = next((i for i, present in enumerate(merged) if present.first > line.first), len(merged))
        merged.insert(at, line)
    gaps = tuple(rows for rows in summary.gaps if rows != gap)
    fitted = _fit(tuple(merged), room=cap, count=count)
    return _write(replace(summary, gaps=gaps), fitted, cursor=summary.cursor, count=count, counter=counter)


def shrink(summary: Summary, room: int, count: Count) -> tuple[tuple[Line, ...], bool]:
    """The lines for one request with at most `room` tokens, and whether they differ from what is stored.

    Nothing is stored.
    """
    lines = _fit(summary.lines, room=room, count=count)
    return lines, lines != summary.lines


def to_json(summary: Summary) -> dict[str, Any]:
    """A plain dict of JSON values; `from_json` gives the same summary back."""
    return {
        "lines": [
            {
                "full": line.full,
                "gist": line.gist,
                "first": line.first,
                "last": line.last,
                "form": line.form,
                "offline": line.offline,
            }
            for line in summary.lines
        ],
        "cursor": summary.cursor,
        "version": summary.version,
        "counter": summary.counter,
        "tokens": summary.tokens,
        "gaps": [list(rows) for rows in summary.gaps],
    }


def from_json(state: Mapping[str, Any]) -> Summary:
    """The summary that `to_json` wrote. Unknown fields are passed over (a newer version wrote them).

    Raises `Damaged`.
    """
    try:
        return Summary(
            lines=tuple(_line(line) for line in state.get("lines", ())),
            cursor=_whole(state["cursor"]),
            version=_whole(state["version"]),
            counter=_text(state.get("counter", "")),
            tokens=_whole(state.get("tokens", 0)),
            gaps=tuple((_whole(first), _whole(last)) for first, last in state.get("gaps", ())),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as cause:
        raise Damaged("The state of a summary has another shape.") from cause


def _line(state: Mapping[str, Any]) -> Line:
    full, gist, first, last = state["full"], state["gist"], state["first"], state["last"]
    form = state.get("form", "full")
    # One check for all: a request reads some two dozen lines.
    if not (type(full) is type(gist) is str and type(first) is type(last) is int and form in ("full", "gist")):
        raise TypeError("not a line")
    return Line(full=full, gist=gist, first=first, last=last, form=form, offline=bool(state.get("offline", False)))


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("not a whole number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _write(summary: Summary, lines: tuple[Line, ...], *, cursor: int, count: Count, counter: str) -> Summary:
    tokens = _size(lines, count)
    return replace(summary, lines=lines, cursor=cursor, version=summary.version + 1, counter=counter, tokens=tokens)


def _size(lines: Sequence[Line], count: Count) -> int:
    return count("\n".join(line.text for line in lines)) if lines else 0


def _fit(lines: tuple[Line, ...], *, room: int, count: Count) -> tuple[Line, ...]:
    """Oldest full lines to their gist until it fits; when all are gists, the oldest go."""
    fitted = list(lines)
    for at, line in enumerate(fitted):
        if line.form == "gist":
            continue
        if _size(fitted, count) <= room:
            return tuple(fitted)
        fitted[at] = replace(line, form="gist")
    start = 0
    while start < len(fitted) and _size(fitted[start:], count) > room:
        start += 1
    return tuple(fitted[start:])


def _usable(
    lines: Sequence[Line], *, rows: Range, present: Sequence[Line], replaced: Sequence[int], cap: int, count: Count
) -> tuple[Line, ...]:
    """Proposed lines as they may be stored: one line of text each, not blank, not too long, said once, resting on
    rows of the step.
    """
    gone = frozenset(replaced)
    said = {text for at, line in enumerate(present) if at not in gone for text in (line.full, line.gist)}
    usable = []
    for line in lines:
        clean = _clean(line, rows=rows, cap=cap, count=count)
        if clean is not None and clean.full not in said:
            said.update((clean.full, clean.gist))
            usable.append(clean)
    return tuple(usable)


def _clean(line: Line, *, rows: Range, cap: int, count: Count) -> Line | None:
    full, gist = _one_line(line.full), _one_line(line.gist)
    full = _cut(full or gist, room=cap // FULL_SHARE, count=count)
    gist = _cut(gist or full, room=cap // GIST_SHARE, count=count)
    if not full or not gist:
        return None
    if count(gist) > count(full):
        gist = full
    inside = rows[0] <= line.first <= line.last <= rows[1]
    first, last = (line.first, line.last) if inside else rows
    return replace(line, full=full, gist=gist, first=first, last=last, form="full")


def _one_line(text: str) -> str:
    visible = (c if c.isspace() or unicodedata.category(c) not in ("Cc", "Cs") else " " for c in text)
    return " ".join("".join(visible).split())


def _cut(text: str, *, room: int, count: Count) -> str:
    """The longest beginning of `text` that fits, ended at a word where it has words, with a mark; empty when not
    even that fits.
    """
    if count(text) <= room:
        return text
    low, high = 0, min(len(text), 64 * max(room, 0))  # the start alone is ever tried, however long the text
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle] + CUT_MARK) <= room else (low, middle - 1)
    head = text[:low]
    words = head.rpartition(" ")[0] if low < len(text) and not text[low : low + 1].isspace() else head
    cut = (words or head).rstrip(" ,;:–—-") + CUT_MARK
    return cut if cut != CUT_MARK and count(cut) <= room else ""


def _meet(a: Range, b: Range) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def _without(rows: Range, hit: Range) -> list[Range]:
    """What is left of `rows` outside `hit`, in order."""
    pieces = [(rows[0], min(rows[1], hit[0] - 1)), (max(rows[0], hit[1] + 1), rows[1])]
    return [piece for piece in pieces if piece[0] <= piece[1]] if _meet(rows, hit) else [rows]


def _merge(pieces: Iterable[Range]) -> tuple[Range, ...]:
    """Ranges in order, those that touch or overlap joined."""
    merged: list[Range] = []
    for first, last in sorted(pieces):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)
