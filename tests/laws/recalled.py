"""What the law tests of recall share: a person's rows and index without the rest of nitka around, and an oracle.

The oracle is what anyone would write who had no cursor, no segments and no cache: all living rows up to the cursor,
made into one segment at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nitka import forgetting
from nitka.conversation import Thread, Vault, find_owner, open_thread, said
from nitka.layers.recall import Index, Vocabulary, installed, passages, segment
from nitka.layers.recall.index import index
from nitka.layers.recall.ledger import Ledger
from nitka.log import Draft, append
from nitka.models.embed import Vectors
from nitka.recalling import Recalling
from nitka.recalling.memory import Memories
from nitka.recalling.shelf import read_ledger
from nitka.store.port import Look, Store
from nitka.store.sqlite import SqliteStore
from nitka.testing import MemoryStore, memory_ring
from nitka.types import Limits, Message, SessionInfo, Tag, User
from nitka.vault.codec import session_tag
from nitka.vault.keychain import Keychain, Owner
from tests.unit.recall.making import hashed

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
LIMITS = Limits(window=4, recall_slack=0, recall_wait=30.0)


class Hashing:
    """An embedder without a model. `calls` has every list of texts it was given."""

    dim = 16
    alike = 0.95
    related = 0.9

    def __init__(self, name: str = "hashing") -> None:
        self.name = name
        self.questions: list[str] = []
        self.calls: list[list[str]] = []

    async def embed_query(self, texts: Sequence[str]) -> Vectors:
        self.questions += texts
        return hashed(texts, self.dim)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        return hashed(texts, self.dim)

    async def close(self) -> None:
        return None


class Place:
    """A store with its key ring: what stays when a process dies."""

    def __init__(self, path: Path | None = None) -> None:
        self.path, self.ring, self._memory = path, memory_ring(), MemoryStore()

    def store(self) -> Store:
        return SqliteStore(str(self.path)) if self.path else self._memory


class Process:
    """One process on a place: a vault and recall, nothing running in the background."""

    def __init__(
        self,
        place: Place,
        *,
        embedder: Any = None,
        store: Store | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self.store = store or place.store()
        self.vault = Vault(self.store, Keychain(self.store.keys, place.ring, limits), len, "letters")
        self.recalling = Recalling(embedder, limits)

    async def start(self) -> Process:
        await self.store.start()
        await self.vault.keychain.prepare()
        return self

    async def stop(self) -> None:
        await self.recalling.close()
        await self.store.close()

    async def thread(self, user: str, session: str) -> Thread:
        info = SessionInfo(id=session, channel="", messages=0, started=AT, last=None)
        opened = await open_thread(self.vault, User(user), info, key=b"look", before=None, limit=1)
        return opened.thread

    async def record(self, user: str, session: str, text: str, answer: str = "noted") -> None:
        thread = await self.thread(user, session)
        key = repr((user, session, text, await self.head(user))).encode()
        draft = Draft(question=text, answer=answer, asked=AT, answered=AT, key=key)
        await append(self.vault, thread, draft, lag=1_000)

    async def head(self, user: str) -> int:
        owner = await self.owner(user)
        return (await self.store.view(Look(owner=owner.id))).n if owner else 0

    async def owner(self, user: str) -> Owner | None:
        return await find_owner(self.vault, User(user))

    async def known(self, user: str) -> Owner:
        owner = await self.owner(user)
        assert owner is not None
        return owner

    async def fold(self, user: str) -> int:
        """All that is due of one person; returns the rows that went in."""
        whole = 0
        while (owner := await self.owner(user)) is not None and (rows := await self.recalling.fold(self.vault, owner)):
            whole += rows
        return whole

    async def embed(self, user: str) -> int:
        whole = 0
        while (owner := await self.owner(user)) is not None and (done := await self.recalling.embed(self.vault, owner)):
            whole += done
        return whole

    async def forget_turn(self, user: str, session: str, turn: int) -> None:
        await forgetting.forget_turn(self.vault, User(user), session, turn)

    async def recalling_ledger(self, user: str) -> Ledger:
        """What the fold's row says."""
        return (await read_ledger(self.vault, await self.known(user)))[0]

    async def loaded(self, user: str) -> Index:
        """The index as any process would load it now."""
        name = self.recalling.embedder.name if self.recalling.embedder else ""
        return (await Memories(name).load(self.vault, await self.known(user))).index

    async def from_scratch(self, user: str) -> Index:
        """The oracle's: of all living rows before the cursor."""
        owner = await self.known(user)
        ledger, _ = await read_ledger(self.vault, owner)
        view = await self.store.view(Look(owner=owner.id, from_n=(0, 100_000)))
        rows = [one for n, one in sorted(said(owner, view).items()) if n < ledger.cursor]
        found = [piece for one in rows for piece in passages([one.message], session=one.tag.hex())]
        return index([segment(found, Vocabulary(installed()))])


def contents(made: Index) -> dict[tuple[int, int], Any]:
    """What an index says of each passage, whatever the order in it."""
    found: dict[tuple[int, int], Any] = {}
    columns = made.columns
    for place in range(len(made)):
        key = int(columns["n"][place]), int(columns["start"][place])
        assert key not in found, "a passage is there twice"
        terms = made.terms_of(place)
        counts = [_count(made, int(term), place) for term in terms]
        found[key] = (
            made.sessions[columns["session"][place]],
            made.speakers[columns["speaker"][place]],
            *(int(columns[name][place]) for name in ("seq", "end", "at", "day", "asks")),
            tuple(zip(terms.tolist(), counts, strict=True)),
        )
    return found


def _count(made: Index, term: int, place: int) -> int:
    at = int(made.vocabulary.searchsorted(term))
    postings = slice(made.posting_at[at], made.posting_at[at + 1])
    return int(made.count[postings][made.posting[postings] == place][0])


async def same_as_from_scratch(process: Process, user: str) -> None:
    """The law of the fold: what was folded step by step is what is made of the living rows at once."""
    assert contents(await process.loaded(user)) == contents(await process.from_scratch(user))


def tag(owner: Owner, session: str) -> Tag:
    return session_tag(owner, session)


def row(number: int, text: str) -> Message:
    return Message(seq=number, n=number, role="user", text=text, at=AT)
