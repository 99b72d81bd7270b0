"""Root keys: what wraps the users' keys.

A ring holds several root keys, one of them active. `KeyRing` lies in a file, made on first use, or comes from the
environment; a key management service can stand in its place behind the `RootKeys` port.

The file is JSON: {"version": 1, "active": ID, "roots": {ID: base64 of 32 bytes}}. It is written aside, flushed with
its folder, and put in place: a new one by `link`, so that of two processes one wins and the other reads what won.
"""

from __future__ import annotations

import base64
import json
import logging
import os
from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True)
class Ring:
    """Several root keys, one active. The keys are kept out of `repr`."""

    active: bytes
    roots: Mapping[bytes, bytes] = field(repr=False)

    @classmethod
    def new(cls) -> Ring:
        key = random_bytes(KEY_BYTES)
        return cls(SealKey(key).id, {SealKey(key).id: key})

    def with_new_root(self) -> tuple[Ring, bytes]:
        """The ring with one more root, not yet active, and its id."""
        key = random_bytes(KEY_BYTES)
        root = SealKey(key).id
        return replace(self, roots={**self.roots, root: key}), root

    def without(self, root: bytes) -> Ring:
        return replace(self, roots={id_: key for id_, key in self.roots.items() if id_ != root})

    def to_json(self) -> str:
        roots = {id_.hex(): base64.b64encode(key).decode() for id_, key in self.roots.items()}
        return json.dumps({"version": 1, "active": self.active.hex(), "roots": roots}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Ring:
        """Raises `WrongKey` for anything but a ring, without repeating a byte of it."""
        try:
            data = json.loads(text)
            roots = {bytes.fromhex(id_): base64.b64decode(key, validate=True) for id_, key in data["roots"].items()}
            ring = cls(bytes.fromhex(data["active"]), roots)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
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
        if any(len(key) != KEY_BYTES for key in keys):
            raise BadInput(f"NITKA_ROOT_KEYS must hold keys of {KEY_BYTES} bytes in base64.")
        return cls(SealKey(keys[0]).id, {SealKey(key).id: key for key in keys})

    def check(self) -> None:
        if self.active not in self.roots or any(SealKey(key).id != id_ for id_, key in self.roots.items()):
            raise WrongKey("The key file is damaged.")


class KeyRing:
    """Root keys from a file or from the environment. `path` is None where they came from the environment."""

    def __init__(self, ring: Ring | None, *, path: Path | None = None) -> None:
        self._ring = ring
        self.path = path

    @property
    def ring(self) -> Ring:
        if self._ring is None:
            self._ring = self._read()
        return self._ring

    async def prepare(self, *, fresh: bool) -> None:
        if self._ring is not None or self.path is None or self.path.exists() or not fresh:
            _ = self.ring  # raises what is wrong with it
        elif _put(self.path, Ring.new().to_json(), new=True):
            log.warning(
                "made a key file at %s: whoever loses it loses every stored conversation; keep a copy", self.path
            )

    def replace(self, ring: Ring) -> None:
        """Puts a changed ring in the file's place. Raises `BadInput` for a ring that came from the environment."""
        if self.path is None:
            raise BadInput("The key ring comes from the environment; change NITKA_ROOT_KEYS there.")
        _put(self.path, ring.to_json(), new=False)
        self._ring = ring

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
            return Ring.from_json(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise KeyMissing("The key file is not there; restore it, or name the right one.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise WrongKey("The key file cannot be read; check its permissions.") from error


def _put(path: Path, text: str, *, new: bool) -> bool:
    """Writes a private file whole: aside, flushed, then linked (if new) or moved into place. False: it was there
    already.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    aside = path.with_name(f".{path.name}.{random_bytes(6).hex()}")
    try:
        with open(
            os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if new:
            os.link(aside, path)
        else:
            os.replace(aside, path)
    except FileExistsError:
        return False
    except OSError as error:
        raise BadInput(f"The key file cannot be written: {os.strerror(error.errno or 0)}.") from error
    finally:
        aside.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True
