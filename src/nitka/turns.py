"""The script of a turn: check what was handed in, open, build the request, write the two rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Literal, NoReturn

from nitka import conversation, forgetting, log
from nitka.conversation import Opened, Vault
from nitka.door import as_moment, as_user, as_zone, clean_text, cut, sound
from nitka.errors import BadInput, StoreBusy, StoreError
from nitka.folds import Folder
from nitka.layers.facts import Category
from nitka.log import Appended, Draft
from nitka.remembering import REACHES, Reach, Remembered, Remembering, Wanted
from nitka.request.assemble import pack, refit
from nitka.request.parts import Means, Parts
from nitka.store.port import Look
from nitka.turn import Turn
from nitka.types import Budget, ChatMessage, Limits, Passage, Person, Request, SessionInfo
from nitka.vault.codec import key_tag
from nitka.vault.keychain import id_bytes
from nitka.watching import Watching
from nitka.world import Clock, random_bytes
from nitka.writing import Writing

Private = bool | Literal["reads"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The arguments of one turn, checked."""

    user: Person
    session: str
    text: str
    key: bytes
    at: datetime
    zone: str = ""
    channel: str = ""
    system: str = ""
    knowledge: tuple[Passage, ...] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    budget: Budget
    private: Private = False
    replaces: int | None = None
    language: str = ""
    recall: Reach = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Opens and writes turns. Holds what is the same for all of them, and nobody's data."""

    vault: Vault
    folder: Folder
    watching: Watching
    remembering: Remembering
    means: Means
    limits: Limits
    clock: Clock
    redact: Callable[[str], str]
    excluded: frozenset[Category] = frozenset()
    writing: Writing = field(default_factory=Writing)

    def ask(
        self,
        user: str | Person,
        session: str,
        *,
        text: str,
        key: str | None,
        at: datetime | None,
        zone: str,
        channel: str,
        system: str = "",
        knowledge: Sequence[str | Passage] = (),
        tools: Sequence[Mapping[str, Any]] = (),
        budget: int | Budget | None = None,
        private: Private = False,
        replaces: int | None = None,
        language: str = "",
        recall: Reach = "session",
    ) -> Ask:
        """Checks the arguments. Raises `BadText`, `BadId`, `BadInput`."""
        id_bytes(session, "session id")
        return Ask(
            user=as_user(user),
            session=session,
            text=self._clean(text, "message"),
            key=random_bytes(16) if key is None else b"key:" + id_bytes(key, "turn key"),
            at=as_moment(at, self.clock()),
            zone=as_zone(zone, at),
            channel=self._clean(channel, "channel") if channel else "",
            system=self._clean(system, "system prompt") if system else "",
            knowledge=_passages(knowledge),
            tools=tools,
            budget=self._budget(budget),
            private=_privacy(private),
            replaces=first_of_turn(replaces),
            language=language,
            recall=_reach(recall),
        )

    async def open(self, ask: Ask) -> Turn:
        """Reads what there is and packs the request. Raises `KeyReused`, `Forgotten`, `OverBudget`, `Damaged`,
        `StoreError`.
        """
        await self.writing.over(ask.user, ask.session)
        opened = await self._peek(ask) if ask.private else await self._look(ask, self.limits.backlog)
        if opened is not None and opened.known:
            tag = key_tag(opened.thread.owner, opened.thread.tag, ask.key)
            _, answer = log.same_turn(opened.pair, tag, self.redacted(ask.text))
            turn = Turn(None, opened=opened, stored=answer.message.text, refit=_nothing_to_refit)
            turn.seq, turn.interrupted = answer.message.seq - 1, answer.message.interrupted
            return turn
        if ask.replaces is not None and opened is not None and ask.replaces >= opened.top:
            raise BadInput(f"There is no row {ask.replaces} to replace; the session's next row is {opened.top}.")
        past = await self._past(ask, opened)
        parts, sizes = _parts(ask, opened, past), opened.sizes if opened else {}
        means = self.means if opened is None else self.means.counting(opened.thread.owner.recent.counting)
        request = pack(parts, ask.budget, means, sizes=sizes)

        def again(messages: Sequence[ChatMessage]) -> Request:
            return refit(parts, request, messages, ask.budget, means, sizes=sizes)

        return Turn(request, opened=opened, refit=again, private=bool(ask.private))

    async def _past(self, ask: Ask, opened: Opened | None) -> Remembered:
        """What outlives the session, as far as it bears on the question."""
        if ask.private is True:
            return Remembered()
        if opened is not None:
            owner, rows = opened.thread.owner, opened.person
        else:
            found = await conversation.find_owner(self.vault, ask.user)
            if found is None:
                return Remembered()
            owner = found
            rows = (await self.vault.store.view(Look(owner=owner.id, person_folds=conversation.PERSON))).person_folds
        wanted = Wanted(
            text=ask.text,
            session=ask.session,
            before=min((message.seq for message in opened.history), default=opened.head) if opened else 0,
            now=ask.at,
            zone=ask.zone,
            recall=ask.recall,
        )
        return await self.remembering.remembered(self.vault, owner, rows, wanted, self.excluded)

    def write(self, ask: Ask, turn: Turn, answer: str) -> Coroutine[Any, Any, None]:
        """Writes the two rows, and lets the turn know what was stored. From this call on, before it is awaited, the
        next turn of the session waits for it.
        """
        return self.writing.now(ask.user, ask.session, self._write(ask, turn, answer))

    async def _write(self, ask: Ask, turn: Turn, answer: str) -> None:
        assert turn.opened is not None
        if turn.interrupted:  # it was handed out already, and cannot be refused any more
            answer = cut(answer, self.limits.message_bytes)
        stored = await self._append(ask, turn.opened, answer, interrupted=turn.interrupted)
        turn.seq, turn.text = stored.answer.message.seq - 1, stored.answer.message.text
        turn.interrupted = stored.answer.message.interrupted  # another delivery may have been first
        turn.alerts = stored.alerts

    async def record(self, ask: Ask, answer: str) -> None:
        """Writes a turn that happened elsewhere."""
        opened = await self._look(ask, 0)
        stored = await self._append(ask, opened, answer, answered=ask.at)
        if stored.answer.message.seq + 1 - opened.summary.cursor > self.limits.backlog:
            await self.folder.catch_up(opened.thread)

    async def _look(self, ask: Ask, limit: int) -> Opened:
        info = SessionInfo(id=ask.session, channel=ask.channel, messages=0, started=ask.at, last=None)

        async def look() -> Opened:
            return await conversation.open_thread(
                self.vault, ask.user, info, key=ask.key, before=ask.replaces, limit=limit
            )

        opened = await look()
        while opened.behind and not opened.known:
            await self.folder.catch_up(opened.thread)
            opened = await look()
        return opened

    async def _peek(self, ask: Ask) -> Opened | None:
        """What a private turn may read; nothing of it is made. Older turns are folded first where they are too many."""
        if ask.private != "reads":
            return None

        async def look() -> Opened | None:
            return await conversation.peek(self.vault, ask.user, ask.session, limit=self.limits.backlog)

        opened = await look()
        while opened is not None and opened.behind:
            await self.folder.catch_up(opened.thread)
            opened = await look()
        return opened

    async def _append(
        self, ask: Ask, opened: Opened, answer: str, *, answered: datetime | None = None, interrupted: bool = False
    ) -> Appended:
        draft = Draft(
            question=self.redacted(ask.text),
            answer=self.redacted(self._clean(answer, "answer")),
            asked=ask.at,
            answered=answered or max(ask.at, self.clock()),
            key=ask.key,
            zone=ask.zone,
            channel=ask.channel,
            interrupted=interrupted,
            replaces=ask.replaces,
        )
        lag = self.limits.window + self.limits.slack
        watcher = self.watching.following(ask.user, self.clock())
        stored = None
        for _ in range(forgetting.TRIES):
            gone = ask.replaces
            along = None if gone is None else await forgetting.replaced(self.vault, opened.thread, gone)
            write = partial(log.append, self.vault, opened.thread, draft, lag=lag, watcher=watcher, along=along)
            if (stored := await _surely(write)) is not None:
                break
        if stored is None:
            raise StoreBusy("(The user's memory is written to all the time.)")
        if ask.replaces is not None:
            self.vault.keychain.drop(opened.thread.owner.id)  # with what it had opened of the turns that went
        if stored.due:
            self.folder.wake()
        if stored.alerts:
            self.watching.news()
        return stored

    def _clean(self, text: str, what: str) -> str:
        return clean_text(text, limit=self.limits.message_bytes, what=what)

    def redacted(self, text: str) -> str:
        """A text as it may be kept. Raises `BadInput`."""
        redacted = self.redact(text)
        if not isinstance(redacted, str):
            raise BadInput(f"redact returned a {type(redacted).__name__}, not a string.")
        return sound(redacted)

    def _budget(self, budget: int | Budget | None) -> Budget:
        given = (budget.total, budget.answer) if isinstance(budget, Budget) else (0 if budget is None else budget,)
        if not all(isinstance(number, int) for number in given):
            raise BadInput("A budget is a whole number of tokens, or a Budget of such numbers.")
        if isinstance(budget, Budget):
            return budget
        total = self.limits.budget if budget is None else budget
        return Budget(total=total, answer=min(self.limits.answer_tokens, total // 4))


async def _surely(write: Callable[[], Awaitable[Appended | None]]) -> Appended | None:
    """Writes, and once more where it is unknown whether that was written: the turn's key makes it harmless.

    A store that was busy has written nothing, and whoever waited for it has waited long enough.
    """
    try:
        return await write()
    except StoreBusy:
        raise
    except StoreError as unknown:
        try:
            return await write()
        except StoreBusy:
            raise unknown from None  # "nothing was written" would say more than is known


def _privacy(private: object) -> Private:
    """Raises `BadInput` for anything else than False, True and "reads": a slip must not read or keep what it should
    not.
    """
    if isinstance(private, bool):
        return private
    if private == "reads":
        return "reads"
    raise BadInput('private is False, True or "reads".')


def _reach(recall: object) -> Reach:
    """Raises `BadInput` for anything else than the three words."""
    for reach in REACHES:
        if recall == reach:
            return reach
    raise BadInput('recall is "session", "user" or "off".')


def _passages(knowledge: Sequence[str | Passage]) -> tuple[Passage, ...]:
    """Raises `BadInput` for what is no list of passages; a single string would be taken for one passage a letter."""
    passages = () if isinstance(knowledge, str) else tuple(map(_passage, knowledge))
    if isinstance(knowledge, str) or not all(isinstance(passage.text, str) for passage in passages):
        raise BadInput("knowledge is a list of strings and Passages.")
    return passages


def _passage(item: str | Passage) -> Passage:
    return item if isinstance(item, Passage) else Passage(item)


def first_of_turn(row: int | None) -> int | None:
    """The first row of the turn that the row belongs to: turns are pairs from row 0. Raises `BadInput` for a
    negative number.
    """
    if row is None:
        return None
    if not isinstance(row, int) or row < 0:
        raise BadInput("Rows are whole numbers from 0.")
    return row - row % 2


def _parts(ask: Ask, opened: Opened | None, past: Remembered) -> Parts:
    summary = opened.summary if opened else None
    notes = (
        ("summary lines were removed by forgetting and are not yet written anew",) if summary and summary.gaps else ()
    )
    return Parts(
        question=ask.text,
        system=ask.system,
        tools=ask.tools,
        profile=past.profile,
        facts=past.facts,
        recalled=past.recalled,
        summary=summary,
        history=opened.history if opened else (),
        knowledge=ask.knowledge,
        head=opened.head if opened else 0,
        cursor=min(summary.cursor, opened.head) if summary and opened else 0,
        notes=(*notes, *past.notes),
        language=ask.language,
    )


def _nothing_to_refit(messages: Sequence[ChatMessage]) -> NoReturn:
    raise BadInput("This turn was answered before; there is no request to pack again.")
