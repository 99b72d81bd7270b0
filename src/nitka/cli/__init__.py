"""The command line: `nitka chat`, `export`, `forget`, `settle`, `keys`, `backup`, `doctor`.

Each group of commands is a module with a `typer` app of its own, added below. Commands talk to `nitka.sync` and hold
no logic of a conversation.
"""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any, cast

import typer

from nitka.cli import chat, data, doctor, keep
from nitka.cli.door import Door
from nitka.cli.texts import texts_for

DEBUG = "--debug"

app = typer.Typer(
    help="Conversation state for models that remember nothing.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def prepare(
    ctx: typer.Context,
    locale: Annotated[
        str,
        typer.Option(
            "--language",
            metavar="CODE",
            envvar=["LC_ALL", "LC_MESSAGES", "LANG"],
            show_envvar=False,
            help="The language of what is said here: en or ru; by default that of the locale.",
        ),
    ] = "en",
    debug: Annotated[
        bool, typer.Option(DEBUG, help="Show the traceback of an error; it may stand anywhere in the line.")
    ] = False,
) -> None:
    door = ctx.ensure_object(Door)
    door.texts = texts_for(locale)
    door.debug |= debug


app.add_typer(chat.app)
app.add_typer(data.app)
app.add_typer(keep.app)
app.add_typer(keep.keys, name="keys")
app.add_typer(doctor.app)
# A group of commands from elsewhere is added here in the same way.


def main(args: list[str] | None = None) -> None:
    """Runs one command and ends the process with its exit code. Whatever goes wrong is one line on stderr.

    Ctrl-C (130) and a reader that has had enough (1) end it quietly; typer and rich see to that.
    """
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        cast(Any, stream).reconfigure(errors="replace")  # bytes that are no text, letters the terminal cannot show
    words = sys.argv[1:] if args is None else args
    door = Door(debug=DEBUG in words)
    log = logging.getLogger("nitka")
    log.addHandler(door.notes)
    log.propagate = False
    try:
        code = typer.main.get_command(app).main(
            [word for word in words if word != DEBUG], prog_name="nitka", standalone_mode=False, obj=door
        )
    except Exception as error:  # noqa: BLE001  # the one place where a person is told instead
        code = door.fail(error)
    finally:
        log.removeHandler(door.notes)
        log.propagate = True
    sys.exit(code if isinstance(code, int) else 0)
