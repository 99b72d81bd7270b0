"""Root keys: what wraps the users' keys.

A ring holds several root keys, one of them active. `KeyRing` lies in a file, made on first use, or comes from the
environment; a key management service can stand in its place behind the `RootKeys` port.

The file is JSON: {"version": 1, "active": ID, "roots": {ID: base64 of 32 bytes}, "stores": {STORE: [ID, ...]}}. It is
written aside, flushed with its folder, and put in place: a new one by `link`, so that of two processes one wins and
the other reads what won; a changed one by a rename, under a lock on the folder, so that no change is lost. `stores`
says which roots each store was seen to need: several stores may share a file, and rotating the keys of one must not
take away the root of another.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from nitka.errors import BadInput, KeyMissing, WrongKey
from nitka.types import Sealed
from nitka.vault.seal import KEY_BYTES, Place, SealKey
from nitka.world import random_bytes

log = logging.getLogger("nitka")


class RootKeys(Protocol):
    """Wraps and unwraps keys by roots that are named by 8-byte ids."""

    async def active(self) -> bytes:
        """The id of the root that wraps new keys."""
        ...

    async def wrap(self, key: bytes, place: Place, *, root: bytes) -> Sealed: ...

    async def unwrap(self, wrapped: Sealed, place: Place, *, root: bytes) -> bytes:
        """Raises `WrongKey` for a root it does not hold, `Damaged` for what does not open."""
        ...

    async def holds(self, root: bytes) -> bool: ...

    async def prepare(self, *, fresh: bool) -> None:
        """Makes sure that there is a root. Only a `fresh` store, one without wrapped keys, may get a new one; else
        `KeyMissing`.
        """
        ...

    async def reload(self) -> None:
        """Looks again at where the roots come from: another process may have rotated them."""
        ...

    async def claim(self, store: bytes, roots: Iterable[bytes]) -> None:
        """Remembers, where that can be, that the store needs these roots too, so that nobody takes them away."""
        ...


@dataclass(frozen=True, slots=True)
class Ring:
    """Several root keys, one active. The keys are kept out of `repr`."""

    active: bytes
    roots: Mapping[bytes, bytes] = field(repr=False)
    stores: Mapping[bytes, frozenset[bytes]] = field(default_factory=dict)  # the roots that each store needs

    @classmethod
    def new(cls) -> Ring:
        key = random_bytes(KEY_BYTES)
        return cls(SealKey(key).id, {SealKey(key).id: key})

    def with_new_root(self, store: bytes) -> Ring:
        """The ring with one more root, active from now on, which the store needs."""
        key = random_bytes(KEY_BYTES)
        root = SealKey(key).id
        needs = self.stores.get(store, frozenset()) | {root}
        return replace(self.claimed(store, needs), active=root, roots={**self.roots, root: key})

    def claimed(self, store: bytes, roots: Iterable[bytes]) -> Ring:
        """The ring that knows what the store needs."""
        return replace(self, stores={**self.stores, store: frozenset(roots)})

    def without_old(self, store: bytes, needs: Iterable[bytes]) -> Ring:
        """The ring without the roots that the store no longer needs, unless they are active or another store needs
        them.
        """
        ring = self.claimed(store, needs)
        old = self.stores.get(store, frozenset()).difference(*ring.stores.values(), [self.active])
        return replace(ring, roots={root: key for root, key in ring.roots.items() if root not in old})

    def to_json(self) -> str:
        roots = {id_.hex(): base64.b64encode(key).decode() for id_, key in self.roots.items()}
        stores = {store.hex(): sorted(id_.hex() for id_ in needs) for store, needs in self.stores.items()}
        data = {"version": 1, "active": self.active.hex(), "roots": roots, "stores": stores}
        return json.dumps(data, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Ring:
        """Raises `WrongKey` for anything but a ring, without repeating a byte of it."""
        try:
            data = json.loads(text)
            if data["version"] != 1:
                raise WrongKey("The key file was written by a newer version of nitka; upgrade nitka.")
            roots = {bytes.fromhex(id_): base64.b64decode(key, validate=True) for id_, key in data["roots"].items()}
            stores = {
                bytes.fromhex(store): frozenset(map(bytes.fromhex, needs))
                for store, needs in data.get("stores", {}).items()
            }
            ring = cls(bytes.fromhex(data["active"]), roots, stores)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise WrongKey("The key file is not a nitka key ring.") from error
        ring.check()
        return ring

    @classmethod
    def from_text(cls, text: str) -> Ring:
        """Reads the form used in an environment variable: base64 keys separated by commas, the active one first."""
        try:
            keys = [base64.b64decode(part.strip(), validate=True) for part in text.split(",")]
        except ValueError as error:
            raise BadInput("NITKA_ROOT_KEYS must be base64 keys separated by commas, the active one first.") from error
        if any(len(key) != KEY_BYTES for key in keys) or len(set(keys)) < len(keys):
            raise BadInput(f"NITKA_ROOT_KEYS must hold different keys of {KEY_BYTES} bytes in base64.")
        return cls(SealKey(keys[0]).id, {SealKey(key).id: key for key in keys})

    def check(self) -> None:
        """Raises `WrongKey` for a ring that does not fit together."""
        whole = all(len(key) == KEY_BYTES and SealKey(key).id == id_ for id_, key in self.roots.items())
        if self.active not in self.roots or not whole:
            raise WrongKey("The key file is damaged.")


class KeyRing:
    """Root keys from a file or from the environment. `path` is None where they came from the environment."""

    def __init__(self, ring: Ring | None, *, path: Path | None = None) -> None:
        self._ring = ring
        try:
            self.path = path.resolve() if path is not None else None  # a link stays; what it leads to is changed
        except RuntimeError as error:  # links in a circle; Python 3.13 says OSError when the file is opened
            raise BadInput("The key file's path leads in a circle.") from error

    @property
    def ring(self) -> Ring:
        if self._ring is None:
            self._ring = self._read()
        return self._ring

    async def prepare(self, *, fresh: bool) -> None:
        try:
            _ = self.ring  # raises what is wrong with it
        except KeyMissing:
            if not fresh or self.path is None:
                raise
            if _put(self.path, Ring.new().to_json(), new=True):
                log.warning(
                    "made a key file at %s: whoever loses it loses every stored conversation; keep a copy", self.path
                )

    def update(self, change: Callable[[Ring], Ring]) -> None:
        """Changes the file as it is now, while no other process does. Raises `BadInput` where that cannot be: the
        ring came from the environment, or may not be written.
        """
        if self.path is None:
            raise BadInput("The key ring comes from the environment; change NITKA_ROOT_KEYS there.")
        with _alone_in(self.path.parent):
            before = self._read()
            after = change(before)
            after.check()
            if after != before:
                _put(self.path, after.to_json(), new=False)
        self._ring = after

    async def claim(self, store: bytes, roots: Iterable[bytes]) -> None:
        needs = frozenset(roots)
        if self.path is None or needs <= self.ring.stores.get(store, frozenset()):
            return
        with contextlib.suppress(BadInput):  # a file that cannot be written loses no root either
            self.update(lambda ring: ring.claimed(store, needs | ring.stores.get(store, frozenset())))

    async def active(self) -> bytes:
        return self.ring.active

    async def holds(self, root: bytes) -> bool:
        return root in self.ring.roots

    async def wrap(self, key: bytes, place: Place, *, root: bytes) -> Sealed:
        return self._key(root).seal(key, place)

    async def unwrap(self, wrapped: Sealed, place: Place, *, root: bytes) -> bytes:
        return self._key(root).open(wrapped, place)

    async def reload(self) -> None:
        if self.path is not None:
            self._ring = self._read()

    def _key(self, root: bytes) -> SealKey:
        try:
            return SealKey(self.ring.roots[root])
        except KeyError as error:
            raise WrongKey("It lacks a root key that this store was written with.") from error

    def _read(self) -> Ring:
        assert self.path is not None
        try:
            if self.path.exists() and not self.path.is_file():
                raise WrongKey("The key file is not a file.")
            return Ring.from_json(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise KeyMissing("The key file is not there; restore it, or name the right one.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise WrongKey("The key file cannot be read; check its permissions.") from error


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Holds a lock on the folder."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise BadInput(f"The key file's folder cannot be opened: {os.strerror(error.errno or 0)}.") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _put(path: Path, text: str, *, new: bool) -> bool:
    """Writes a private file whole: aside, flushed, then linked (if new) or moved into place. False: it was there
    already.
    """
    aside = path.with_name(f".{path.name}.{random_bytes(6).hex()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            _write(aside, text)
            if not new:
                os.replace(aside, path)
            elif not _link(aside, path):
                return False
        finally:
            aside.unlink(missing_ok=True)
        _flush_folder(path.parent)
    except OSError as error:
        raise BadInput(f"The key file cannot be written: {os.strerror(error.errno or 0)}.") from error
    return True


def _write(path: Path, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        _flush(file.fileno())


def _link(aside: Path, path: Path) -> bool:
    try:
        os.link(aside, path)
    except FileExistsError:
        return False
    return True


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _flush(handle: int) -> None:
    """Onto the disk. On macOS a plain fsync ends in the drive's own memory; where the file system cannot do more, it
    has to do.
    """
    full: int | None = getattr(fcntl, "F_FULLFSYNC", None)
    try:
        if full is not None:
            fcntl.fcntl(handle, full)
            return
    except OSError:
        pass
    os.fsync(handle)
