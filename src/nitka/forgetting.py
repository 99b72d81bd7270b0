"""Forgetting: a user, one of his sessions, a turn, a fact, a named other; and all that was made from it.

What goes with some rows goes in the same transaction: their keys' answers, summary lines, the watch's memory, facts
and past values that rest on them alone, the profile, their entries in the recall index. The rest of it is made from
the state of one version first (`Along`), and written only if that version still stands; else it is made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from nitka import editing, facts, log, profiling
from nitka.acts import found_session, lines_of, session_rows
from nitka.conversation import FACTS, FAR, PERSON, PROFILE, Thread, Vault, find_owner, find_thread
from nitka.door import as_text
from nitka.errors import BadInput, Damaged, Forgotten, StoreBusy
from nitka.layers.facts import USER, Fact, RestsOn, rests_on
from nitka.layers.facts.canon import name_key
from nitka.log import Along
from nitka.notes import mentions, note_on, note_on_person
from nitka.store.port import NOBODY, Change, Effort, FoldRow, Locked, Look, SessionRow
from nitka.types import Erased, Person
from nitka.vault.keychain import Owner
from nitka.world import random_bytes

if TYPE_CHECKING:
    from nitka.recalling.shelf import Written as IndexWritten

TRIES = 20


def check(*, session: str | None, turn: int | None, fact: str | None, about: str | None, with_turns: bool) -> None:
    """Raises `BadInput` where it is not clear what shall go."""
    if (session is None and turn is not None) or sum(what is not None for what in (session, fact, about)) > 1:
        raise BadInput("Name one: a session, a session and its turn, a fact, or whom the facts are about.")
    if with_turns and fact is None and about is None:
        raise BadInput("with_turns goes with a fact, or with whom the facts are about.")
    if fact is not None:
        as_text(fact, "fact's id")
    if about is not None and name_key(as_text(about, "name of whom facts are about")) in ("", USER):
        raise BadInput("about is the name of somebody else; a fact of the user's own goes by its id.")


async def along(vault: Vault, owner: Owner, gone: Collection[int]) -> Along:
    """What goes along with these rows of the owner, by their n."""
    view = await vault.store.view(Look(owner=owner.id, person_folds=PERSON))
    rows = view.person_folds
    known = await facts.load(vault, owner, rows.get(FACTS), whole=False)
    step = await facts.without_rows(vault, owner, known, gone)
    index = await index_without(vault, owner, gone)
    seen = {kind: row.version for kind, row in rows.items()} | {FACTS: known.version}

    def stands(locked: Locked) -> bool:
        now = {kind: row.version for kind, row in locked.person_folds.items()}
        same = all(now.get(kind, 0) == seen.get(kind, 0) for kind in PERSON)
        return same and all(row.n in gone for row in locked.rows if row.body is not None)

    return Along(
        kinds=PERSON,
        stands=stands,
        change=Change(
            put_pieces=(*step.put, *index.put),
            drop_pieces=(*step.drop, *index.drop),
            folds=(step.fold, *index.folds, profiling.without(owner, rows.get(PROFILE))),
            person_due=(PROFILE,) if rows.get(PROFILE) else (),
        ),
        facts=len(known.kept) - len(step.after.kept),
    )


async def forget_user(vault: Vault, user: Person) -> Erased:
    """Removes a user with everything that is his, and says truly what went."""
    return await forget_owner(vault, await vault.owner_id(user, leaving=True))


async def forget_session(vault: Vault, user: Person, session: str) -> Erased:
    """Removes a session with all that was made from it."""
    found = await found_session(vault, user, session)
    if found is None:
        return Erased()
    return await _scrubbed(vault, found[0].owner, partial(_forget_session, vault, *found))


async def forget_turn(vault: Vault, user: Person, session: str, turn: int) -> Erased:
    """Removes the turn whose first row is `turn`."""
    found = await found_session(vault, user, session)
    if found is None:
        return Erased()
    return await _scrubbed(vault, found[0].owner, partial(forget_rows, vault, found[0], turn, turn + 2))


async def _forget_session(vault: Vault, thread: Thread, row: SessionRow) -> Erased:
    lines = await lines_of(vault, thread)
    scope = replace(thread.scope(rows=None), person_folds=PERSON)
    for _ in range(TRIES):
        gone, head = await _numbers(vault, thread, 0, FAR)
        more = await along(vault, thread.owner, gone)

        def step(locked: Locked, *, head: int = head, more: Along = more) -> Change | None:
            return more.change if locked.head == head and more.stands(locked) else None

        went = await vault.store.erase_session(scope, step)
        if went is not None:
            return Erased(sessions=went.sessions, messages=went.messages, lines=lines, facts=more.facts)
    raise StoreBusy("(The session is written to all the time.)")


async def forget_rows(vault: Vault, thread: Thread, first: int, end: int) -> Erased:
    """Removes the rows `[first, end)` of a session with all that was made from them; not yet from the disk."""
    for _ in range(TRIES):
        gone, _ = await _numbers(vault, thread, first, end)
        more = await along(vault, thread.owner, gone)
        went = await log.forget_rows(vault, thread, first, end, more)
        if went is not None:
            return Erased(messages=went.rows, lines=went.lines, facts=more.facts if went.rows else 0)
    raise StoreBusy("(The session is written to all the time.)")


async def index_without(vault: Vault, owner: Owner, gone: Collection[int]) -> IndexWritten:
    """What writes the recall index without some rows; see `nitka.recalling.without_rows`."""
    recalling = await asyncio.to_thread(import_module, "nitka.recalling")
    written: IndexWritten = await recalling.without_rows(vault, owner, gone)
    return written


async def replaced(vault: Vault, thread: Thread, first: int) -> Along:
    """What goes along when the rows from `first` on are replaced by a turn."""
    gone, _ = await _numbers(vault, thread, first, FAR)
    return await along(vault, thread.owner, gone)


async def _numbers(vault: Vault, thread: Thread, first: int, end: int) -> tuple[frozenset[int], int]:
    """The n of the living rows `[first, end)` of a session, and its head."""
    look = Look(owner=thread.owner.id, session=thread.tag, first=first, end=end, numbers=True)
    view = await vault.store.view(look)
    if view.session is None or view.session.incarnation != thread.incarnation:
        raise Forgotten("The session.")
    return frozenset(view.numbers), view.session.head


async def forget_fact(vault: Vault, user: Person, id: str, *, with_turns: bool) -> Erased:
    """Removes a fact with its past values, and leaves a note so that no earlier message teaches it again. With turns,
    also those that still say what was forgotten before: the same value, or where no fact of that id is left, any.
    """

    def chosen(owner: Owner, known: facts.Facts) -> Going:
        one = editing.found(known, id)
        if one is None:
            return Going([], None, {n for gone, rows in known.forgotten.items() if gone.id.hex() == id for n in rows})
        gone = facts.gone_fact(owner, one)
        return Going([one.fact], gone, set(known.forgotten.get(gone, ())))

    return await _forget_facts(vault, user, chosen, about=None, with_turns=with_turns)


async def forget_about(vault: Vault, user: Person, about: str, *, with_turns: bool) -> Erased:
    """Removes whatever is known about a named other, and leaves a note. With turns, also those that still say what was
    forgotten about him before.
    """

    def chosen(owner: Owner, known: facts.Facts) -> Going:
        gone = facts.gone_person(owner, about)
        going = [fact for fact in known.all if mentions(fact, about)]
        return Going(going, gone, set(known.forgotten.get(gone, ())))

    return await _forget_facts(vault, user, chosen, about=about, with_turns=with_turns)


class Going(NamedTuple):
    """Facts that are forgotten, under which name the rows that still say them are remembered, and which rows still say
    what was forgotten so before.
    """

    facts: list[Fact]
    gone: facts.Gone | None
    said_before: set[int]


async def _forget_facts(
    vault: Vault,
    user: Person,
    chosen: Callable[[Owner, facts.Facts], Going],
    *,
    about: str | None,
    with_turns: bool,
) -> Erased:
    owner = await find_owner(vault, user)
    if owner is None:
        return Erased()
    return await _scrubbed(vault, owner, partial(_without_facts, vault, owner, chosen, about, with_turns))


async def _without_facts(
    vault: Vault,
    owner: Owner,
    chosen: Callable[[Owner, facts.Facts], Going],
    about: str | None,
    with_turns: bool,
) -> Erased:
    for _ in range(TRIES):
        view = await vault.store.view(Look(owner=owner.id, person_folds=(FACTS, PROFILE)))
        known = await facts.load(vault, owner, view.person_folds.get(FACTS), whole=False)
        going, gone, said_before = chosen(owner, known)
        if gone is None and not said_before:
            return Erased()
        rows = rests_on(going) | said_before
        notes = [note_on(fact, view.n) for fact in going]
        notes += [note_on_person(about, view.n)] if about is not None else []
        left = [fact for fact in known.all if fact not in going]
        step = await asyncio.to_thread(
            facts.written,
            owner,
            known,
            left,
            notes=(*known.notes, *notes),
            forgotten={**known.forgotten, **({gone: tuple(sorted(rows))} if gone and rows else {})},
        )
        profile = view.person_folds.get(PROFILE)
        if await _written_with_profile(vault, owner, known, step, profile):
            said = await facts.said_in(vault, owner, rows)
            return await _with_turns(vault, owner, said, Erased(facts=len(going)), with_turns=with_turns)
    raise StoreBusy("(The facts are written to all the time.)")


async def _written_with_profile(
    vault: Vault, owner: Owner, known: facts.Facts, step: facts.Written, profile: FoldRow | None
) -> bool:
    def decide(locked: Locked) -> Change | None:
        if not facts.stands(locked, known) or locked.person_folds.get(PROFILE) != profile:
            return None
        due = (PROFILE,) if profile else ()
        change = step.change(person_due=due)
        return replace(change, folds=(*change.folds, profiling.without(owner, profile)))

    _, change = await vault.store.change(vault.scope(owner, FACTS, PROFILE), decide)
    return change is not None


async def _with_turns(
    vault: Vault, owner: Owner, said: Mapping[int, RestsOn], erased: Erased, *, with_turns: bool
) -> Erased:
    """Counts the turns that still say what was forgotten, or forgets them too."""
    turns = {(one.session, one.message.seq - one.message.seq % 2) for one in said.values()}
    if not with_turns:
        return replace(erased, still_said=len(turns))
    for session, first in sorted(turns):
        found = await find_thread(vault, owner, session)
        if found is not None:
            erased = _sum(erased, await forget_rows(vault, found[0], first, first + 2))
    return erased


async def finish_erasures(vault: Vault) -> int:
    """Ends what a crash, a reader or the size of the file had left unfinished; returns how many erasures are complete
    now. The files are built anew once, however many there are.
    """
    pending = await vault.store.erasures()
    for owner, incarnation in pending:
        await vault.store.keys.remove_user_key(owner, incarnation)
        vault.keychain.drop(owner)
        await vault.store.erase_owner(owner, incarnation)
    if not pending or not (await vault.store.keys.scrub("whole") and await vault.store.scrub("whole")):
        return 0
    for owner, incarnation in pending:
        await vault.store.end_erasure(owner, incarnation)
    await vault.store.scrub("log")
    return len(pending)


async def forget_owner(vault: Vault, owner_id: bytes) -> Erased:
    """Removes the owner of that id, or what is left of him."""
    vault.keychain.drop(owner_id)
    try:
        owner = await vault.keychain.find(owner_id)
    except Damaged:
        return await _forget_unreadable(vault, owner_id)
    if owner is None:
        return await _finish(vault, owner_id)
    lines = 0
    async for row in session_rows(vault, owner):
        lines += await lines_of(vault, Thread(owner, row.session, row.incarnation))
    known = await _known(vault, owner)
    erased = await erase(vault, owner_id, owner.incarnation)
    return replace(erased, lines=lines, facts=known)


async def _known(vault: Vault, owner: Owner) -> int:
    """How many facts are about to go; those that do not open are forgotten like any other, uncounted."""
    try:
        return len((await facts.load(vault, owner, whole=False)).kept)
    except (Damaged, Forgotten):
        return 0


async def _forget_unreadable(vault: Vault, owner_id: bytes) -> Erased:
    """Forgets a user whose key does not open any more: nothing of his can be read, and all of it goes."""
    key = await vault.store.keys.user_key(owner_id)
    lives = {(await vault.store.view(Look(owner=owner_id))).incarnation, key.incarnation if key else None}
    whole = Erased()
    for incarnation in filter(None, lives):
        whole = _sum(whole, await erase(vault, owner_id, incarnation))
    return whole


async def _finish(vault: Vault, owner_id: bytes) -> Erased:
    """Ends erasures of this user that were cut off after his key was removed; nothing where there are none."""
    whole = Erased()
    for owner, incarnation in await vault.store.erasures():
        if owner == owner_id:
            whole = _sum(whole, await erase(vault, owner, incarnation))
    return whole


def _sum(a: Erased, b: Erased) -> Erased:
    return Erased(
        users=max(a.users, b.users),
        sessions=a.sessions + b.sessions,
        messages=a.messages + b.messages,
        lines=a.lines + b.lines,
        facts=a.facts + b.facts,
        handles=a.handles + b.handles,
        erasure="pending" if "pending" in (a.erasure, b.erasure) else "complete",
    )


async def erase(vault: Vault, owner: bytes, incarnation: bytes, effort: Effort = "short") -> Erased:
    """The key first, then the rows, then the bytes on disk; remembered until all is done."""
    await vault.store.begin_erasure(owner, incarnation)
    removed = await vault.store.keys.remove_user_key(owner, incarnation)
    vault.keychain.drop(owner)
    went = await vault.store.erase_owner(owner, incarnation)
    clean = await vault.store.keys.scrub(effort) and await vault.store.scrub(effort)
    if clean:
        await vault.store.end_erasure(owner, incarnation)
        await vault.store.scrub("log")  # of the note itself, which named nobody but by an opaque id
    erased = Erased(
        users=max(int(removed), went.owners),
        sessions=went.sessions,
        messages=went.messages,
        handles=went.handles,
    )
    return replace(erased, erasure="complete" if clean else "pending")


async def _scrubbed(vault: Vault, owner: Owner, work: Callable[[], Awaitable[Erased]]) -> Erased:
    """Does the work and makes the bytes go, also what this process had opened lately. A note that belongs to nobody
    has `settle` end what a crash or a reader prevented. What somebody else forgot meanwhile is nothing to forget.
    """
    note = random_bytes(16)
    await vault.store.begin_erasure(NOBODY, note)
    try:
        erased = await work()
    except Forgotten:
        erased = Erased()
    vault.keychain.drop(owner.id)
    clean = await vault.store.scrub()
    if clean:
        await vault.store.end_erasure(NOBODY, note)
    return replace(erased, erasure="complete" if clean else "pending")
