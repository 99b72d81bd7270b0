"""The two works on a recall index: rows into words at once, words into vectors when there is time.

Both write by compare-and-swap on the version of the fold's row, as every fold does. A vector belongs to a place in a
row and not to a version of the index: where somebody else wrote meanwhile, vectors that were computed are put where
their passages are now, and nothing is asked of the embedder twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from nitka import facts
from nitka.conversation import FACTS, RECALL, VECTORS, Said, Vault, said
from nitka.layers.recall import Segment, Vocabulary, given, installed, ledger, passages, segment, vector_to_json
from nitka.layers.recall.ledger import Ledger, Part, Step
from nitka.layers.recall.segment import places, vectors_of
from nitka.models.embed import Embedder
from nitka.recalling.memory import dictionaries
from nitka.recalling.shelf import Moved, change, read_ledger, read_parts, rows_of, stands, written
from nitka.store.port import Change, Locked, Look
from nitka.types import Limits
from nitka.vault.keychain import Owner

ROWS = 64  # read for one step at most
CHARS = 200_000  # of their texts, about, but at least one row: a second of work
VECTORS_AT_ONCE = 128  # texts embedded in one work: some seconds
TOGETHER = 16  # of them given to the embedder in one call
TRIES = 20

Place = tuple[int, int]
"""A row by its n, and the character where a passage begins in it."""

Vectors = Mapping[Place, npt.NDArray[np.float32] | None]
"""Vectors by place; None where there cannot be one."""


async def fold(vault: Vault, owner: Owner, limits: Limits, embedder: str) -> int:
    """One step of the index: the oldest rows not yet in it, up to those of the window, become words. Returns how many
    rows were read into what was written; 0 also where somebody else was faster, or nothing was due.
    """
    await dictionaries()
    before, view = await read_ledger(vault, owner)
    lag = limits.window + limits.recall_slack
    end = view.n - limits.window
    if end <= before.cursor:
        await vault.store.change(vault.scope(owner, RECALL), lambda locked: _nothing(locked, before, lag))
        return 0
    rows, cursor = await _rows(vault, owner, before.cursor, end)
    made = await asyncio.to_thread(_made, rows)
    try:
        step = await _tidied(vault, owner, before, ledger.add(ledger.begun(before, cursor=cursor), made), embedder)
    except Moved:
        await vault.store.change(vault.scope(owner, RECALL), lambda _: _again(RECALL))
        return 0
    return len(rows) if await _written(vault, owner, step, lag, embedder) else 0


async def _rows(vault: Vault, owner: Owner, cursor: int, end: int) -> tuple[list[Said], int]:
    """The next rows before `end`, and the cursor after them. One that does not open is passed over: the conversation
    itself tells of it.
    """
    view = await vault.store.view(Look(owner=owner.id, from_n=(cursor, ROWS)))
    living = said(owner, view)
    numbers = [row.n for _, row in view.person_rows if row.n < end]
    taken: list[Said] = []
    chars = 0
    for n in numbers:
        if n not in living:
            continue
        chars += len(living[n].message.text)
        if taken and chars > CHARS:
            return taken, n
        taken.append(living[n])
    return taken, end if len(view.person_rows) < ROWS else min(end, view.person_rows[-1].row.n + 1)


def _made(rows: Sequence[Said]) -> Segment:
    """The rows as a segment of words."""
    found = [piece for row in rows for piece in passages([row.message], session=row.tag.hex())]
    return segment(found, Vocabulary(installed()))


async def _tidied(vault: Vault, owner: Owner, before: Ledger, step: Step, embedder: str) -> Step:
    """The step with crowded levels merged and old parts gone. Raises `Moved`, `Damaged`."""
    lemmas = installed().name
    while parts := ledger.crowded(step.ledger, lemmas):
        kept = [part for part in parts if part.id not in step.put]
        read = {**step.put, **await read_parts(vault, owner, kept, version=before.version, damaged=True)}
        segments = [read[part.id] for part in parts if part.id in read]
        step = await asyncio.to_thread(ledger.merged, step, parts, segments, embedder)
    return ledger.aged(step)


async def _written(vault: Vault, owner: Owner, step: Step, lag: int, embedder: str) -> bool:
    """Writes the step of the index if that is still of the version before, and says what is due now."""
    made = await asyncio.to_thread(written, owner, step)
    after = step.ledger

    def decide(locked: Locked) -> Change:
        if not stands(locked, after.version - 1):
            return _again(RECALL)
        due = (RECALL,) if locked.n - after.cursor > lag else ()
        return change(made, done=(RECALL,), due=(*due, VECTORS) if _wanting(after, embedder) else due)

    _, wrote = await vault.store.change(vault.scope(owner, RECALL), decide)
    return wrote is not None and bool(wrote.folds)


def _nothing(locked: Locked, before: Ledger, lag: int) -> Change:
    same = stands(locked, before.version) and locked.n - before.cursor <= lag
    return Change(person_done=(RECALL,)) if same else _again(RECALL)


def _again(kind: str) -> Change:
    """Somebody else wrote meanwhile: the work is free to be looked at anew."""
    return Change(person_done=(kind,), person_due=(kind,))


def _wanting(after: Ledger, embedder: str) -> bool:
    """Whether parts are to be made anew, or lack vectors."""
    lemmas = installed().name
    return bool(ledger.stale(after, lemmas) or ledger.bare(after, lemmas, embedder))


async def embed(vault: Vault, owner: Owner, embedder: Embedder | None) -> int:
    """One bounded piece of the work that can wait: words of other lemmas are made anew, then facts and passages get
    vectors, the newest first. Returns how many. Raises `ModelError`; then it is due still.
    """
    name = embedder.name if embedder is not None else ""
    await dictionaries()
    before, _ = await read_ledger(vault, owner)
    known = await facts.load(vault, owner)
    try:
        if old := ledger.stale(before, installed().name):
            done = await _anew(vault, owner, before, old[0], name)
        elif embedder is not None and (texts := _bare_facts(known, name)):
            done = await _embedded_facts(vault, owner, known, texts, embedder)
        elif embedder is not None and (parts := ledger.bare(before, installed().name, name)):
            done = await _embedded(vault, owner, before, parts[0], embedder)
        else:
            await vault.store.change(
                vault.scope(owner, RECALL, FACTS), lambda locked: _nothing_more(locked, before, known)
            )
            return 0
    except Moved:
        done = 0
    await vault.store.change(vault.scope(owner), lambda _: _again(VECTORS))
    return done


def _nothing_more(locked: Locked, before: Ledger, known: facts.Facts) -> Change:
    same = stands(locked, before.version) and facts.stands(locked, known)
    return Change(person_done=(VECTORS,)) if same else _again(VECTORS)


def _bare_facts(known: facts.Facts, name: str) -> dict[bytes, str]:
    """Statements of current facts that have no vector of this embedder, by id; of the newest, as many as go at once."""
    mine = known.embedder == name
    bare = [one for one in known.current() if not mine or one.vector is None]
    newest = sorted(bare, key=lambda one: one.fact.when, reverse=True)[:VECTORS_AT_ONCE]
    return {one.id: facts.said_of(one.fact) for one in newest}


async def _embedded_facts(
    vault: Vault, owner: Owner, known: facts.Facts, texts: Mapping[bytes, str], embedder: Embedder
) -> int:
    vectors = await _vectors(embedder, list(texts.values()))
    made = dict(zip(texts, map(vector_to_json, vectors), strict=True))
    for _ in range(TRIES):
        mine = {one.id: made[one.id] for one in known.current() if texts.get(one.id) == facts.said_of(one.fact)}
        if await facts.with_vectors(vault, owner, known, embedder.name, mine):
            return len(mine)
        known = await facts.load(vault, owner)
    return 0


async def _vectors(embedder: Embedder, texts: Sequence[str]) -> list[npt.NDArray[np.float32]]:
    """One vector a text, a few at a time, so that others get a turn in between."""
    found: list[npt.NDArray[np.float32]] = []
    for at in range(0, len(texts), TOGETHER):
        found += list(await embedder.embed_passages(texts[at : at + TOGETHER]))
    return found


async def _embedded(vault: Vault, owner: Owner, before: Ledger, part: Part, embedder: Embedder) -> int:
    """Gives vectors to passages of one part. Raises `Moved`."""
    old = (await read_parts(vault, owner, [part], version=before.version, damaged=True)).get(part.id)
    if old is None:
        return int(await _replaced(vault, owner, ledger.remove(ledger.begun(before), [part])))
    bare = range(len(old)) if part.embedder != embedder.name else old.bare.tolist()
    chosen = [(places(old)[at], int(old.columns["end"][at])) for at in list(bare)[-VECTORS_AT_ONCE:]]
    rows = await rows_of(vault, owner, {n for (n, _), _ in chosen})
    texts = {(n, start): rows[n].message.text[start:end] for (n, start), end in chosen if n in rows}
    found = dict(zip(texts, await _vectors(embedder, list(texts.values())), strict=True))
    vectors = {place: found.get(place) for place, _ in chosen}
    if await _put(vault, owner, vectors, embedder.name, before, {part.id: old}):
        return len(found)
    for _ in range(TRIES):
        if await _put_again(vault, owner, vectors, embedder.name):
            return len(found)
    return 0


async def _put_again(vault: Vault, owner: Owner, vectors: Vectors, embedder: str) -> bool:
    """Writes vectors into whichever parts hold their passages now."""
    before, _ = await read_ledger(vault, owner)
    parts = ledger.holding(before, {n for n, _ in vectors})
    try:
        segments = await read_parts(vault, owner, parts, version=before.version, damaged=True)
    except Moved:
        return False
    return await _put(vault, owner, vectors, embedder, before, segments)


async def _put(
    vault: Vault, owner: Owner, vectors: Vectors, embedder: str, before: Ledger, segments: Mapping[int, Segment]
) -> bool:
    """Writes vectors into these segments, if the ledger is still that one."""
    step = ledger.begun(before)
    for part in (part for part in before.parts if part.id in segments):
        if any(place in vectors for place in places(segments[part.id])):
            made = await asyncio.to_thread(given, segments[part.id], vectors, embedder)
            step = ledger.add(ledger.remove(step, [part]), made)
    return await _replaced(vault, owner, step)


async def _anew(vault: Vault, owner: Owner, before: Ledger, part: Part, embedder: str) -> int:
    """Makes the words of one part anew from its rows; vectors of the embedder in force are kept. Raises `Moved`."""
    old = (await read_parts(vault, owner, [part], version=before.version, damaged=True)).get(part.id)
    if old is None:
        return int(await _replaced(vault, owner, ledger.remove(ledger.begun(before), [part])))
    rows = await rows_of(vault, owner, set(old.columns["n"].tolist()))
    made = await asyncio.to_thread(_made, [rows[n] for n in sorted(rows)])
    if embedder and old.embedder == embedder:
        made = given(made, vectors_of(old), embedder)
    step = ledger.add(ledger.remove(ledger.begun(before), [part]), made)
    return part.size if await _replaced(vault, owner, step) else 0


async def _replaced(vault: Vault, owner: Owner, step: Step) -> bool:
    """Writes a step that moves no cursor, if the index is still of the version before."""
    made = await asyncio.to_thread(written, owner, step)

    def decide(locked: Locked) -> Change | None:
        return change(made) if stands(locked, step.ledger.version - 1) else None

    _, wrote = await vault.store.change(vault.scope(owner, RECALL), decide)
    return wrote is not None
