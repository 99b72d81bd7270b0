"""Writing a choice down: the text of each layer into its message, what became of each candidate into the receipt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from nitka.door import is_blank
from nitka.layers.summary import shrink
from nitka.request.blocks import SEPARATOR, quote_lines, section
from nitka.request.budget import Choice, Prices
from nitka.request.draft import Draft, Row, summary_text
from nitka.request.history import History
from nitka.request.labels import Labels
from nitka.request.parts import Count, Means
from nitka.request.sheet import NO_ROWS, Piece, Share, Sheet
from nitka.tokens import MESSAGE_TOKENS
from nitka.types import Block, Layer, Line, Outcome, Summary

NO_ROOM = "no room"
TOO_LARGE = "too large"
BLANK = "blank"
TURN_LEAST = 8  # tokens below which no line of a turn summary is tried


def write(draft: Draft, prices: Prices, choice: Choice, means: Means) -> Sheet:
    """The request that `choice` asks for."""
    sheet = Sheet(means.counter)
    if draft.tools:
        text = json.dumps(list(draft.tools), ensure_ascii=False, default=str)
        sheet.block("tools", text, draft.tool_tokens)
        sheet.enter("tools", Share(draft.tool_tokens, len(draft.tools)))
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
        pieces.append(Piece("system", draft.system, [Share(0)]))  # the first of a message is priced by what is left
    if draft.profile and choice.profile:
        pieces.append(Piece("profile", draft.profile, [Share(prices.profile)]))
    lines, summary = _summary(draft, prices, choice, means.counter.count)
    pieces += summary
    if turn := _turn_piece(draft, choice, means):
        pieces.append(turn)
    if pieces:
        sheet.share(_joined(pieces), pieces)
    if draft.profile and not choice.profile:
        sheet.leave_out("profile", 1, NO_ROOM)
    if draft.summary:
        sheet.leave_out("summary", len(draft.lines) - len(lines), NO_ROOM)


def _joined(pieces: Sequence[Piece]) -> str:
    """The layers of the leading message; the turn summary belongs to the summary, under its own line."""
    text = pieces[0].text
    for before, piece in pairwise(pieces):
        inside = before.layer == "summary" and piece.layer == "turn_summary"
        text += ("\n" if inside else SEPARATOR) + piece.text
    return text


def _summary(draft: Draft, prices: Prices, choice: Choice, count: Count) -> tuple[tuple[Line, ...], list[Piece]]:
    """The summary's lines that are sent, and their piece if there are any."""
    if choice.summary_room is None or not draft.summary:
        lines, text, tokens = draft.lines, draft.summary, prices.summary
    else:
        lines = _summary_lines(draft, choice.summary_room, count)
        text = summary_text(lines, draft.labels)
        tokens = count(SEPARATOR + text)
    return lines, [_summary_piece(draft, lines, text, tokens)] if text else []


def _summary_lines(draft: Draft, room: int, count: Count) -> tuple[Line, ...]:
    """The summary's lines, shrunk to `room`."""
    if room <= 0:
        return ()
    lines, _ = shrink(Summary(lines=draft.lines), room, lambda text: count(quote_lines(text.splitlines()) + "\n"))
    return lines


def _summary_piece(draft: Draft, lines: Sequence[Line], text: str, tokens: int) -> Piece:
    stored = draft.lines[len(draft.lines) - len(lines) :]
    gists = sum(now.form != before.form for now, before in zip(lines, stored, strict=True))
    rows = (0, draft.cursor - 1) if draft.cursor else NO_ROWS
    outcome: Outcome = "gist" if gists else "sent"
    why = f"{gists} lines by their gist: {NO_ROOM}" if gists else ""
    return Piece("summary", text, [Share(tokens, len(lines), rows, outcome, why)], rows)


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
    span = (rows[0].seq, rows[-1].seq)
    return Piece("turn_summary", text, [Share(count(SEPARATOR + text), len(lines), span)], span)


def _write_history(sheet: Sheet, history: History, keep: int) -> None:
    """Rows word for word, and what became of the others."""
    older, kept = history.older(keep), history.kept(keep)
    if older:
        sheet.enter("history", Share(0, len(older), (older[0].seq, older[-1].seq), "compacted", NO_ROOM))
    sheet.messages += [chat for _, chat, _ in kept]
    sheet.blocks += [Block("history", chat["content"], tokens, row.seq, row.seq) for row, chat, tokens in kept]
    if kept:
        sheet.enter("history", Share(history.sums[keep], len(kept), (kept[0].row.seq, kept[-1].row.seq)))


def _write_data(sheet: Sheet, draft: Draft, choice: Choice) -> None:
    """Facts, recalled passages and knowledge in one message, and what became of those that are not in it."""
    rows: tuple[tuple[Layer, Row, Sequence[int]], ...] = (
        ("facts", draft.facts, choice.facts),
        ("recall", draft.recall, choice.recall),
        ("knowledge", draft.knowledge, choice.knowledge),
    )
    pieces = [_section_piece(layer, row, taken, draft.labels) for layer, row, taken in rows if taken]
    if pieces:
        texts = [draft.labels.data, *(piece.text for piece in pieces), draft.labels.data_end]
        sheet.share("\n".join(texts), pieces)
    for layer, row, taken in rows:
        if len(taken) < len(row.texts):
            for share in _missing(row, taken):
                sheet.enter(layer, share)
        sheet.leave_out(layer, row.blank, BLANK)


def _section_piece(layer: Layer, row: Row, taken: Sequence[int], labels: Labels) -> Piece:
    """One kind of passages under its label. Passages with rows of their own have entries of their own."""
    missing = len(row.texts) - len(taken)
    tail = labels.left_out.format(count=missing) if missing and row.shelf.tail else ""
    text = section(row.label, [row.texts[at] for at in taken], tail)
    extra = row.shelf.head + (row.shelf.tail if tail else 0)
    if row.has_rows:
        shares = [Share(row.shelf.items[at], rows=row.rows[at]) for at in taken]
        shares[0] = shares[0]._replace(tokens=shares[0].tokens + extra)
    else:
        shares = [Share(extra + sum(row.shelf.items[at] for at in taken), len(taken))]
    return Piece(layer, text, shares)


def _missing(row: Row, taken: Sequence[int]) -> list[Share]:
    """What was left out: for being too large beside better ones that fit, or for lack of room."""
    last = max(taken, default=-1)
    missing = sorted(set(range(len(row.texts))) - set(taken))
    if row.has_rows:
        return [Share(0, 1, row.rows[at], "left_out", TOO_LARGE if at < last else NO_ROOM) for at in missing]
    large = sum(at < last for at in missing)
    counts = ((large, TOO_LARGE), (len(missing) - large, NO_ROOM))
    return [Share(0, count, outcome="left_out", why=why) for count, why in counts if count]


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
    sheet.block("question", text, tokens)
    sheet.enter("question", Share(tokens, outcome=outcome, why="" if outcome == "sent" else NO_ROOM))


def _write_traffic(sheet: Sheet, draft: Draft) -> None:
    traffic = draft.traffic
    for message, tokens in zip(traffic.messages, draft.traffic_sizes, strict=True):
        sheet.messages.append(message)
        text = json.dumps(dict(message), ensure_ascii=False, default=str)
        sheet.block("traffic", text, tokens)
    if traffic.messages:
        done = [f"{traffic.closed} interrupted calls closed"] if traffic.closed else []
        done += [f"{traffic.waiting} calls waiting for a result"] if traffic.waiting else []
        sheet.enter("traffic", Share(sum(draft.traffic_sizes), len(traffic.messages), why="; ".join(done)))
    for why, count in sorted(traffic.left_out.items()):
        sheet.leave_out("traffic", count, why)
