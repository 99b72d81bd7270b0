"""Where a command enters: its settings, its language, the store it opens, and how it ends.

Rules:
* An error is one line on stderr and a non-zero exit; the traceback is shown only with `--debug`.
* Only a chat makes a store. A command that finds none says so and makes nothing, neither files nor keys.
* Folders of our own are made with mode 0700. Folders that the caller names are the caller's to make.
* What nitka logs is kept back and said in our own words, or shown as it is with `--debug`.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from nitka import sync
from nitka.cli.texts import ENGLISH, Texts
from nitka.config import Settings
from nitka.errors import BadInput, KeyMissing, ModelError, NitkaError, StoreError, WrongKey
from nitka.models.ports import ChatModel
from nitka.store.choose import choose_store
from nitka.store.port import Store
from nitka.store.sqlite import SqliteStore
from nitka.types import Limits

WIDTH = 100  # of plain text, which has no terminal to ask
STORES = {"NITKA_KEYS", "NITKA_STORE"}  # variables that name one
REFUSED = (401, 403)  # by a server that wants another key
_UNSEEN = frozenset(("Cc", "Cs"))

StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="The store: sqlite:///relative.db, sqlite:////absolute.db or postgresql://user@host/database.",
    ),
]
UserId = Annotated[str, typer.Option("--user", metavar="ID", help="Whose conversations.")]
Whose = Annotated[str, typer.Option("--user", metavar="ID", help="Whose data.")]
ModelName = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help='The model: "offline", or "openai:NAME".')
]
FoldModel = Annotated[
    str | None,
    typer.Option("--fold-model", metavar="NAME", help="What writes summaries and facts; the same by default."),
]
ModelTimeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.1,
        help="How long the model may be silent before it is asked again, three times at most; 60 by default.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask first.")]


class Notes(logging.Handler):
    """Keeps what nitka logs until a command says it in its own words."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def take(self, module: str) -> bool:
        """Whether that module logged something since it was last asked."""
        found = any(record.module == module for record in self.records)
        self.records = [record for record in self.records if record.module != module]
        return found


@dataclass(slots=True)
class Door:
    """What a run of the command line knows; carried by typer's context."""

    texts: Texts = ENGLISH
    debug: bool = False
    keys_from_environment: bool = False
    notes: Notes = field(default_factory=Notes)
    out: Console = field(default_factory=lambda: console(stderr=False))
    err: Console = field(default_factory=lambda: console(stderr=True))

    @property
    def interactive(self) -> bool:
        """A person sits at a terminal on both ends."""
        return sys.stdin.isatty() and sys.stdout.isatty()

    def settings(self, store: str | None = None, *, timeout: float | None = None) -> Settings:
        """The environment's settings, with the store and the timeout that were named. Raises `BadInput`."""
        settings = Settings.read()
        self.keys_from_environment = bool(settings.root_keys)
        return replace(settings, store=store or settings.store, timeout=timeout or settings.timeout)

    @contextmanager
    def opened(
        self, settings: Settings, *, model: str | ChatModel = "offline", limits: Limits | None = None
    ) -> Iterator[sync.Nitka]:
        """A nitka over a store that is there already. Raises what opening raises."""
        self.files(settings)
        watch = settings.serving.watch  # else what is due for it would be dropped as work of a watch that is off
        with sync.Nitka.open(settings.store, model=model, watch=watch, settings=settings, limits=limits) as nitka:
            yield nitka

    def files(self, settings: Settings) -> Store:
        """The store, unopened; where it would be a file and there is none yet, the command ends. Raises `BadInput`."""
        store = store_of(settings)
        if not all(path.exists() for path in paths_of(store)[:1]):
            self.stop(self.texts.no_store)
        return store

    def say(self, text: str) -> None:
        """A line of the result."""
        self.out.print(visible(text), markup=False, highlight=False, soft_wrap=True)

    def tell(self, text: str) -> None:
        """A line beside the result."""
        self.err.print(visible(text), markup=False, highlight=False, soft_wrap=True)

    def stop(self, text: str) -> NoReturn:
        """Ends the command with one line on stderr and exit code 1."""
        self.tell(self.texts.error.format(text=text))
        raise typer.Exit(1)

    def fail(self, error: BaseException, *, instead: str = "") -> int:
        """Says what went wrong in one line, `instead` of what the error's class says; returns the exit code."""
        if self.debug:
            traceback.print_exception(error)
        self.tell(self.line(error, instead=instead))
        return int(getattr(error, "exit_code", 1))

    def remedy(self, error: NitkaError) -> str:
        """Under which name the hints say what to do about an error."""
        if isinstance(error, ModelError) and error.status in REFUSED:
            return "api_key"
        if isinstance(error, WrongKey | KeyMissing) and self.keys_from_environment:
            return "root_keys"
        if (
            isinstance(error, BadInput)
            and "Environment: " in str(error)
            and STORES & set(re.findall(r"\w+", str(error)))
        ):
            return "store_url"
        return type(error).__name__

    def line(self, error: BaseException, *, instead: str = "") -> str:
        """The line for an error. Errors of ours and of the option parser speak for themselves, others by their type:
        what they say may quote a user's text.
        """
        usage = getattr(error, "format_message", None)
        if usage is not None:
            return self.texts.error.format(text=self._usage(error) or usage())
        if isinstance(error, OSError) and error.errno is not None:
            return self.texts.error.format(text=f"{os.strerror(error.errno)}.")
        if not isinstance(error, NitkaError):
            return self.texts.unexpected.format(name=type(error).__name__)
        hint = self.texts.hints.get(self.remedy(error), "")
        ours = instead or self.texts.errors.get(type(error).__name__, "")
        text = reworded(error, ours)
        for english, own in self.texts.details.items():
            text = text.replace(english, own)
        return self.texts.error.format(text=f"{text} {hint}".strip())

    def _usage(self, error: BaseException) -> str:
        """An error of the option parser in our words, with the option; "" where there are none."""
        named = getattr(error, "param", None)
        name = getattr(error, "option_name", "") or (max(named.opts, key=len) if named is not None else "")
        kinds = (self.texts.usage.get(one.__name__, "") for one in type(error).__mro__)
        return next(filter(None, kinds), "").format(name=name)


def reworded(error: NitkaError, ours: str) -> str:
    """What an error says, its class in our words where we have some, the details as they are. That an argument cannot
    be used goes without saying where the details say what it should be.
    """
    doc, text = (type(error).__doc__ or "").strip().split("\n", maxsplit=1)[0], str(error)
    if ours:
        return text.replace(doc, ours, 1)
    return text.removeprefix(doc).strip() or text if type(error) is BadInput else text


def store_of(settings: Settings) -> Store:
    """The store of the settings, unopened. Raises `BadInput` for a URL of no known kind."""
    return choose_store(settings.store, wait=Limits().wait_seconds, keys=settings.keys_store)


def paths_of(store: Store) -> list[Path]:
    """The files of the data and of the keys; none where a server keeps them."""
    return [Path(path) for path in store.paths] if isinstance(store, SqliteStore) else []


def own_folders(settings: Settings) -> None:
    """Makes the folder of the store, and those above it that are missing, for nobody but the user."""
    folders = [folder for path in paths_of(store_of(settings))[:1] for folder in path.parents]
    try:
        for missing in reversed([folder for folder in folders if not folder.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError(f"Its folder cannot be made: {os.strerror(error.errno or 0)}.") from error


def console(*, stderr: bool) -> Console:
    """A console that is plain where nobody looks."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else WIDTH, highlight=False, emoji=False)


def visible(text: str) -> str:
    """The text without control characters: what a user or a model wrote must not drive the terminal."""
    return "".join(char if char in "\n\t" or unicodedata.category(char) not in _UNSEEN else "\ufffd" for char in text)


def whole_id(nitka: sync.Nitka, user: str, start: str) -> str:
    """The id of the fact that begins so, if one alone does; else what was given."""
    found = [fact.id for fact in nitka.facts(user, include_past=True) if fact.id.startswith(start.lower())]
    return found[0] if len(found) == 1 else start
