"""Runs one of the commands, and tells a person what went wrong."""

from __future__ import annotations

import logging

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
    except Exception as error:  # noqa: BLE001  # the one place where a person is told instead
        code = door.fail(error)
    finally:
        log.removeHandler(door.notes)
        log.propagate = True
    return code if isinstance(code, int) else 0
