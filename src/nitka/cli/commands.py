"""The commands, those of the watch among them.

Each group of commands is a module with a `typer` app of its own, added below. Commands talk to `nitka.sync` and hold
no logic of a conversation.
"""

from __future__ import annotations

from typing import Annotated

import typer

from nitka.cli import chat, copy, data, demo, doctor, facts, keep, serve, worker
from nitka.cli.door import Door
from nitka.cli.texts import is_spoken, texts_for

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
    source = ctx.get_parameter_source("locale")
    if source is not None and source.name == "COMMANDLINE" and not is_spoken(locale):  # a locale may be any
        raise typer.BadParameter("it is en or ru.", ctx=ctx, param_hint="--language")
    door.texts = texts_for(locale)
    door.debug |= debug


app.add_typer(chat.app)
app.add_typer(data.app)
app.add_typer(facts.app)
app.add_typer(keep.app)
app.add_typer(copy.app)
app.add_typer(keep.keys, name="keys")
app.add_typer(doctor.app)
app.add_typer(serve.app)
app.add_typer(worker.app)
app.add_typer(demo.app)


@app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True}, add_help_option=False)
def parse(ctx: typer.Context) -> None:
    """Read a message or a dialogue; print what the watch noticed."""
    raise typer.Exit(_watch(["parse", *ctx.args]))


@app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True}, add_help_option=False)
def watch(ctx: typer.Context) -> None:
    """Check a folder of the watch's rules."""
    raise typer.Exit(_watch(["watch", *ctx.args]))


def _watch(words: list[str]) -> int:
    from nitka.watch.cli import main  # here, since lexicons and patterns take half a second that no chat should wait

    return main(words)
