"""A receipt as a table with bars: what the model was given, and what it was not. Pure but for the drawing by `rich`."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from nitka.cli.texts import Texts, said
from nitka.types import Entry, Receipt

BAR = 30  # characters for the largest entry
EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(tokens: int, largest: int) -> str:
    """A bar to scale, in eighths of a character; whatever is there at all shows at least one."""
    if tokens <= 0 or largest <= 0:
        return ""
    eighths = max(1, round(8 * BAR * tokens / largest))
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()


def rows(entry: Entry) -> str:
    """The messages an entry speaks of: "0–23", or nothing."""
    if entry.first is None or entry.last is None:
        return ""
    return str(entry.first) if entry.first == entry.last else f"{entry.first}–{entry.last}"


def remark(entry: Entry, texts: Texts) -> str:
    """What became of it, and why, where it is not simply sent whole."""
    outcome = texts.outcomes[entry.outcome].format(count=entry.count)
    return ": ".join(part for part in (outcome, said(texts, entry.why) if entry.why else "") if part)


def receipt_table(receipt: Receipt, texts: Texts) -> Group:
    """The receipt, ready to print. Its numbers add up: the last row is the sum of those above it."""
    title = texts.why_title.format(used=receipt.used, room=receipt.room, budget=receipt.budget)
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, pad_edge=False)
    what, tokens, messages = texts.why_head
    table.add_column(what, no_wrap=True)
    table.add_column(tokens, justify="right", no_wrap=True)
    table.add_column(messages, no_wrap=True)
    table.add_column("")
    largest = max((entry.tokens for entry in receipt.entries), default=0)
    for entry in receipt.entries:
        drawn = Text.assemble((bar(entry.tokens, largest), "cyan"), " ", (remark(entry, texts), "yellow"))
        table.add_row(texts.layers[entry.layer], str(entry.tokens), rows(entry), drawn)
    table.add_row(texts.total, str(receipt.used), style="bold")
    foot = [texts.counted.format(counter=receipt.counter, head=receipt.head)]
    if receipt.cursor:
        foot.append(texts.summary_covers.format(last=receipt.cursor - 1))
    notes = [Text(said(texts, note), style="yellow") for note in receipt.notes]
    return Group(Text(title), table, *(Text(line, style="dim") for line in foot), *notes)
