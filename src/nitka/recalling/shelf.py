"""The recall index as it lies in the store: a fold row with the ledger, and one sealed piece a segment.

A piece is bound to its number, which is used once, and to the owner's incarnation; the ledger names every piece that
is there. So a segment can neither be brought back nor put in another's place, and one that is missing is `Damaged`.
Pieces are kept under a kind a level, and the large ones of the last level under several, so that whoever touches one
reads hardly any other.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from nitka.conversation import RECALL, Said, Vault, said
from nitka.errors import Damaged, Forgotten
from nitka.layers.recall import Segment, from_bytes, ledger, to_bytes, without
from nitka.layers.recall.ledger import LEVELS, Ledger, Part, Step
from nitka.store.port import NOBODY, Change, FoldRow, Locked, Look, Piece, View
from nitka.types import Sealed, Tag
from nitka.vault import codec
from nitka.vault.keychain import Owner
from nitka.vault.seal import Kind

log = logging.getLogger("nitka")

SHELVES = 16  # for the segments of the last level, a megabyte each
KINDS = (*(f"segment{level}" for level in range(len(LEVELS))), *(f"segments{shelf}" for shelf in range(SHELVES)))
"""All kinds of pieces."""


class Moved(Exception):
    """Somebody else wrote a newer version meanwhile."""


class Written(NamedTuple):
    """What writes a step of the fold."""

    put: tuple[Piece, ...]
    drop: tuple[tuple[str, Tag], ...]
    folds: tuple[FoldRow, ...]


def piece_id(number: int) -> Tag:
    """A segment's number as the store takes it."""
    return Tag(number.to_bytes(16, "big"))


def kind_of(part: Part) -> str:
    """The kind under which a part's piece is kept."""
    return KINDS[part.level if part.level < len(LEVELS) else len(LEVELS) + part.id % SHELVES]


def opened(owner: Owner, row: FoldRow | None) -> Ledger:
    """The ledger in a fold row; an empty one where there is none. Raises `Damaged`."""
    if row is None:
        return Ledger()
    state = codec.open_person_fold(owner, Kind.RECALL, row)
    try:
        return ledger.from_json(state, cursor=row.cursor, version=row.version)
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"(recall {row.cursor})") from error


async def read_ledger(vault: Vault, owner: Owner) -> tuple[Ledger, View]:
    """The ledger as it stands, and the view it was read in. Raises `Damaged`, `Forgotten`."""
    view = await vault.store.view(Look(owner=owner.id, person_folds=(RECALL,)))
    if view.incarnation != owner.incarnation:
        raise Forgotten("The user.")
    return opened(owner, view.person_folds.get(RECALL)), view


async def read_pieces(vault: Vault, owner: Owner, kinds: Collection[str]) -> tuple[Ledger, dict[Tag, Piece]]:
    """The ledger, and all pieces of some kinds, in one snapshot; still sealed. Raises `Damaged`, `Forgotten`."""
    view = await vault.store.view(Look(owner=owner.id, person_folds=(RECALL,), pieces=tuple(sorted(kinds))))
    if view.incarnation != owner.incarnation:
        raise Forgotten("The user.")
    pieces = {piece.id: piece for found in view.pieces.values() for piece in found}
    return opened(owner, view.person_folds.get(RECALL)), pieces


def opened_part(owner: Owner, part: Part, pieces: Mapping[Tag, Piece]) -> Segment:
    """A part's segment. Raises `Damaged`, also where its piece is missing."""
    piece = pieces.get(piece_id(part.id))
    if piece is None or piece.kind != kind_of(part):
        raise Damaged(f"(segment {part.id})")
    return from_bytes(codec.open_piece(owner, Kind.SEGMENT, piece))


async def read_parts(
    vault: Vault, owner: Owner, parts: Sequence[Part], *, version: int, damaged: bool = False
) -> dict[int, Segment]:
    """The segments of some parts of the ledger of that version, by number. Raises `Moved` where another stands now,
    and `Damaged`; where `damaged` is set, what does not open is left out instead.
    """
    if not parts:
        return {}
    now, pieces = await read_pieces(vault, owner, {kind_of(part) for part in parts})
    if now.version != version:
        raise Moved
    found: dict[int, Segment] = {}
    for part in parts:
        try:
            found[part.id] = opened_part(owner, part, pieces)
        except Damaged:
            if not damaged:
                raise
            log.warning("a segment of a recall index does not open; it is taken out")
    return found


def written(owner: Owner, step: Step) -> Written:
    """The step sealed."""
    after = step.ledger
    parts = {part.id: part for part in after.parts}
    blank = FoldRow(NOBODY, RECALL, after.cursor, after.version, Sealed(b""))
    put = tuple(
        codec.seal_piece(
            owner, Kind.SEGMENT, Piece(kind_of(parts[number]), piece_id(number), Sealed(b"")), to_bytes(made)
        )
        for number, made in step.put.items()
    )
    drop = tuple((kind_of(part), piece_id(part.id)) for part in step.drop)
    return Written(put, drop, (codec.seal_person_fold(owner, Kind.RECALL, blank, ledger.to_json(after)),))


def stands(locked: Locked, version: int) -> bool:
    """Whether the index is still of that version."""
    row = locked.person_folds.get(RECALL)
    return (row.version if row else 0) == version


def change(made: Written, *, done: tuple[str, ...] = (), due: tuple[str, ...] = ()) -> Change:
    """The change that writes a step, and what is done and due with it."""
    return Change(put_pieces=made.put, drop_pieces=made.drop, folds=made.folds, person_done=done, person_due=due)


async def without_rows(vault: Vault, owner: Owner, gone: Collection[int]) -> Written:
    """What writes the index without some rows, given by their n; to be written in the transaction in which the rows
    go, if the index is still of the version below that of the row in `folds`. It is written even where nothing
    changes: a fold that has read those rows must find another version. What does not open is taken out whole.
    """
    while True:
        try:
            return written(owner, await _without(vault, owner, frozenset(gone)))
        except Moved:
            continue


async def _without(vault: Vault, owner: Owner, gone: frozenset[int]) -> Step:
    try:
        before, _ = await read_ledger(vault, owner)
    except Damaged:
        return await _emptied(vault, owner)
    hit = ledger.holding(before, gone)
    segments = await read_parts(vault, owner, hit, version=before.version, damaged=True)
    step = ledger.begun(before, purges=True)
    for part in hit:
        left = without(segments[part.id], gone) if part.id in segments else None
        if left is None or len(left) != part.size:
            step = ledger.remove(step, [part])
            step = ledger.add(step, left) if left is not None else step
    return step


async def _emptied(vault: Vault, owner: Owner) -> Step:
    """A ledger that does not open, with nothing in it: what it had is not known, so all pieces go."""
    view = await vault.store.view(Look(owner=owner.id, person_folds=(RECALL,), pieces=KINDS))
    row = view.person_folds.get(RECALL)
    if view.incarnation != owner.incarnation or row is None:
        raise Moved
    log.warning("a recall index does not open; it is taken out")
    found = [
        (min(place, len(LEVELS)), piece) for place, kind in enumerate(KINDS) for piece in view.pieces.get(kind, ())
    ]
    parts = [Part(int.from_bytes(piece.id), level, 0, 0, 0, 0, "", "") for level, piece in found]
    number = max((part.id for part in parts), default=-1) + 1
    bare = Ledger(cursor=row.cursor, version=row.version, number=number, parts=tuple(parts))
    return ledger.remove(ledger.begun(bare, purges=True), parts)


async def rows_of(vault: Vault, owner: Owner, numbers: Collection[int]) -> dict[int, Said]:
    """The living ones of some rows, by n; those that do not open are not among them."""
    return said(owner, await vault.store.view(Look(owner=owner.id, ns=tuple(sorted(numbers)))))
