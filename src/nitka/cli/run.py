"""Runs one of the commands, and tells a person what went wrong."""

from __future__ import annotations

import contextlib
import logging
import os
import sys

import typer

from nitka.cli.commands import DEBUG, app
from nitka.cli.door import Door


def run(words: list[str]) -> int:
    """The exit code of the command that the words name."""
    door = Door(debug=DEBUG in words)
    log = logging.getLogger("nitka")
    log.addHandler(door.notes)
    log.propagate = False
    try:
        code = typer.main.get_command(app).main(
            [word for word in words if word != DEBUG], prog_name="nitka", standalone_mode=False, obj=door
        )
        sys.stdout.flush()
    except Exception as error:  # noqa: BLE001  # the one place where a person is told instead
        code = door.fail(error)
        if isinstance(error, OSError):
            _give_up_output()
    finally:
        log.removeHandler(door.notes)
        log.propagate = True
    return code if isinstance(code, int) else 0


def _give_up_output() -> None:
    """Lets what could not be written go, or the interpreter tries again at its end and says so in its own way."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
