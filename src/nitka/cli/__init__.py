"""The command line. Here only what every start needs: the commands are loaded when one is run."""

from __future__ import annotations

import sys
from typing import Any, cast

WATCH_COMMANDS = ("parse", "watch")


def main(args: list[str] | None = None) -> None:
    """Runs one command and ends the process with its exit code. Whatever goes wrong is one line on stderr.

    Ctrl-C (130) and a reader that has had enough (1) end it quietly; typer and rich see to that.
    """
    try:
        sys.exit(_code(args))
    except KeyboardInterrupt:  # while modules are still loaded; later typer sees to it
        sys.exit(130)


def _code(args: list[str] | None) -> int:
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is not None:  # closed
            cast(Any, stream).reconfigure(errors="replace")  # bytes that are no text, letters the terminal cannot show
    words = sys.argv[1:] if args is None else args
    if words[:1] and words[0] in WATCH_COMMANDS:
        from nitka.watch.cli import main as watch  # one message is answered in a fraction of a second without the rest

        return watch(words)
    from nitka.cli.run import run

    return run(words)
