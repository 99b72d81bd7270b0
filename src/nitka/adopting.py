"""The anonymous visitor who signs in: what he said becomes the user's, and he is forgotten.

Rules:

* Turns are moved in the order in which they were written, each by an ordinary append under a key made of its session's
  incarnation and its number. So a turn that was moved is known when it comes again: an adoption that was cut off is
  ended by calling it again, and nothing is doubled. A session that both have goes on, the visitor's turns come after.
* The visitor's rows are removed, before his key, on condition that nothing of his was written or forgotten since it was
  looked at. A turn that ends meanwhile is moved too, or is refused with `Forgotten`.
* What he set by hand goes with him; other facts, summaries and the rest are made anew from the messages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from nitka import conversation, editing, forgetting, log
from nitka.conversation import Thread, Vault, find_thread, known_owner, make_owner
from nitka.errors import BadInput, Damaged, Forgotten
from nitka.links import known_facts
from nitka.log import Draft, Watcher
from nitka.store.port import Look, PersonRow, SessionRow, View
from nitka.types import Adopted, Person
from nitka.vault import codec
from nitka.vault.codec import Stored
from nitka.vault.keychain import Owner

PAGE = 500  # rows, whole turns


async def adopt(vault: Vault, visitor: Person, user: Person, *, lag: int, watcher: Watcher | None = None) -> Adopted:
    """Makes what is remembered of the visitor the user's, then forgets the visitor. One of whom nothing is known is
    nothing to adopt; the user is made if he is new.

    `lag` and `watcher` as for `log.append`. Raises `BadInput` for a visitor with linked handles or of another
    tenant, `Damaged` where something of his does not open (then he is not forgotten), `Forgotten` for a user who is
    forgotten meanwhile.
    """
    if visitor.tenant != user.tenant:
        raise BadInput("A visitor and the user he is are of one tenant.")
    leaving_id = await vault.owner_id(visitor)
    if leaving_id == await vault.owner_id(user):
        return Adopted()
    leaving = await known_owner(vault, leaving_id)
    if leaving is None:  # unknown, or what an adoption that was cut off at its end left
        return Adopted(erasure=(await forgetting.forget_owner(vault, leaving_id)).erasure)
    if await vault.store.handles(leaving.id):
        raise BadInput("One who has linked handles is no visitor; unlink them first.")
    move = _Move(vault=vault, leaving=leaving, staying=await make_owner(vault, user), lag=lag, watcher=watcher)
    await move.everything()
    await vault.store.begin_erasure(leaving.id, leaving.incarnation)
    await vault.store.keys.remove_user_key(leaving.id, leaving.incarnation)
    vault.keychain.drop(leaving.id)
    await move.everything()  # of turns that were opened after the rows went and before the key did
    erased = await forgetting.erase(vault, leaving.id, leaving.incarnation)
    return replace(move.done, erasure=erased.erasure)


@dataclass(slots=True, kw_only=True)
class _Move:
    """One adoption under way. `rows` says where turns are now: by the incarnation of the visitor's session and their
    first row there, the first row here.
    """

    vault: Vault
    leaving: Owner
    staying: Owner
    lag: int
    watcher: Watcher | None
    threads: dict[bytes, Thread] = field(default_factory=dict)  # the user's, by incarnation of the visitor's session
    rows: dict[bytes, dict[int, int]] = field(default_factory=dict)
    done: Adopted = Adopted()

    async def everything(self) -> None:
        """Moves until nothing was written or forgotten since it was looked at, and removes the visitor's rows as that
        is so.
        """
        known = 0
        while True:
            look = replace(known_facts(self.leaving), ns=await self._firsts())
            seen = await self.vault.store.view(look)
            if seen.incarnation != self.leaving.incarnation:
                break
            here = {session.incarnation for session in seen.person_sessions.values()}
            for session in self.rows.keys() - here:
                await self._forget_session(session)
            known = await self._facts()
            await self._turns(seen.n)
            if self.rows.keys() - here:
                continue  # one that began since it was looked at
            await editing.adopted(self.vault, self.staying)
            still = (look, seen)
            if (await self.vault.store.erase_owner(self.leaving.id, self.leaving.incarnation, still=still)).owners:
                break
        self._count(known)

    async def _facts(self) -> int:
        """Hands over what was done by hand; nothing where the same adoption was ended elsewhere meanwhile."""
        try:
            return await editing.adopt(self.vault, self.leaving, self.staying)
        except Forgotten:
            if (await self.vault.store.view(Look(owner=self.leaving.id))).incarnation == self.leaving.incarnation:
                raise
            return 0

    def _count(self, known: int) -> None:
        self.done = replace(
            self.done,
            sessions=self.done.sessions + sum(map(bool, self.rows.values())),
            messages=self.done.messages + 2 * sum(map(len, self.rows.values())),
            facts=self.done.facts + known,
        )
        self.rows.clear()

    async def _firsts(self) -> tuple[int, ...]:
        """The n of the first row of each of the visitor's sessions: who looks at it sees the session's own row, which
        changes whenever a turn is written or forgotten.
        """
        firsts: dict[bytes, int] = {}
        async for view in self._pages(conversation.FAR):
            for tag, row in view.person_rows:
                firsts.setdefault(tag, row.n)
        return tuple(firsts.values())

    async def _turns(self, end: int) -> None:
        """Moves the turns of the visitor's rows before `end`, unless they were."""
        async for view in self._pages(end):
            for question, answer in _pairs([row for row in view.person_rows if row.row.n < end]):
                session = view.person_sessions[question.session]
                if question.row.body is None:
                    await self._forget_turn(session, question.row.seq)
                else:
                    await self._turn(session, question, answer)

    async def _pages(self, end: int) -> AsyncIterator[View]:
        """The visitor's rows before `end` by their n, and perhaps some more."""
        first = 0
        while first < end:
            look = Look(owner=self.leaving.id, from_n=(first, min(PAGE, end - first)))
            view = await self.vault.store.view(look)
            if view.incarnation != self.leaving.incarnation or not view.person_rows:
                return
            yield view
            first = view.person_rows[-1].row.n + 1

    async def _turn(self, session: SessionRow, question: PersonRow, answer: PersonRow) -> None:
        """Moves one turn, unless it was; one that the user has forgotten since stays forgotten."""
        thread = await self._thread(session)
        key, seq = _key(session, question.row.seq), question.row.seq
        before = await self._known(thread, key)
        if before.known is None:
            pair = [codec.open_message(self.leaving, session.incarnation, it.row) for it in (question, answer)]
            draft = _draft(pair, key)
            written = await log.append(self.vault, thread, draft, lag=self.lag, watcher=self.watcher)
            assert written is not None
            self.rows.setdefault(session.incarnation, {})[seq] = written.answer.message.seq - 1
        elif before.pair[0].body is not None:
            self.rows.setdefault(session.incarnation, {})[seq] = before.known

    async def _thread(self, session: SessionRow) -> Thread:
        """The user's session of the same name, made if there is none. Raises `Forgotten`."""
        if session.incarnation not in self.threads:
            info = codec.open_session(self.leaving, session)
            found = await find_thread(self.vault, self.staying, info.id)
            if found is None:
                await conversation.create(self.vault, self.staying, replace(info, messages=0, last=None))
                found = await find_thread(self.vault, self.staying, info.id)
            if found is None:
                raise Forgotten("The user.")
            self.threads[session.incarnation] = found[0]
        return self.threads[session.incarnation]

    async def _known(self, thread: Thread, key: bytes) -> View:
        """Where the turn with this key is in the user's session."""
        tag = codec.key_tag(self.staying, thread.tag, key)
        return await self.vault.store.view(Look(owner=self.staying.id, session=thread.tag, turn_key=tag))

    async def _forget_turn(self, session: SessionRow, seq: int) -> None:
        """One that the visitor has forgotten since it was moved is forgotten here too."""
        found = await find_thread(self.vault, self.staying, codec.open_session(self.leaving, session).id)
        if found is None:
            return
        known = (await self._known(found[0], _key(session, seq))).known
        if known is not None:
            await forgetting.forget_rows(self.vault, found[0], known, known + 2)
        self.rows.get(session.incarnation, {}).pop(seq, None)

    async def _forget_session(self, session: bytes) -> None:
        for first in self.rows.pop(session).values():
            await forgetting.forget_rows(self.vault, self.threads[session], first, first + 2)


def _key(session: SessionRow, seq: int) -> bytes:
    """The key of a turn that is moved. Callers' keys begin otherwise, and random ones are shorter."""
    return b"adopt:" + session.incarnation + seq.to_bytes(8)


def _pairs(rows: Sequence[PersonRow]) -> Iterator[tuple[PersonRow, PersonRow]]:
    """The turns of consecutive rows. Raises `Damaged` where half of one is missing."""
    for question, answer in zip_longest(rows[::2], rows[1::2]):
        whole = answer is not None and (question.session, question.row.seq + 1) == (answer.session, answer.row.seq)
        if not whole or (question.row.body is None) != (answer.row.body is None):
            raise Damaged(f"(message {question.row.seq})")
        yield question, answer


def _draft(pair: Sequence[Stored | None], key: bytes) -> Draft:
    """The turn as it was said."""
    question, answer = (item.message for item in pair if item is not None)
    return Draft(
        question=question.text,
        answer=answer.text,
        asked=question.at,
        answered=answer.at,
        key=key,
        zone=question.zone,
        channel=question.channel,
        interrupted=answer.interrupted,
    )
