"""Facts as they lie in the store: one sealed piece a fact, and a fold row with cursor, version and notes.

Everything that changes them builds its change from the facts of one version and writes it only if that version still
stands. So two who learn the same at once leave one fact, what was edited by hand meanwhile stands, and what was
forgotten meanwhile stays away: whoever comes second looks again, and the model is not asked again.

A piece's id is a keyed hash of who, slot and, where a slot holds many values, the value: one slot, one fact.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from nitka.conversation import FACTS, Vault, said
from nitka.errors import Damaged, Forgotten
from nitka.layers import facts as layer
from nitka.layers.facts import USER, Category, Fact, Key, RestsOn
from nitka.layers.facts.canon import name_key, value_key
from nitka.layers.facts.wire import from_json, to_json
from nitka.notes import Note
from nitka.store.port import NOBODY, Change, FoldRow, Locked, Look, Piece, View
from nitka.types import Sealed, Tag
from nitka.vault import codec
from nitka.vault.keychain import Owner
from nitka.vault.seal import Kind
from nitka.world import giving_way

FACT = "fact"
NOTES_KEPT = 1_000
MANY = 100  # pieces from which they are opened in a thread, so that nobody else waits
PIECE_BYTES = 1_500  # of memory, about, that one opened fact takes
TRIES = 20


class Kept(NamedTuple):
    """A fact with its id, the words its statement is found by, and its vector where there is one."""

    fact: Fact
    id: Tag
    mark: int
    words: Any
    vector: Any = None


class Gone(NamedTuple):
    """What was forgotten, in keyed hashes: a fact's id and its value, or a named other."""

    id: Tag
    what: Tag


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts of one person in one version, those taken back among them. `mark` covers their pieces."""

    kept: Mapping[Tag, Kept] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    embedder: str = ""  # whose vectors they have
    cursor: int = 0
    version: int = 0
    mark: int = 0
    broken: tuple[Tag, ...] = ()  # pieces that do not open; the next step drops them
    forgotten: Mapping[Gone, tuple[int, ...]] = field(default_factory=dict)  # the rows that still said it
    _current: dict[frozenset[Category], tuple[Kept, ...]] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )

    @property
    def all(self) -> tuple[Fact, ...]:
        return tuple(one.fact for one in self.kept.values())

    def current(self, excluded: frozenset[Category] = frozenset()) -> tuple[Kept, ...]:
        """What holds now and may be used, the newest first. Worked out once: it lives and dies with the facts."""
        if excluded not in self._current:
            living = (one for one in self.kept.values() if one.fact.live)
            allowed = [one for one in living if not excluded or one.fact.category not in excluded]
            self._current[excluded] = tuple(sorted(allowed, key=lambda one: one.fact.when, reverse=True))
        return self._current[excluded]


class Written(NamedTuple):
    """The facts after a step, and what writes them."""

    after: Facts
    put: tuple[Piece, ...]
    drop: tuple[tuple[str, Tag], ...]
    fold: FoldRow

    def change(self, **more: Any) -> Change:
        return Change(put_pieces=self.put, drop_pieces=self.drop, folds=(self.fold,), **more)


async def load(vault: Vault, owner: Owner, row: FoldRow | None = None, *, whole: bool = True) -> Facts:
    """The facts as they are. With the fold's `row` at hand, what was opened lately serves if it is of that version.
    Raises `Forgotten`, and `Damaged` where one does not open or is missing; unless they need not be `whole`: then
    those that open are given.
    """
    cache = vault.keychain.cache
    known: Facts | None = cache.get(owner.id, owner.incarnation, FACTS, row.version) if row is not None else None
    if known is not None:
        return known
    view = await vault.store.view(Look(owner=owner.id, person_folds=(FACTS,), pieces=(FACT,)))
    if view.incarnation != owner.incarnation:
        raise Forgotten("The user.")
    many = len(view.pieces.get(FACT, ())) > MANY
    opened = await asyncio.to_thread(_opened, owner, view, whole) if many else _opened(owner, view, whole)
    if whole:
        keep(vault, owner, opened)
    return opened


def keep(vault: Vault, owner: Owner, facts: Facts) -> None:
    """Holds opened facts for the next turn."""
    size = PIECE_BYTES * (len(facts.kept) + 1)
    vault.keychain.cache.put(owner.id, owner.incarnation, FACTS, facts.version, facts, size=size)


def _opened(owner: Owner, view: View, whole: bool) -> Facts:
    row, pieces = view.person_folds.get(FACTS), view.pieces.get(FACT, ())
    if row is None:
        if pieces and whole:
            raise Damaged("(facts 0)")
        return Facts(broken=tuple(piece.id for piece in pieces))
    state = codec.open_person_fold(owner, Kind.FACTS, row)
    kept, broken = list[Kept](), list[Tag]()
    for piece in giving_way(pieces):
        try:
            kept.append(_opened_piece(owner, piece))
        except Damaged:
            if whole:
                raise
            broken.append(piece.id)
    if whole and _mark(kept) != int(state["mark"], 16):
        raise Damaged(f"(facts {row.cursor})")  # one was left out, or an older one was put in its place
    return Facts(
        kept={one.id: one for one in kept},
        notes=tuple(Note(Tag(bytes.fromhex(tag)), n) for tag, n in state.get("notes", ())),
        embedder=state.get("embedder", ""),
        forgotten={
            Gone(Tag(bytes.fromhex(id)), Tag(bytes.fromhex(what))): tuple(rows)
            for id, what, rows in state.get("forgotten", ())
        },
        cursor=row.cursor,
        version=row.version,
        mark=_mark(kept),
        broken=tuple(broken),
    )


def _mark(kept: Iterable[Kept]) -> int:
    mark = 0
    for one in kept:
        mark ^= one.mark
    return mark


def _opened_piece(owner: Owner, piece: Piece) -> Kept:
    what = f"fact {piece.id.hex()[:8]}"
    content = codec.unpack(codec.open_piece(owner, Kind.FACT, piece), what)
    try:
        fact = from_json(content)
    except (KeyError, ValueError, TypeError) as error:
        raise Damaged(f"({what})") from error
    return Kept(fact, piece.id, codec.piece_mark(owner, piece), content["words"], content.get("vector"))


def written(
    owner: Owner,
    before: Facts,
    facts: Iterable[Fact],
    *,
    cursor: int | None = None,
    notes: Sequence[Note] | None = None,
    vectors: tuple[str, Mapping[Tag, Any]] | None = None,
    forgotten: Mapping[Gone, tuple[int, ...]] | None = None,
) -> Written:
    """What turns the facts `before` into `facts`, one version on: only pieces that differ are written. `vectors` are
    an embedder's name and, by id, what its vectors are written as. It may load a dictionary, which takes seconds: not
    for an event loop.
    """
    name, given = vectors or (before.embedder, {})
    kept: dict[Tag, Kept] = {}
    put: list[Piece] = []
    for fact in facts:
        id = tag_of(owner, fact.key)
        old = before.kept.get(id)
        if old is not None and old.fact == fact and id not in given:
            kept[id] = old
            continue
        same = old is not None and old.fact.statement == fact.statement
        one, piece = _sealed(owner, fact, id, given.get(id, old.vector if old and same else None))
        kept[id] = one
        put.append(piece)
    drop = tuple((FACT, id) for id in (*before.kept, *before.broken) if id not in kept)
    after = Facts(
        kept=kept,
        notes=tuple(before.notes if notes is None else notes)[-NOTES_KEPT:],
        embedder=name,
        forgotten=dict(list((before.forgotten if forgotten is None else forgotten).items())[-NOTES_KEPT:]),
        cursor=before.cursor if cursor is None else cursor,
        version=before.version + 1,
        mark=_mark(kept.values()),
    )
    return Written(after, tuple(put), drop, _row(owner, after))


def _sealed(owner: Owner, fact: Fact, id: Tag, vector: Any) -> tuple[Kept, Piece]:
    from nitka.layers.recall.facts import words_of  # here: arrays and dictionaries take half a second to load

    words = words_of(said_of(fact))
    content = {**to_json(fact), "words": words} | ({"vector": vector} if vector is not None else {})
    piece = codec.seal_piece(owner, Kind.FACT, Piece(FACT, id, Sealed(b"")), codec.pack(content))
    return Kept(fact, id, codec.piece_mark(owner, piece), words, vector), piece


def _row(owner: Owner, facts: Facts) -> FoldRow:
    state = {
        "mark": f"{facts.mark:x}",
        "notes": [[note.tag.hex(), note.n] for note in facts.notes],
        "embedder": facts.embedder,
        "forgotten": [[gone.id.hex(), gone.what.hex(), rows] for gone, rows in facts.forgotten.items()],
        "oldest": _time(min((one.fact.last_seen for one in facts.kept.values()), default=None)),
    }
    blank = FoldRow(NOBODY, FACTS, facts.cursor, facts.version, Sealed(b""))
    return codec.seal_person_fold(owner, Kind.FACTS, blank, state)


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None


def said_of(fact: Fact) -> str:
    """A fact as a request says it and recall finds it: of a named other, with the name before it."""
    return fact.statement if fact.about == USER else f"{fact.about}: {fact.statement}"


def gone_fact(owner: Owner, one: Kept) -> Gone:
    """What stands for a fact in `Facts.forgotten`: its id, and its value."""
    return Gone(one.id, owner.key.tags.tag(b"value", value_key(one.fact.value).encode("utf-8", "surrogatepass")))


def gone_person(owner: Owner, about: str) -> Gone:
    """What stands there for all that was known about a named other."""
    tag = owner.key.tags.tag(b"about", name_key(about).encode("utf-8", "surrogatepass"))
    return Gone(tag, tag)


def tag_of(owner: Owner, key: Key) -> Tag:
    """The id of a fact: a keyed hash of what is unique about it."""
    return owner.key.tags.tag(b"fact", *(part.encode("utf-8", "surrogatepass") for part in key))


def stands(locked: Locked, facts: Facts) -> bool:
    """Whether the facts are still those of this version."""
    row = locked.person_folds.get(FACTS)
    return (row.version if row else 0) == facts.version


async def without_rows(vault: Vault, owner: Owner, facts: Facts, gone: Collection[int]) -> Written:
    """The facts without what rests on these rows. It is written even where nothing changes: whoever has read those
    rows and is thinking about them must find another version.
    """
    hit = [fact for fact in facts.all if layer.touches(fact, gone)]
    living = await said_in(vault, owner, layer.rests_on(hit) - set(gone))
    after = {one.id: one.fact for one in facts.kept.values()}
    for fact in hit:
        left = layer.without_rows(fact, gone, living)
        if left is None or left.key != fact.key:
            del after[tag_of(owner, fact.key)]
        if left is not None:
            after[tag_of(owner, left.key)] = left
    left_said = {one: tuple(n for n in rows if n not in gone) for one, rows in facts.forgotten.items()}
    said = {one: rows for one, rows in left_said.items() if rows}
    return await asyncio.to_thread(written, owner, facts, after.values(), forgotten=said)


async def said_in(vault: Vault, owner: Owner, ns: Iterable[int]) -> dict[int, RestsOn]:
    """The living ones of some of the owner's rows, by n. A row or session that does not open is not among them."""
    view = await vault.store.view(Look(owner=owner.id, ns=tuple(sorted(ns))))
    return opened_rows(owner, view)


def opened_rows(owner: Owner, view: View) -> dict[int, RestsOn]:
    """The living rows of a view with the names of their sessions, by n."""
    return {n: RestsOn(one.message, one.session) for n, one in said(owner, view).items()}


async def write(vault: Vault, owner: Owner, before: Facts, step: Written, **more: Any) -> bool:
    """Writes a step if the facts are still those it began with."""

    def decide(locked: Locked) -> Change | None:
        return step.change(**more) if stands(locked, before) else None

    _, change = await vault.store.change(vault.scope(owner, FACTS), decide)
    if change is not None:
        keep(vault, owner, step.after)
    return change is not None


async def with_vectors(vault: Vault, owner: Owner, before: Facts, embedder: str, vectors: Mapping[Tag, Any]) -> bool:
    """Writes vectors beside the facts they belong to; those of another embedder go. False if the facts moved."""
    given = dict(vectors)
    if before.embedder != embedder:
        given = {id: vectors.get(id) for id in before.kept}
    step = await asyncio.to_thread(written, owner, before, before.all, vectors=(embedder, given))
    return await write(vault, owner, before, step)
