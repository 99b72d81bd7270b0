"""A segment: some passages as arrays, made once, never changed, written as bytes to be sealed.

Rules
* A segment holds no text: terms are 32-bit hashes, vectors are 8-bit integers with one scale a passage. Both still tell
  a lot about the text, so a segment is sealed like text.
* Passages stand in the order given. Forgetting rows makes a new segment (`without`); adding vectors later makes a new
  segment (`with_vectors`).
* A passage without a vector has scale 0, one that cannot have one scale -1. Words come at once, vectors when there is
  time.
* The bytes begin with a version and say what they hold; anything else in their place is `Damaged`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nitka.errors import BadInput, Damaged
from nitka.layers.recall.passages import Passage
from nitka.layers.recall.words import Vocabulary

Array = npt.NDArray[Any]

VERSION = 1
_MAGIC = b"nkr"
_COLUMNS = {  # name: (type on disk, one for each of)
    "n": "<i8",
    "seq": "<i8",
    "start": "<i4",
    "end": "<i4",
    "at": "<i8",  # seconds since 1970, UTC
    "day": "<i4",
    "asks": "|u1",  # share of the text that is questions, in 255ths
    "session": "<i4",  # number in `sessions`
    "speaker": "<i4",  # number in `speakers`
    "ends": "<i8",  # where the terms of this passage end in `term` and `count`
    "scale": "<f4",  # what a vector's integers are to be multiplied with; 0 or -1 where there is no vector
}
_FLAT = {"term": "<u4", "count": "<u2"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segment:
    """Passages as arrays. `lemmas` and `embedder` name what made the terms and vectors; compare them with what is in
    force.
    """

    lemmas: str
    sessions: tuple[str, ...]
    speakers: tuple[str, ...]
    columns: dict[str, Array]
    term: Array
    count: Array
    vectors: Array  # int8, one row a passage; no columns without an embedder
    embedder: str = ""

    def __len__(self) -> int:
        return len(self.columns["n"])

    @property
    def bare(self) -> Array:
        """Positions of the passages that have no vector yet."""
        return np.flatnonzero(self.columns["scale"] == 0)


def segment(found: Sequence[Passage], vocabulary: Vocabulary) -> Segment:
    """A segment of some passages, words only."""
    counted = [Counter(vocabulary.read(passage.text)) for passage in found]
    sessions = tuple(dict.fromkeys(passage.session for passage in found))
    speakers = tuple(dict.fromkeys(passage.speaker for passage in found))
    session_at, speaker_at = ({name: at for at, name in enumerate(names)} for names in (sessions, speakers))
    values = {
        "n": [p.n for p in found],
        "seq": [p.seq for p in found],
        "start": [p.start for p in found],
        "end": [p.end for p in found],
        "at": [int(p.at.timestamp()) for p in found],
        "day": [p.day for p in found],
        "asks": [round(255 * p.asks) for p in found],
        "session": [session_at[p.session] for p in found],
        "speaker": [speaker_at[p.speaker] for p in found],
        "ends": np.cumsum([len(c) for c in counted]),
        "scale": [0] * len(found),
    }
    return Segment(
        lemmas=vocabulary.lemmas.name,
        sessions=sessions,
        speakers=speakers,
        columns={name: np.array(values[name], _COLUMNS[name]) for name in _COLUMNS},
        term=np.array([key for c in counted for key in sorted(c)], "<u4"),
        count=np.array([min(c[key], 65_535) for c in counted for key in sorted(c)], "<u2"),
        vectors=np.zeros((len(found), 0), np.int8),
    )


def with_vectors(old: Segment, vectors: npt.NDArray[np.float32], embedder: str) -> Segment:
    """The segment with vectors, one unit vector a passage; a row of zeros (or of anything not finite) means there is
    none.
    """
    if len(vectors) != len(old):
        raise BadInput(f"{len(vectors)} vectors for {len(old)} passages.")
    whole, scale = eight_bits(vectors)
    return replace(old, vectors=whole, columns={**old.columns, "scale": scale}, embedder=embedder)


def eight_bits(vectors: npt.NDArray[np.float32]) -> tuple[Array, Array]:
    """Vectors as 8-bit integers and one scale each; scale 0 for a row of zeros or of anything not finite."""
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    usable = np.isfinite(largest) & (largest > 0)
    scale = np.where(usable, largest / 127, 0).astype("<f4")
    whole = np.where(usable[:, None], vectors, 0) / np.where(usable, scale, 1)[:, None]
    return np.rint(whole).astype(np.int8), scale


def plain(old: Segment) -> Segment:
    """The segment without its vectors."""
    scale = np.zeros(len(old), "<f4")
    return replace(old, vectors=np.zeros((len(old), 0), np.int8), columns={**old.columns, "scale": scale}, embedder="")


def places(old: Segment) -> list[tuple[int, int]]:
    """Where each passage begins: its row by n, and the character in it."""
    return list(zip(old.columns["n"].tolist(), old.columns["start"].tolist(), strict=True))


def given(old: Segment, vectors: Mapping[tuple[int, int], npt.NDArray[np.float32] | None], embedder: str) -> Segment:
    """The segment with vectors at some of its `places`; those it has of another embedder, or of another length, go.
    None, or a vector of zeros, is remembered as one that cannot be had (scale -1), and is not asked for again.
    """
    at = [(position, vectors[place]) for position, place in enumerate(places(old)) if place in vectors]
    rows = [(position, vector) for position, vector in at if vector is not None]
    dim = len(rows[0][1]) if rows else old.vectors.shape[1]
    base = old if old.embedder == embedder and old.vectors.shape[1] in (0, dim) else plain(old)
    filled, scale = _wide(base.vectors, dim).copy(), base.columns["scale"].copy()
    scale[[position for position, _ in at]] = -1
    if rows:
        positions = np.array([position for position, _ in rows])
        filled[positions], found = eight_bits(np.stack([vector for _, vector in rows]))
        scale[positions] = np.where(found > 0, found, -1)
    return replace(base, vectors=filled, columns={**base.columns, "scale": scale}, embedder=embedder)


def vectors_of(old: Segment) -> dict[tuple[int, int], npt.NDArray[np.float32]]:
    """The vectors a segment has, by `places`."""
    scale = old.columns["scale"]
    wide = old.vectors.astype(np.float32) * scale[:, None]
    return {place: wide[i] for i, place in enumerate(places(old)) if scale[i] > 0}


def without(old: Segment, rows: Collection[int]) -> Segment:
    """The segment without the passages of some rows, given by their `n`. Names of sessions and speakers nobody needs go
    too.
    """
    keep = ~np.isin(old.columns["n"], np.fromiter(rows, np.int64, len(rows)))
    return take(old, np.flatnonzero(keep))


def take(old: Segment, positions: Array) -> Segment:
    """Some passages of a segment, in the order given."""
    lengths = np.diff(old.columns["ends"], prepend=0)
    taken = lengths[positions]
    columns = {name: column[positions] for name, column in old.columns.items()}
    starts, ends = (old.columns["ends"] - lengths)[positions], np.cumsum(taken, dtype="<i8")
    columns["ends"] = ends
    flat = np.repeat(starts - (ends - taken), taken) + np.arange(len(taken) and ends[-1])
    sessions, columns["session"] = _renumber(old.sessions, columns["session"])
    speakers, columns["speaker"] = _renumber(old.speakers, columns["speaker"])
    return replace(
        old,
        sessions=sessions,
        speakers=speakers,
        columns=columns,
        term=old.term[flat],
        count=old.count[flat],
        vectors=old.vectors[positions],
    )


def _renumber(names: tuple[str, ...], column: Array) -> tuple[tuple[str, ...], Array]:
    used, numbers = np.unique(column, return_inverse=True)
    return tuple(names[i] for i in used), numbers.astype("<i4")


def join(parts: Sequence[Segment]) -> Segment:
    """Several segments as one, in order, so that many small ones need not be kept. They must have been made with the
    same libraries.
    """
    made = {(part.lemmas, part.embedder) for part in parts}
    if len({lemmas for lemmas, _ in made}) > 1 or len({embedder for _, embedder in made if embedder}) > 1:
        raise BadInput("Segments of different lemmas or embedders do not go together.")
    dim = max((part.vectors.shape[1] for part in parts), default=0)
    sessions = tuple(dict.fromkeys(name for part in parts for name in part.sessions))
    speakers = tuple(dict.fromkeys(name for part in parts for name in part.speakers))
    columns = {
        name: np.concatenate([np.zeros(0, kind), *(p.columns[name] for p in parts)]) for name, kind in _COLUMNS.items()
    }
    columns["session"] = _joined([_places(p.sessions, sessions)[p.columns["session"]] for p in parts])
    columns["speaker"] = _joined([_places(p.speakers, speakers)[p.columns["speaker"]] for p in parts])
    offsets = np.cumsum([0, *(len(p.term) for p in parts)])
    columns["ends"] = np.concatenate(
        [np.zeros(0, "<i8"), *(p.columns["ends"] + o for p, o in zip(parts, offsets, strict=False))]
    )
    return Segment(
        lemmas=next((lemmas for lemmas, _ in made), ""),
        embedder=next((embedder for _, embedder in made if embedder), ""),
        sessions=sessions,
        speakers=speakers,
        columns={name: column.astype(_COLUMNS[name]) for name, column in columns.items()},
        term=np.concatenate([np.zeros(0, "<u4"), *(p.term for p in parts)]),
        count=np.concatenate([np.zeros(0, "<u2"), *(p.count for p in parts)]),
        vectors=np.concatenate([np.zeros((0, dim), np.int8), *(_wide(p.vectors, dim) for p in parts)]),
    )


def _places(names: tuple[str, ...], among: tuple[str, ...]) -> Array:
    places = {name: place for place, name in enumerate(among)}
    return np.array([places[name] for name in names], "<i4")


def _joined(columns: list[Array]) -> Array:
    return np.concatenate([np.zeros(0, "<i4"), *columns])


def _wide(vectors: Array, dim: int) -> Array:
    return vectors if vectors.shape[1] == dim else np.zeros((len(vectors), dim), np.int8)


def to_bytes(made: Segment) -> bytes:
    """The segment as bytes: magic and version, length of a JSON head, the head, then the arrays one after another,
    little-endian.
    """
    head = {
        "lemmas": made.lemmas,
        "embedder": made.embedder,
        "sessions": made.sessions,
        "speakers": made.speakers,
        "passages": len(made),
        "terms": len(made.term),
        "dim": made.vectors.shape[1],
    }
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    arrays = [
        *(made.columns[name].astype(kind) for name, kind in _COLUMNS.items()),
        made.term,
        made.count,
        made.vectors,
    ]
    return b"".join([_MAGIC, bytes([VERSION]), len(text).to_bytes(4, "little"), text, *(a.tobytes() for a in arrays)])


def from_bytes(data: bytes) -> Segment:
    """The segment again. Raises `Damaged` for anything that `to_bytes` did not write."""
    if data[:3] != _MAGIC or len(data) < 8:
        raise Damaged("This is no recall segment.")
    if data[3] != VERSION:
        raise Damaged(f"Recall segment of version {data[3]}, but this program reads version {VERSION}.")
    length = int.from_bytes(data[4:8], "little")
    try:
        head = json.loads(data[8 : 8 + length].decode("utf-8", "surrogatepass"))
        return _filled(head, memoryview(data)[8 + length :])
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged("A recall segment does not hold what its head says.") from error


def _filled(head: dict[str, Any], body: memoryview) -> Segment:
    size, number, dim = int(head["passages"]), int(head["terms"]), int(head["dim"])
    shapes = [(name, np.dtype(kind), size) for name, kind in _COLUMNS.items()]
    shapes += [(name, np.dtype(kind), number) for name, kind in _FLAT.items()] + [
        ("vectors", np.dtype("i1"), size * dim)
    ]
    arrays: dict[str, Array] = {}
    at = 0
    for name, kind, length in shapes:
        arrays[name] = np.frombuffer(body, kind, length, at)
        at += length * kind.itemsize
    if at != len(body):
        raise ValueError("length")
    made = Segment(
        lemmas=str(head["lemmas"]),
        embedder=str(head["embedder"]),
        sessions=tuple(map(str, head["sessions"])),
        speakers=tuple(map(str, head["speakers"])),
        columns={name: arrays[name] for name in _COLUMNS},
        term=arrays["term"],
        count=arrays["count"],
        vectors=arrays["vectors"].reshape(size, dim),
    )
    _check(made)
    return made


def _check(made: Segment) -> None:
    ends = made.columns["ends"]
    bounds = (("session", len(made.sessions)), ("speaker", len(made.speakers)))
    sound = len(made) == 0 or (ends[0] >= 0 and bool((np.diff(ends) >= 0).all()))
    sound = sound and (int(ends[-1]) if len(made) else 0) == len(made.term)
    for name, number in bounds:
        column = made.columns[name]
        sound = sound and bool(((column >= 0) & (column < number)).all())
    if not sound:
        raise ValueError("numbers")
