"""Sealed bytes: what they are, and that they open under one key at one place or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.errors import Damaged
from nitka.types import Sealed
from nitka.vault.seal import KEY_BYTES, STEP, Kind, Place, SealKey, TagKey, UserKey, derive

VECTORS = json.loads((Path(__file__).parent / "corpus" / "seal_vectors.json").read_text(encoding="utf-8"))
KEY = SealKey(bytes(range(KEY_BYTES)))

lives = st.binary(min_size=16, max_size=16)
numbers = st.integers(0, 2**64 - 1)
places = st.builds(Place, st.sampled_from(Kind), lives, lives, numbers, numbers)
contents = st.binary(max_size=400)
parts = st.lists(st.binary(max_size=6), max_size=4)


def place(fields: dict[str, object]) -> Place:
    return Place(
        Kind[str(fields["kind"])],
        bytes.fromhex(str(fields["owner"])),
        bytes.fromhex(str(fields["session"])),
        int(str(fields["number"])),
        int(str(fields["second"])),
    )


@pytest.mark.parametrize("vector", VECTORS["sealed"], ids=lambda vector: vector["place"]["kind"])
def test_what_was_sealed_once_opens_for_ever(vector: dict[str, object]) -> None:
    key = SealKey(bytes.fromhex(str(vector["key"])))
    fields = vector["place"]
    assert isinstance(fields, dict)
    opened = key.open(bytes.fromhex(str(vector["sealed"])), place(fields))
    assert opened.decode("utf-8") == vector["content"]


@pytest.mark.parametrize("vector", VECTORS["keys"])
def test_ids_and_keys_are_derived_as_they_always_were(vector: dict[str, str]) -> None:
    key = bytes.fromhex(vector["key"])
    assert SealKey(key).id.hex() == vector["id"]
    assert UserKey(key).seal.id.hex() == vector["user_seal_id"]
    assert UserKey(key).tags.tag(b"session", b"web-1").hex() == vector["user_session_tag"]
    assert TagKey(key).tag(b"user", b"anna").hex() == vector["user_tag"]


def test_derive_is_hkdf_expand() -> None:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

    expected = HKDFExpand(SHA256(), 32, b"nitka seal").derive(bytes(32))
    assert derive(bytes(32), b"nitka seal") == expected


@given(contents, places)
def test_what_was_sealed_opens_at_its_place(content: bytes, where: Place) -> None:
    assert KEY.open(KEY.seal(content, where), where) == content


@given(contents, places, st.data())
def test_any_flipped_bit_is_damage(content: bytes, where: Place, data: st.DataObject) -> None:
    sealed = bytearray(KEY.seal(content, where))
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Damaged):
        KEY.open(bytes(sealed), where)


def test_every_single_bit_of_one_value_counts() -> None:
    where = Place(Kind.MESSAGE, b"o" * 16, b"s" * 16, 1, 2)
    sealed = KEY.seal(b"hello", where)
    for bit in range(8 * len(sealed)):
        flipped = bytearray(sealed)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Damaged):
            KEY.open(bytes(flipped), where)


@given(contents, places, places)
def test_a_value_that_was_moved_is_damage(content: bytes, where: Place, elsewhere: Place) -> None:
    sealed = KEY.seal(content, where)
    if elsewhere != where:
        with pytest.raises(Damaged):
            KEY.open(sealed, elsewhere)


MOVES = {
    "kind": {"kind": Kind.SUMMARY},
    "owner": {"owner_incarnation": b"O" * 16},
    "session": {"session_incarnation": b"S" * 16},
    "number": {"number": 2},
    "second": {"second": 1},
    "numbers swapped": {"number": 2, "second": 1},
    "lives swapped": {"owner_incarnation": b"s" * 16, "session_incarnation": b"o" * 16},
}


@pytest.mark.parametrize("what", MOVES)
def test_each_part_of_a_place_counts(what: str) -> None:
    where = Place(Kind.MESSAGE, b"o" * 16, b"s" * 16, 1, 2)
    sealed = KEY.seal(b"hello", where)
    with pytest.raises(Damaged):
        KEY.open(sealed, where._replace(**MOVES[what]))  # type: ignore[arg-type]


@given(st.binary(max_size=200), places)
def test_bytes_that_were_never_sealed_are_damage(junk: bytes, where: Place) -> None:
    """No plaintext is accepted in place of sealed bytes, not even behind the right first bytes."""
    for sealed in (junk, b"\x01" + KEY.id + junk):
        with pytest.raises(Damaged):
            KEY.open(sealed, where)


@given(contents, places, st.integers(0, 100))
def test_cut_off_values_are_damage(content: bytes, where: Place, cut: int) -> None:
    sealed = KEY.seal(content, where)
    with pytest.raises(Damaged):
        KEY.open(sealed[: -1 - cut], where)


@given(contents, places)
def test_another_key_opens_nothing(content: bytes, where: Place) -> None:
    with pytest.raises(Damaged):
        SealKey(bytes(KEY_BYTES)).open(KEY.seal(content, where), where)


@given(st.integers(0, 500))
def test_sizes_grow_in_steps(size: int) -> None:
    where = Place(Kind.MESSAGE, b"o" * 16)
    sealed = KEY.seal(b"x" * size, where)
    head = 1 + 8 + 12
    padded = len(sealed) - head - 16
    assert padded % STEP == 0
    assert size + 4 <= padded < size + 4 + STEP


def test_no_two_seals_are_alike() -> None:
    where = Place(Kind.MESSAGE, b"o" * 16)
    assert len({KEY.seal(b"same", where)[9:21] for _ in range(500)}) == 500


def test_the_error_names_the_place_and_nothing_of_the_content() -> None:
    where = Place(Kind.MESSAGE, b"o" * 16, b"s" * 16, 41, 99)
    sealed = KEY.seal(b"a secret word", where)
    with pytest.raises(Damaged) as caught:
        KEY.open(sealed, where._replace(second=98))
    assert "(message 41)" in str(caught.value)
    assert "secret" not in str(caught.value)


@given(st.binary(max_size=6), parts, st.binary(max_size=6), parts)
def test_tags_never_meet_for_different_parts(
    label: bytes, one: list[bytes], other_label: bytes, other: list[bytes]
) -> None:
    tags = TagKey(bytes(KEY_BYTES))
    same = (label, one) == (other_label, other)
    assert (tags.tag(label, *one) == tags.tag(other_label, *other)) is same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((b"a:b", b"c"), (b"a", b"b:c")),
        ((b"ab", b"c"), (b"a", b"bc")),
        ((b"ab",), (b"a", b"b")),
        ((b"a", b""), (b"a",)),
        ((b"", b"a"), (b"a", b"")),
        ((b"a\0b",), (b"a", b"b")),
        ((b"\0\0\0\x01a",), (b"", b"a")),
    ],
)
def test_is_5_ids_with_separators_inside_do_not_collide(one: tuple[bytes, ...], other: tuple[bytes, ...]) -> None:
    tags = TagKey(bytes(KEY_BYTES))
    assert tags.tag(b"user", *one) != tags.tag(b"user", *other)


def test_tags_need_the_key() -> None:
    assert TagKey(bytes(KEY_BYTES)).tag(b"user", b"anna") != TagKey(bytes(31) + b"\x01").tag(b"user", b"anna")


def test_keys_are_not_shown() -> None:
    assert "000102" not in repr(KEY) + repr(UserKey(bytes(range(KEY_BYTES)))) + repr(Sealed(b""))
