"""`nitka facts`: what is known of a user, where it comes from, and how a person corrects it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from nitka.cli.door import Door, StoreUrl, Whose, visible, whole_id
from nitka.cli.texts import Texts
from nitka.errors import BadInput
from nitka.types import Fact

app = typer.Typer()

SHOWN = 8  # characters of a fact's id; the beginning of one names it as long as no other begins so


@app.command()
def facts(  # noqa: PLR0917  # options of a command line have no order
    ctx: typer.Context,
    user: Whose,
    about: Annotated[
        str | None, typer.Option("--about", metavar="NAME", help='Only about a named other; "user" is the user.')
    ] = None,
    past: Annotated[bool, typer.Option("--past", help="Also former values, and what was taken back.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON record a line.")] = False,
    set_: Annotated[
        str | None, typer.Option("--set", metavar="SLOT=VALUE", help="Set one by hand: home.city=Leeds.")
    ] = None,
    retract: Annotated[
        str | None, typer.Option("--retract", metavar="ID", help="Switch one off; it stays as history.")
    ] = None,
    store: StoreUrl = None,
) -> None:
    """Show what is known of a user, or correct it.

    Each fact with its id and the message it comes from. To forget one for good: `nitka forget --fact ID`.
    """
    door: Door = ctx.obj
    with door.opened(door.settings(store)) as nitka:
        if set_ is not None:
            slot, value = slot_and_value(set_)
            nitka.set_fact(user, slot, value, about=about or "user")
        if retract is not None and not nitka.retract_fact(user, whole_id(nitka, user, retract)):
            door.stop(door.texts.no_such_fact)
        known = nitka.facts(user, about=about, include_past=past)
    if as_json:
        for fact in known:
            door.out.file.write(json.dumps(asdict(fact), ensure_ascii=False, default=str) + "\n")
    elif known:
        door.out.print(facts_table(known, door.texts))
    else:
        door.say(door.texts.no_facts)


def slot_and_value(text: str) -> tuple[str, str]:
    """Raises `BadInput`."""
    slot, mark, value = text.partition("=")
    if not mark:
        raise BadInput("A fact is set as SLOT=VALUE.")
    return slot.strip(), value.strip()


def facts_table(known: Sequence[Fact], texts: Texts) -> Table:
    """The facts, ready to print."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, pad_edge=False)
    for head in texts.facts_head:
        table.add_column(head, overflow="fold")
    for fact in known:
        style = "" if fact.current else "dim strike"
        who = "" if fact.about == "user" else fact.about
        said = fact.statement if fact.current else f"{fact.statement} ({texts.taken_back})"
        table.add_row(*cells(fact.id[:SHOWN], who, fact.slot, said, *origin(fact, texts)), style=style)
        for past in fact.past:
            former = f"{past.statement} ({texts.former})"
            table.add_row(*cells("", "", "", former, f"{past.last_seen:%Y-%m-%d}", *place(past)), style="dim")
    return table


def cells(*texts: str) -> list[Text]:
    """Texts of a user's as cells: nothing in them is taken for markup or for the terminal's."""
    return [Text(visible(text)) for text in texts]


def origin(fact: Fact, texts: Texts) -> list[str]:
    """When it was last said, how often, and where it was said first."""
    where = texts.by_hand if fact.by_hand and fact.session is None else "".join(place(fact))
    times = f" ×{fact.confirmations}" if fact.confirmations > 1 else ""
    return [f"{fact.last_seen:%Y-%m-%d}{times}", where]


def place(said: Any) -> list[str]:
    """The message that said it."""
    return [f"{said.session}:{said.seq}" if said.session is not None else ""]
