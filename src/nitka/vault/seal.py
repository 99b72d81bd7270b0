"""Sealed bytes: AES-256-GCM with everything that must not change bound to it.

    version (1) | key id (8) | nonce (12) | ciphertext and tag

The plaintext is its length (4 bytes, big endian), the content, and zeros up to the next multiple of 64, so that a
row's size says little about it. Bound as associated data: version, key id, and the fixed-width fields of `Place`.
What does not open raises `Damaged`, whatever the reason; nothing unsealed is ever accepted in place of sealed
bytes. The nonce is 96 random bits taken here from the operating system: the one source of randomness that cannot be
injected. (NIST SP 800-38D: at most 2^32 seals under one key.)
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from enum import IntEnum
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from nitka.errors import Damaged
from nitka.types import Sealed, Tag

VERSION = b"\x01"
KEY_BYTES = 32
STEP = 64
NOWHERE = bytes(16)

_LENGTH = struct.Struct(">I")
_PLACE = struct.Struct(">B16s16sQQ")


class Kind(IntEnum):
    """What a sealed value is. Numbers are part of the format and never reused."""

    USER_KEY = 1
    TAG_KEY = 2
    PROOF = 3
    SESSION = 4
    MESSAGE = 5
    SUMMARY = 6
    WATCH = 7
    FACT = 8
    FACTS = 9
    RECALL = 10
    SEGMENT = 11
    PROFILE = 12
    HANDLE = 13
    API_KEY = 14
    OUTBOX = 15
    TURN_TOKEN = 16
    VISITOR = 17
    INSPECTOR = 18


class Place(NamedTuple):
    """Where a sealed value belongs: it opens nowhere else.

    `number` and `second` are the clear numbers of its row: seq and n of a message, head of a session, cursor and
    version of a fold. A wrapped key is bound to the owner or the tenant it belongs to, in place of a session.
    """

    kind: Kind
    owner_incarnation: bytes
    session_incarnation: bytes = NOWHERE
    number: int = 0
    second: int = 0

    def __str__(self) -> str:
        return f"{self.kind.name.lower()} {self.number}"


class SealKey:
    """A 256-bit key that seals and opens. Its id is derived from it and says nothing about it."""

    __slots__ = ("_aead", "_prefix", "id")

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)
        self.id = derive(key, b"nitka key id")[:8]
        self._prefix = VERSION + self.id

    def seal(self, content: bytes, place: Place) -> Sealed:
        """Sealed bytes that open only under this key and at this place."""
        nonce = os.urandom(12)
        padded = _LENGTH.pack(len(content)) + content
        padded += bytes(-len(padded) % STEP)
        bound = self._prefix + _fields(place)
        return Sealed(self._prefix + nonce + self._aead.encrypt(nonce, padded, bound))

    def open(self, sealed: bytes, place: Place) -> bytes:
        """The content. Raises `Damaged`, naming kind and number of the place and nothing else."""
        bound = self._prefix + _fields(place)
        if not isinstance(sealed, bytes) or not sealed.startswith(self._prefix):
            raise Damaged(f"({place})")
        try:
            padded = self._aead.decrypt(sealed[9:21], sealed[21:], bound)
        except (InvalidTag, ValueError) as error:
            raise Damaged(f"({place})") from error
        return padded[4 : 4 + _LENGTH.unpack_from(padded)[0]]


def _fields(place: Place) -> bytes:
    """The place as bytes. SQLite keeps any value in any column: what fits in no field was not put there by us."""
    try:
        return _PLACE.pack(*place)
    except struct.error as error:
        raise Damaged(f"({place.kind.name.lower()})") from error


class TagKey:
    """Keyed BLAKE2b (RFC 7693): turns external ids into keyed hashes of 16 bytes. Each part is preceded by its
    length: no two lists of parts meet. `sealing` is a key made from it, for what a tenant seals that is no user's.
    """

    __slots__ = ("_key", "sealing")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.sealing = SealKey(derive(key, b"nitka tenant seal"))

    def sealing_in(self, period: int) -> SealKey:
        """A key for what lives no longer than a period of time, by its number: where much is sealed, no key seals more
        than is safe.
        """
        return SealKey(derive(self._key, b"nitka tenant seal in " + period.to_bytes(8)))

    def tag(self, label: bytes, *parts: bytes) -> Tag:
        message = b"".join(_LENGTH.pack(len(part)) + part for part in (label, *parts))
        return Tag(hashlib.blake2b(message, digest_size=16, key=self._key).digest())


class UserKey:
    """A user's key with the two keys made from it: one seals, one makes the tags below the user, and both die with
    it.
    """

    __slots__ = ("seal", "tags")

    def __init__(self, key: bytes) -> None:
        self.seal = SealKey(derive(key, b"nitka seal"))
        self.tags = TagKey(derive(key, b"nitka tags"))


def derive(key: bytes, label: bytes) -> bytes:
    """A key of 32 bytes for one purpose: HKDF-Expand of RFC 5869 with SHA-256, one block."""
    return hmac.digest(key, label + b"\x01", hashlib.sha256)
