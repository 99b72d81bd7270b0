"""`nitka chat`: one conversation in the terminal.

Rules:
* At a terminal there is a first screen, a prompt, and the answer as it comes. From a pipe each line is a turn or a
  command, and only what is answered is printed, as plain text.
* Leaving in the middle of an answer, by Ctrl-C or by the end of the process, keeps what was shown, marked interrupted.
* A turn that fails is said in one line and the conversation goes on; from a pipe the exit code tells of it.
* What is typed is kept in the conversation and nowhere else: there is no history file.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from nitka import sync
from nitka.cli.door import Door, ModelName, ModelTimeout, StoreUrl, UserId, own_folders, paths_of, store_of, visible
from nitka.cli.facts import facts_table
from nitka.cli.why import receipt_table
from nitka.config import Settings
from nitka.errors import ModelError, NitkaError
from nitka.types import Erased, Receipt
from nitka.world import random_bytes, system_clock

CHANNEL = "terminal"

app = typer.Typer()


@app.command()
def chat(
    ctx: typer.Context,
    *,
    user: UserId = "me",
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="Which conversation; by default the latest one held here."),
    ] = None,
    store: StoreUrl = None,
    model: ModelName = None,
    timeout: ModelTimeout = None,
    system: Annotated[str, typer.Option("--system", metavar="TEXT", help="The system prompt.")] = "",
    budget: Annotated[
        int | None, typer.Option("--budget", metavar="TOKENS", help="Of one request, the answer's room included.")
    ] = None,
) -> None:
    """Hold a conversation in the terminal.

    From a pipe each line is a turn, and what is answered is plain text.
    """
    door: Door = ctx.obj
    settings = door.settings(store, timeout=timeout)
    if store is None:
        own_folders(settings)
    new_key = not settings.root_keys and not settings.key_file.exists()
    name = model or settings.model
    with (
        leaving_properly(),
        sync.Nitka.open(settings.store, model=name, settings=settings) as nitka,
    ):
        how = {"system": system, "budget": budget}
        talk = Talk(door=door, nitka=nitka, user=user, session=session or "", how=how)
        if door.interactive:
            welcome(door, settings, name, new_key=new_key)
        elif new_key:
            door.tell(door.texts.key_made.format(path=settings.key_file))
        if not session:
            talk.session = _latest(talk) or new_session()
        talk.run()
    if talk.failed and not door.interactive:
        raise typer.Exit(1)


@contextlib.contextmanager
def leaving_properly() -> Any:
    """Lets the end of the process close what is open: an answer that is under way is kept as interrupted."""

    def leave(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def welcome(door: Door, settings: Settings, model: str, *, new_key: bool) -> None:
    """The first screen: what answers, where things lie, what to try."""
    texts = door.texts
    door.say(texts.offline if model == "offline" else texts.online.format(model=model))
    places = paths_of(store_of(settings))
    door.say(texts.where_data.format(path=short(places[0].resolve()) if places else "PostgreSQL"))
    key = texts.key_made if new_key else texts.where_key
    door.say(texts.key_environment if settings.root_keys else key.format(path=short(settings.key_file)))
    door.say(texts.try_this)


def short(path: Path) -> str:
    """The path as a person writes it, from the home folder on."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def new_session() -> str:
    """A name for a session: its time, for whoever reads an export, and some chance."""
    return f"{system_clock():%Y-%m-%d-%H%M%S}-{random_bytes(2).hex()}"


def _latest(talk: Talk) -> str | None:
    """The latest conversation held here, if there is one; a person is told that it goes on."""
    infos = talk.nitka.sessions(talk.user)
    if lost := sum(info.damaged for info in infos):  # told, and no reason not to talk
        talk.failed = True
        talk.door.tell(talk.door.texts.error.format(text=talk.door.texts.damaged_sessions.format(count=lost)))
    latest = next((info for info in infos if info.channel == CHANNEL and not info.damaged), None)
    if latest is None:
        return None
    if talk.door.interactive:
        talk.door.say(talk.door.texts.continued.format(count=latest.messages))
    return latest.id


@dataclass(slots=True, kw_only=True)
class Talk:
    """A conversation that is being held: who, which, and the last receipt."""

    door: Door
    nitka: sync.Nitka
    user: str
    session: str
    how: Mapping[str, Any]
    receipt: Receipt | None = None
    failed: bool = False
    ended: bool = False
    told: bool = False  # that memory is behind

    def run(self) -> None:
        """Takes lines until there are no more."""
        while not self.ended and (line := self.line(f"{self.door.texts.you}> ")) is not None:
            if line.strip():
                self.take(line)
            if self.door.notes.take("folds") and not self.told:
                self.door.tell(self.door.texts.fold_failed)
                self.told = True

    def line(self, prompt: str) -> str | None:
        """The next line, or None at the end. Ctrl-C at the prompt drops the line."""
        if not self.door.interactive:
            line = sys.stdin.readline()
            return line.rstrip("\n") if line else None
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  # gives `input` its editing; not everywhere there
        while True:
            try:
                return input(prompt)
            except EOFError:
                self.door.say("")
                return None
            except KeyboardInterrupt:
                self.door.say(f"\n{self.door.texts.leave_hint}")

    def take(self, line: str) -> None:
        """One line: a command or a turn. What goes wrong is told, and the conversation goes on."""
        word = " ".join(line.split())
        try:
            if line.startswith("/") and not line.startswith("//"):
                COMMANDS.get(word, unknown)(self)
            else:
                self.answer(line.removeprefix("/") if line.startswith("//") else line)
        except NitkaError as error:
            self.failed = True
            self.door.fail(error)
        except KeyboardInterrupt:
            if not self.door.interactive:
                raise
            self.door.say(f"\n{self.door.texts.leave_hint}")

    def answer(self, text: str) -> None:
        """One turn, shown as it comes. Ctrl-C stops it and keeps what was shown."""
        now = system_clock().astimezone()
        stream = self.nitka.say(self.user, self.session, text=text, stream=True, channel=CHANNEL, at=now, **self.how)
        shown = False
        try:
            with stream as pieces:
                self.receipt = pieces.receipt
                if self.door.interactive:
                    self.door.out.print("nitka> ", end="", style="bold", markup=False)
                for piece in pieces:
                    self.show(piece)
                    shown = True
        except KeyboardInterrupt:
            self.door.say("\n" + (self.door.texts.stopped if stream.interrupted else self.door.texts.stopped_early))
            if not self.door.interactive:
                raise
        except ModelError as error:
            if shown or self.door.interactive:
                self.door.say("")
            self.failed = True
            self.door.fail(error, instead=self.door.texts.broke_off if stream.interrupted else "")
        else:
            self.door.say("")

    def show(self, piece: str) -> None:
        self.door.out.out(visible(piece), end="", highlight=False)
        self.door.out.file.flush()

    def agrees(self, question: str) -> bool:
        """Asks; whatever is not a yes is a no. From a pipe the next line is the answer."""
        said = self.line(question)
        agreed = said is not None and said.strip().lower() in self.door.texts.yes.split()
        if not agreed:
            self.door.say(self.door.texts.kept)
        return agreed


def catch_up(talk: Talk) -> None:
    """In a pipe, lets memory learn first: a person takes longer to type than it does, a pipe does not."""
    if not talk.door.interactive:
        talk.nitka.settle(talk.user)


def renew(talk: Talk) -> None:
    """/new"""
    catch_up(talk)
    talk.session = new_session()
    talk.receipt = None
    talk.door.say(talk.door.texts.new_session)


def why(talk: Talk) -> None:
    """/why"""
    if talk.receipt is None:
        talk.door.say(talk.door.texts.no_receipt)
    else:
        talk.door.out.print(receipt_table(talk.receipt, talk.door.texts))


def summary(talk: Talk) -> None:
    """/summary"""
    texts, found = talk.door.texts, talk.nitka.summary(talk.user, talk.session)
    for line in found.lines:
        talk.door.say(f"* {line.text}")
    foot = texts.summary_foot.format(last=found.cursor - 1, tokens=found.tokens)
    talk.door.say(foot if found.cursor else texts.no_summary)


def facts(talk: Talk) -> None:
    """/facts"""
    catch_up(talk)
    known = talk.nitka.facts(talk.user)
    if known:
        talk.door.out.print(facts_table(known, talk.door.texts))
    else:
        talk.door.say(talk.door.texts.no_facts)


def forget_session(talk: Talk) -> None:
    """/forget"""
    if talk.agrees(talk.door.texts.confirm_session):
        tell_erased(talk.door, talk.nitka.forget(talk.user, session=talk.session))
        talk.session, talk.receipt = new_session(), None


def forget_user(talk: Talk) -> None:
    """/forget me"""
    infos = talk.nitka.sessions(talk.user)
    messages = sum(info.messages for info in infos)
    if talk.agrees(talk.door.texts.confirm_user.format(sessions=len(infos), messages=messages)):
        tell_erased(talk.door, talk.nitka.forget(talk.user))
        talk.session, talk.receipt = new_session(), None


def tell_erased(door: Door, erased: Erased) -> bool:
    """Says truly what went; False when there was nothing."""
    counts = {"sessions": erased.sessions, "messages": erased.messages, "lines": erased.lines, "facts": erased.facts}
    if not any((erased.users, *counts.values())):
        door.say(door.texts.nothing_to_forget)
        return False
    door.say(door.texts.forgotten.format(**counts))
    if erased.handles:
        door.say(door.texts.forgotten_handles.format(handles=erased.handles))
    if erased.still_said:
        door.say(door.texts.still_said.format(turns=erased.still_said))
    if erased.erasure == "pending":
        door.say(door.texts.pending)
    return True


def leave(talk: Talk) -> None:
    """/quit"""
    talk.ended = True


def list_commands(talk: Talk) -> None:
    """/help"""
    talk.door.say(talk.door.texts.help)


def unknown(talk: Talk) -> None:
    """Anything else that begins with a slash: rather said than sent by mistake."""
    talk.failed = True
    talk.door.say(talk.door.texts.unknown_command)


COMMANDS: Mapping[str, Callable[[Talk], None]] = {
    "/new": renew,
    "/why": why,
    "/summary": summary,
    "/facts": facts,
    "/forget": forget_session,
    "/forget me": forget_user,
    "/help": list_commands,
    "/quit": leave,
}
