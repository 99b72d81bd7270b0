"""How what was found is shown: word for word, with speaker, date and row. Pure.

Passages come from the rows themselves, never from an index; a hit whose row is not there any more is no hit. Hits of
neighbouring rows are shown together, and where room is left a hit brings the other row of its turn along. Nothing is
reworded: what is too long is quoted in part, with marks where words are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date

import numpy as np

from nitka.conversation import Said
from nitka.layers.recall import Bearing, Hit, Stretch, quote, together
from nitka.layers.recall.passages import local_day
from nitka.layers.recall.search import share
from nitka.types import Passage, Recalled, Tag

PAIR_CHARS = 160  # of the other row of a turn,
LOOKED_AT = 4_000  # from its beginning: it is a help, and may be a book
FRAME_TOKENS = 8  # of a passage, about: what sets it apart from the next
LINE_TOKENS = 4  # of a row in it: who speaks, the line's end

Count = Callable[[str], int]


def alive(hits: Sequence[Hit], rows: Mapping[int, Said]) -> list[Hit]:
    """The hits whose rows are there, where the index says they are."""
    return [
        hit
        for hit in hits
        if hit.n in rows
        and rows[hit.n].message.seq == hit.seq
        and rows[hit.n].tag.hex() == hit.session
        and hit.end <= len(rows[hit.n].message.text)
    ]


def within(
    hits: Sequence[Hit], rows: Mapping[int, Said], budget: int | None, count: Count, *, frame: int = FRAME_TOKENS
) -> list[Hit]:
    """The hits that fit into a budget, best first, each with the characters it may show. The budget is in what `count`
    counts, of which each hit takes `frame` more.
    """
    sizes = np.array([hit.end - hit.start for hit in hits])
    if budget is None or not hits:
        return [replace(hit, allowed=int(size)) for hit, size in zip(hits, sizes, strict=True)]
    texts = [rows[hit.n].message.text[hit.start : hit.end] for hit in hits]
    dense = max(1, sum(map(count, texts))) / int(sizes.sum())  # tokens a character
    margin = round(frame / dense)
    kept, allowed = share(sizes + margin, int(budget / dense))
    pairs = zip(hits[:kept], allowed, strict=True)
    return [replace(hit, allowed=size - margin) for hit, size in pairs if size > margin]


def as_passages(
    hits: Sequence[Hit], rows: Mapping[int, Said], bearing: Bearing, *, session: Tag, budget: int, count: Count
) -> tuple[Passage, ...]:
    """The hits (best first, with their allowances) as passages of a request, best first, within a budget of tokens."""
    by_place = {(said.tag.hex(), said.message.seq): said for said in rows.values()}
    rank = {hit: place for place, hit in enumerate(hits)}
    groups = sorted(together(hits), key=lambda group: min(rank[hit] for hit in group.hits))
    shown: list[tuple[Passage, int]] = []
    used = 0
    for group in groups:
        passage, cost = _passage(group, by_place, bearing, session, count, pairs=False)
        if used + cost > budget:
            break
        shown.append((passage, cost))
        used += cost
    for place, group in enumerate(groups[: len(shown)]):
        fuller, cost = _passage(group, by_place, bearing, session, count, pairs=True)
        more = cost - shown[place][1]
        if used + more <= budget:
            shown[place] = (fuller, cost)
            used += more
    return tuple(passage for passage, _ in shown)


def _passage(
    group: Stretch, rows: Mapping[tuple[str, int], Said], bearing: Bearing, session: Tag, count: Count, *, pairs: bool
) -> tuple[Passage, int]:
    """A stretch as a passage, and its tokens: counted row by row, since rows come again and their sizes are known."""
    lines: list[str] = []
    shown: list[Said] = []
    cost = FRAME_TOKENS
    for seq in range(group.first, group.last + 1):
        said = rows.get((group.session, seq))
        if said is None:
            continue
        hits = sorted((hit for hit in group.hits if hit.seq == seq), key=lambda hit: hit.start)
        if hits:
            text = _quoted(said.message.text, hits, bearing)
        elif pairs:
            text = quote(said.message.text[:LOOKED_AT], bearing, PAIR_CHARS)
        else:
            continue
        lines.append(f"{said.message.role}: {text}")
        cost += count(text) + LINE_TOKENS
        shown.append(said)
    here = group.session == session.hex()
    first, last = shown[0].message.seq, shown[-1].message.seq
    day = date.fromordinal(local_day(shown[0].message.at, shown[0].message.zone)).isoformat()
    numbers = (f"#{first}" if first == last else f"#{first}–{last}") if here else ""
    passage = Passage(
        "\n".join(lines),
        label=f"{day} {numbers}".strip(),
        first=first if here else None,
        last=last if here else None,
    )
    return passage, cost + count(passage.label)


def _quoted(text: str, hits: Sequence[Hit], bearing: Bearing) -> str:
    """What may be shown of a row, with a mark wherever words are missing."""
    pieces: list[str] = []
    end = 0
    for hit in hits:
        piece = quote(text[hit.start : hit.end], bearing, hit.allowed)
        pieces.append(f"… {piece}" if text[end : hit.start].strip() else piece)
        end = hit.end
    return " ".join(pieces) + (" …" if text[end:].strip() else "")


def as_recalled(hits: Sequence[Hit], rows: Mapping[int, Said], bearing: Bearing) -> tuple[Recalled, ...]:
    """The hits as the caller sees them, best first."""
    return tuple(
        Recalled(
            text=quote(rows[hit.n].message.text[hit.start : hit.end], bearing, hit.allowed),
            session=rows[hit.n].session,
            seq=hit.seq,
            role=rows[hit.n].message.role,
            at=rows[hit.n].message.at,
            score=hit.score,
        )
        for hit in hits
    )
