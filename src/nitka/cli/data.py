"""`nitka export` and `nitka forget`: what a person may ask for about his own data."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from nitka import sync
from nitka.cli.chat import tell_erased
from nitka.cli.door import Door, StoreUrl, Whose, Yes, visible, whole_id
from nitka.cli.markdown import to_markdown
from nitka.errors import BadInput

app = typer.Typer()


class Format(StrEnum):
    """How an export is written."""

    jsonl = "jsonl"
    markdown = "markdown"


class What(StrEnum):
    """How much is exported."""

    conversation = "conversation"
    all = "all"


@app.command()
def export(  # noqa: PLR0917  # options of a command line have no order
    ctx: typer.Context,
    user: Whose,
    format: Annotated[
        Format, typer.Option("--format", help="JSON, one record a line, or a text to read.")
    ] = Format.jsonl,
    what: Annotated[
        What, typer.Option("--what", help="What was said, or also what was made from it.")
    ] = What.conversation,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Where to; by default the standard output.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over the file if it is there.")] = False,
    store: StoreUrl = None,
) -> None:
    """Give out everything that was said.

    Conversation by conversation, oldest first.
    """
    door: Door = ctx.obj
    if output is not None and not force and os.path.lexists(output):
        door.stop(door.texts.file_exists.format(path=output))
    bad: list[str] = []
    count = 0
    with door.opened(door.settings(store)) as nitka:
        records = _watched(nitka.export(user, what=what.value), bad)
        readable = (visible(piece) for piece in to_markdown(records, door.texts))
        pieces = readable if format is Format.markdown else _lines(records)
        with _target(output) as file:
            for piece in pieces:
                file.write(piece)
                count += 1
            if not count:
                door.stop(door.texts.nothing_stored)
    if output is not None:
        door.tell(door.texts.written.format(path=output))
    if bad:
        door.stop(door.texts.unreadable_rows.format(places=", ".join(bad)))


def _watched(records: Iterable[dict[str, Any]], bad: list[str]) -> Iterator[dict[str, Any]]:
    """The records as they are; remembers the places of those that do not open: "2" is the second conversation itself,
    "2:7" its message 7, "2:summary" what was made from it.
    """
    session, number = None, 0
    for record in records:
        whole = record.get("damaged") and not record.keys() - {"session", "damaged"}
        if whole or record.get("session") != session:
            session, number = record.get("session"), number + 1
        if record.get("damaged"):
            what = record.get("seq", next((key for key, value in record.items() if key in MADE and value is None), ""))
            bad.append(f"{number}:{what}" if what != "" else str(number))
        yield record


MADE = ("summary", "watch", "profile", "fact", "link")


def _lines(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for record in records:
        yield json.dumps(record, ensure_ascii=False) + "\n"


@contextmanager
def _target(output: Path | None) -> Iterator[TextIO]:
    """The standard output, or a private file that is put in place when it is whole: what was there stays until then,
    and for good where something goes wrong. Through a link the file behind it is written; a device as it is.
    """
    if output is None:
        yield sys.stdout
        return
    output = output.resolve()
    aside = output.with_name(f".{output.name}.part")
    try:
        if output.exists() and not output.is_file() and not output.is_dir():
            with open(output, "w", encoding="utf-8") as device:
                yield device
            return
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            yield file
        os.replace(aside, output)
    except OSError as error:
        raise BadInput(f"The file cannot be written: {os.strerror(error.errno or 0)}.") from error
    finally:
        aside.unlink(missing_ok=True)


@app.command()
def forget(  # noqa: PLR0917  # options of a command line have no order
    ctx: typer.Context,
    user: Whose,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Only this conversation.")] = None,
    turn: Annotated[
        int | None, typer.Option("--turn", metavar="N", help="Only the turn that message N of the session belongs to.")
    ] = None,
    fact: Annotated[str | None, typer.Option("--fact", metavar="ID", help="Only this fact.")] = None,
    about: Annotated[
        str | None, typer.Option("--about", metavar="NAME", help="Only what is known about a named other.")
    ] = None,
    with_turns: Annotated[bool, typer.Option("--with-turns", help="With a fact: also the turns that say it.")] = False,
    yes: Yes = False,
    store: StoreUrl = None,
) -> None:
    """Forget a user, a conversation, a turn or a fact.

    Or all that is known about a named other. For good, with everything that was made from it.
    """
    door: Door = ctx.obj
    with door.opened(door.settings(store)) as nitka:
        if turn is not None and session is None:
            raise BadInput("A turn is named by --session and --turn together.")
        what: dict[str, Any] = {
            "session": session,
            "turn": turn,
            "fact": fact and whole_id(nitka, user, fact),
            "about": about,
        }
        if not yes and not agrees(door, _question(door, nitka, user, what)):
            door.say(door.texts.kept)
            raise typer.Exit(1)
        if not tell_erased(door, nitka.forget(user, with_turns=with_turns, **what)):
            raise typer.Exit(1)


def _question(door: Door, nitka: sync.Nitka, user: str, what: Mapping[str, Any]) -> str:
    """What is asked before forgetting."""
    for name in ("turn", "session", "fact", "about"):
        if what[name] is not None:
            return str(getattr(door.texts, f"confirm_{name}"))
    infos = nitka.sessions(user)
    return door.texts.confirm_user.format(sessions=len(infos), messages=sum(info.messages for info in infos))


def agrees(door: Door, question: str) -> bool:
    """Asks a person at a terminal; whatever is not a yes is a no. Where there is nobody to ask the command ends."""
    if not door.interactive:
        door.stop(door.texts.ask_yes)
    try:
        return input(question).strip().lower() in door.texts.yes.split()
    except EOFError:
        return False
