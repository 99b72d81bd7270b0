"""Writing a choice down: messages, the block of each layer, and the entry of each candidate.

Rules:
* Every candidate leaves an entry, whether it is sent or not.
* A message that several layers share is counted as it is sent; `settle` spreads the difference to the pieces' own
  prices, so that entries and blocks add up to the messages exactly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from nitka.layers.summary import shrink
from nitka.request.blocks import SEPARATOR, is_blank, quote_lines, section
from nitka.request.budget import Choice, Prices
from nitka.request.draft import Draft, Row, summary_text
from nitka.request.history import History
from nitka.request.labels import Labels
from nitka.request.parts import Count, Means
from nitka.tokens import MESSAGE_TOKENS, Counter, count_message
from nitka.types import Block, ChatMessage, Entry, Layer, Line, Outcome, Summary

NO_ROOM = "no room"
TOO_LARGE = "too large"
BLANK = "blank"
TURN_LEAST = 8  # tokens below which no line of a turn summary is tried


class Piece(NamedTuple):
    """One layer of a shared message. Its block is priced by its entries."""

    block: Block
    entries: Sequence[Entry]


@dataclass(slots=True)
class Sheet:
    """What is being written. Lives only inside one `pack`."""

    counter: Counter
    messages: list[ChatMessage] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    asked: int = 0

    @property
    def used(self) -> int:
        return sum(entry.tokens for entry in self.entries)

    def share(self, content: str, pieces: Sequence[Piece]) -> None:
        """One system message that several layers share."""
        message = {"role": "system", "content": content}
        self.messages.append(message)
        prices = settle(
            [entry.tokens for piece in pieces for entry in piece.entries], count_message(self.counter, message)
        )
        at = 0
        for piece in pieces:
            entries = [replace(entry, tokens=prices[at + nth]) for nth, entry in enumerate(piece.entries)]
            at += len(entries)
            self.entries += entries
            self.blocks.append(replace(piece.block, tokens=sum(entry.tokens for entry in entries)))

    def leave_out(self, layer: Layer, count: int, why: str) -> None:
        if count:
            self.entries.append(Entry(layer=layer, outcome="left_out", tokens=0, count=count, why=why))


def settle(prices: Sequence[int], total: int) -> list[int]:
    """Prices that add up to `total`: the first takes the difference; where it would fall below nothing, the next
    help.
    """
    settled = []
    rest = total - sum(prices)
    for tokens in prices:
        share = max(rest, -tokens)
        settled.append(tokens + share)
        rest -= share
    return settled


def write(draft: Draft, prices: Prices, choice: Choice, means: Means) -> Sheet:
    """The request that `choice` asks for."""
    sheet = Sheet(means.counter)
    if draft.tools:
        text = json.dumps(list(draft.tools), ensure_ascii=False, default=str)
        sheet.blocks.append(Block(layer="tools", text=text, tokens=draft.tool_tokens))
        sheet.entries.append(Entry(layer="tools", outcome="sent", tokens=draft.tool_tokens, count=len(draft.tools)))
    _write_lead(sheet, draft, prices, choice, means)
    _write_history(sheet, draft.history, choice.keep)
    _write_data(sheet, draft, choice)
    _write_question(sheet, draft, prices, choice, means)
    if draft.traffic.messages or draft.traffic.left_out:
        _write_traffic(sheet, draft)
    return sheet


def _write_lead(sheet: Sheet, draft: Draft, prices: Prices, choice: Choice, means: Means) -> None:
    """System prompt, profile, summary and turn summary, in one message; no message when there is none of them."""
    pieces: list[Piece] = []
    if draft.system:
        pieces.append(_piece("system", draft.system, 0))  # the first of a message is priced by what is left
    if draft.profile and choice.profile:
        pieces.append(_piece("profile", draft.profile, prices.profile))
    lines = _summary_lines(draft, choice, means.counter.count)
    if text := summary_text(lines, draft.labels):
        pieces.append(_summary_piece(draft, lines, text, means.counter.count))
    if turn := _turn_piece(draft, choice, means):
        pieces.append(turn)
    if pieces:
        sheet.share(_joined([piece.block for piece in pieces]), pieces)
    if draft.profile and not choice.profile:
        sheet.leave_out("profile", 1, NO_ROOM)
    if draft.summary:
        sheet.leave_out("summary", len(draft.lines) - len(lines), NO_ROOM)


def _joined(blocks: Sequence[Block]) -> str:
    """The layers of the leading message; the turn summary belongs to the summary, under its own line."""
    text = blocks[0].text
    for before, block in zip(blocks, blocks[1:], strict=False):
        inside = before.layer == "summary" and block.layer == "turn_summary"
        text += ("\n" if inside else SEPARATOR) + block.text
    return text


def _summary_lines(draft: Draft, choice: Choice, count: Count) -> tuple[Line, ...]:
    """The summary's lines, shrunk when the choice says so."""
    room = choice.summary_room
    if room is None:
        return draft.lines
    if room <= 0:
        return ()
    lines, _ = shrink(Summary(lines=draft.lines), room, lambda text: count(quote_lines(text.splitlines()) + "\n"))
    return lines


def _summary_piece(draft: Draft, lines: Sequence[Line], text: str, count: Count) -> Piece:
    stored = draft.lines[len(draft.lines) - len(lines) :]
    gists = sum(now.form != before.form for now, before in zip(lines, stored, strict=True))
    return _piece(
        "summary",
        text,
        count(SEPARATOR + text),
        count=len(lines),
        rows=(0, draft.cursor - 1) if draft.cursor else None,
        outcome="gist" if gists else "sent",
        why=f"{gists} lines by their gist: {NO_ROOM}" if gists else "",
    )


def _turn_piece(draft: Draft, choice: Choice, means: Means) -> Piece | None:
    """The turn summary of the rows that are not sent word for word; its label stands even when no line fits."""
    rows = draft.history.older(choice.keep)
    if not rows:
        return None
    count = means.counter.count
    lines: list[str] = []
    if choice.turn_room >= TURN_LEAST:
        made = means.compact(
            rows, room=choice.turn_room, count=lambda text: count(quote_lines(text.splitlines()) + "\n")
        )
        lines = [quoted for line in made if (quoted := quote_lines([line.text]))]
    while lines and count("\n".join(lines) + "\n") > choice.turn_room:
        del lines[0]
    text = "\n".join([draft.labels.turn_summary.format(count=len(rows)), *lines])
    tokens = count(SEPARATOR + text)
    return _piece("turn_summary", text, tokens, count=len(lines), rows=(rows[0].seq, rows[-1].seq))


def _write_history(sheet: Sheet, history: History, keep: int) -> None:
    """Rows word for word, and what became of the others."""
    older, kept = history.older(keep), history.kept(keep)
    if older:
        first, last = older[0].seq, older[-1].seq
        sheet.entries.append(
            Entry(layer="history", outcome="compacted", tokens=0, count=len(older), first=first, last=last, why=NO_ROOM)
        )
    for row, chat, tokens in kept:
        sheet.messages.append(chat)
        sheet.blocks.append(Block(layer="history", text=chat["content"], tokens=tokens, first=row.seq, last=row.seq))
    if kept:
        first, last, tokens = kept[0].row.seq, kept[-1].row.seq, history.sums[keep]
        sheet.entries.append(
            Entry(layer="history", outcome="sent", tokens=tokens, count=len(kept), first=first, last=last)
        )


def _write_data(sheet: Sheet, draft: Draft, choice: Choice) -> None:
    """Facts, recalled passages and knowledge in one message, and what became of those that are not in it."""
    rows: tuple[tuple[Layer, Row, Sequence[int]], ...] = (
        ("facts", draft.facts, choice.facts),
        ("recall", draft.recall, choice.recall),
        ("knowledge", draft.knowledge, choice.knowledge),
    )
    pieces = [_section_piece(layer, row, taken, draft.labels) for layer, row, taken in rows if taken]
    if pieces:
        texts = [draft.labels.data, *(piece.block.text for piece in pieces), draft.labels.data_end]
        sheet.share("\n".join(texts), pieces)
    for layer, row, taken in rows:
        if len(taken) < len(row.texts):
            sheet.entries += _missing(layer, row, taken)
        sheet.leave_out(layer, row.blank, BLANK)


def _section_piece(layer: Layer, row: Row, taken: Sequence[int], labels: Labels) -> Piece:
    """One kind of passages under its label. Passages with rows of their own have entries of their own."""
    missing = len(row.texts) - len(taken)
    tail = labels.left_out.format(count=missing) if missing and row.shelf.tail else ""
    text = section(row.label, [row.texts[at] for at in taken], tail)
    extra = row.shelf.head + (row.shelf.tail if tail else 0)
    if not row.has_rows:
        tokens = extra + sum(row.shelf.items[at] for at in taken)
        return _piece(layer, text, tokens, count=len(taken))
    entries = [_passage_entry(layer, row, at, "sent") for at in taken]
    entries[0] = replace(entries[0], tokens=entries[0].tokens + extra)
    return Piece(Block(layer=layer, text=text, tokens=0), entries)


def _passage_entry(layer: Layer, row: Row, at: int, outcome: Outcome, why: str = "") -> Entry:
    first, last = row.rows[at]
    tokens = row.shelf.items[at] if outcome == "sent" else 0
    return Entry(layer=layer, outcome=outcome, tokens=tokens, first=first, last=last, why=why)


def _missing(layer: Layer, row: Row, taken: Sequence[int]) -> list[Entry]:
    """Entries of what was left out: for being too large beside better ones that fit, or for lack of room."""
    last = max(taken, default=-1)
    missing = sorted(set(range(len(row.texts))) - set(taken))
    if row.has_rows:
        return [_passage_entry(layer, row, at, "left_out", TOO_LARGE if at < last else NO_ROOM) for at in missing]
    large = sum(at < last for at in missing)
    counts = ((large, TOO_LARGE), (len(missing) - large, NO_ROOM))
    return [Entry(layer=layer, outcome="left_out", tokens=0, count=count, why=why) for count, why in counts if count]


def _write_question(sheet: Sheet, draft: Draft, prices: Prices, choice: Choice, means: Means) -> None:
    text, tokens = draft.question, prices.question
    outcome: Outcome = "sent"
    if choice.question_room is not None:
        room = choice.question_room - MESSAGE_TOKENS
        shorter = means.condense(text, room=room, count=means.counter.count)
        if not is_blank(shorter):
            text, outcome = shorter, "condensed"
        tokens = MESSAGE_TOKENS + means.counter.count(text)
    sheet.asked = len(sheet.messages)
    sheet.messages.append({"role": "user", "content": text})
    sheet.blocks.append(Block(layer="question", text=text, tokens=tokens))
    why = "" if outcome == "sent" else NO_ROOM
    sheet.entries.append(Entry(layer="question", outcome=outcome, tokens=tokens, why=why))


def _write_traffic(sheet: Sheet, draft: Draft) -> None:
    traffic = draft.traffic
    for message in traffic.messages:
        sheet.messages.append(message)
        text = json.dumps(dict(message), ensure_ascii=False, default=str)
        sheet.blocks.append(Block(layer="traffic", text=text, tokens=count_message(sheet.counter, message)))
    if traffic.messages:
        done = [f"{traffic.closed} interrupted calls closed"] if traffic.closed else []
        done += [f"{traffic.waiting} calls waiting for a result"] if traffic.waiting else []
        tokens, count = draft.traffic_tokens, len(traffic.messages)
        sheet.entries.append(Entry(layer="traffic", outcome="sent", tokens=tokens, count=count, why="; ".join(done)))
    for why, count in sorted(traffic.left_out.items()):
        sheet.leave_out("traffic", count, why)


def _piece(
    layer: Layer,
    text: str,
    tokens: int,
    *,
    count: int = 1,
    rows: tuple[int, int] | None = None,
    outcome: Outcome = "sent",
    why: str = "",
) -> Piece:
    first, last = rows or (None, None)
    block = Block(layer=layer, text=text, tokens=tokens, first=first, last=last)
    entry = Entry(layer=layer, outcome=outcome, tokens=tokens, count=count, first=first, last=last, why=why)
    return Piece(block, (entry,))
