"""The ring of root keys: its file, the race to make it, what is refused, and rings from the environment."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nitka.errors import BadInput, KeyMissing, WrongKey
from nitka.vault.roots import KeyRing, Ring
from nitka.vault.seal import Kind, Place, SealKey

pytestmark = pytest.mark.anyio

STORE, OTHER = b"s" * 16, b"o" * 16


def made(path: Path) -> KeyRing:
    ring = KeyRing(None, path=path)
    asyncio.run(ring.prepare(fresh=True))
    return ring


def text(*keys: bytes) -> str:
    return ",".join(base64.b64encode(key).decode() for key in keys)


def test_a_ring_survives_its_file() -> None:
    ring = Ring.new().with_new_root(STORE).claimed(OTHER, [b"12345678"])
    assert Ring.from_json(ring.to_json()) == ring
    assert len(ring.roots) == 2


def test_the_file_is_made_once_private_and_said_in_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "config" / "nitka" / "keys.json"
    with caplog.at_level(logging.DEBUG):
        ring = made(path)
        made(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in path.parent.iterdir()] == ["keys.json"], "nothing is left aside"
    assert len([record for record in caplog.records if record.name == "nitka"]) == 1
    assert str(path) in caplog.text
    assert all(base64.b64encode(key).decode() not in caplog.text for key in ring.ring.roots.values())


async def test_no_file_is_made_where_a_store_is_in_use(tmp_path: Path) -> None:
    with pytest.raises(KeyMissing):
        await KeyRing(None, path=tmp_path / "keys.json").prepare(fresh=False)
    assert list(tmp_path.iterdir()) == []


def test_of_two_who_make_it_at_once_both_get_the_same(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path; from nitka.vault.roots import KeyRing\n"
        "ring = KeyRing(None, path=Path(sys.argv[1])); sys.stdin.read()\n"
        "asyncio.run(ring.prepare(fresh=True)); print(ring.ring.active.hex())"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "keys.json")]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for racer in racers:  # they wait for the end of their input, and start together
        assert racer.stdin is not None
        racer.stdin.close()
        racer.stdin = None
    said = {racer.communicate()[0] for racer in racers}
    assert len(said) == 1
    assert all(racer.returncode == 0 for racer in racers)
    assert [path.name for path in tmp_path.iterdir()] == ["keys.json"]


def test_the_loser_of_the_race_reads_what_won(tmp_path: Path) -> None:
    """Seen from inside: the file appears after the loser found none."""
    path = tmp_path / "keys.json"
    winner = Ring.new()

    class Late(KeyRing):
        def _read(self) -> Ring:
            try:
                return super()._read()
            finally:
                path.write_text(winner.to_json())

    ring = Late(None, path=path)
    asyncio.run(ring.prepare(fresh=True))
    assert ring.ring == winner


def altered(change: dict[str, object]) -> str:
    return json.dumps({**json.loads(Ring.new().to_json()), **change})


BAD_FILES = {
    "empty": "",
    "not JSON": "keys!",
    "a list": "[]",
    "another version": altered({"version": 2}),
    "no version": json.dumps({"active": "00", "roots": {}}),
    "active is not there": altered({"active": "00" * 8}),
    "no roots": altered({"roots": {}}),
    "roots is a list": altered({"roots": []}),
    "an id that is not the key's": altered({"active": "00" * 8, "roots": {"00" * 8: text(bytes(32))}}),
    "a short key": altered(
        {"active": SealKey(bytes(16)).id.hex(), "roots": {SealKey(bytes(16)).id.hex(): text(bytes(16))}}
    ),
    "a key that is no base64": altered({"roots": {"00" * 8: "%%%"}}),
    "cut off": Ring.new().to_json()[:-30],
}


@pytest.mark.parametrize("what", BAD_FILES)
async def test_a_bad_file_is_a_wrong_key_and_stays_as_it_is(tmp_path: Path, what: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(BAD_FILES[what])
    for fresh in (True, False):
        with pytest.raises(WrongKey):
            await KeyRing(None, path=path).prepare(fresh=fresh)
    assert path.read_text() == BAD_FILES[what]


async def test_bytes_that_are_no_text_are_a_wrong_key(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WrongKey):
        await KeyRing(None, path=tmp_path / "keys.json").prepare(fresh=True)


async def test_a_folder_in_the_place_of_the_file_or_of_its_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "keys.json").mkdir()
    with pytest.raises(WrongKey):
        await KeyRing(None, path=tmp_path / "keys.json").prepare(fresh=True)
    (tmp_path / "file").touch()
    with pytest.raises((BadInput, WrongKey)):
        await KeyRing(None, path=tmp_path / "file" / "keys.json").prepare(fresh=True)


def test_a_changed_file_stays_private_and_whole_and_what_a_link_leads_to_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "real" / "keys.json"
    made(path)
    (tmp_path / "link.json").symlink_to(path)
    ring = made(tmp_path / "link.json")
    before = ring.ring
    ring.update(lambda now: now.with_new_root(STORE))
    assert (tmp_path / "link.json").is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert set(before.roots) < set(Ring.from_json(path.read_text()).roots)
    assert [path.name for path in path.parent.iterdir()] == ["keys.json"]


def test_changes_of_two_who_read_the_same_file_are_both_kept(tmp_path: Path) -> None:
    one, two = made(tmp_path / "keys.json"), made(tmp_path / "keys.json")
    one.update(lambda now: now.with_new_root(STORE))
    two.update(lambda now: now.with_new_root(OTHER))
    assert len(two.ring.roots) == 3
    assert set(two.ring.stores) == {STORE, OTHER}


async def test_what_a_store_needs_is_remembered_once(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    ring = KeyRing(None, path=path)
    await ring.prepare(fresh=True)
    await ring.claim(STORE, [ring.ring.active])
    written = path.stat().st_mtime_ns, path.stat().st_ino
    await ring.claim(STORE, [ring.ring.active])
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == written
    assert Ring.from_json(path.read_text()).stores == {STORE: frozenset([ring.ring.active])}


def test_an_old_root_that_another_store_needs_stays() -> None:
    ring = Ring.new()
    old = ring.active
    ring = ring.claimed(STORE, [old]).claimed(OTHER, [old]).with_new_root(STORE)
    assert set(ring.without_old(STORE, [ring.active]).roots) == {old, ring.active}
    alone = ring.claimed(OTHER, [])
    assert set(alone.without_old(STORE, [ring.active]).roots) == {ring.active}


def test_the_active_root_is_never_taken_away() -> None:
    ring = Ring.new()
    assert ring.claimed(STORE, [ring.active]).without_old(STORE, []).roots == ring.roots


@pytest.mark.parametrize(
    "wrong", ["", "x", "c2hvcnQ=", text(bytes(32)) + ",", text(bytes(32), bytes(31)), text(bytes(32), bytes(32))]
)
def test_bad_rings_of_the_environment_are_refused_without_being_quoted(wrong: str) -> None:
    with pytest.raises(BadInput) as caught:
        Ring.from_text(wrong)
    assert not wrong or wrong not in str(caught.value)


async def test_the_first_key_of_the_environment_is_active_and_all_of_them_open(tmp_path: Path) -> None:
    keys = (bytes(32), bytes(range(32)))
    ring = KeyRing(Ring.from_text(" " + text(*keys).replace(",", " , ")))
    await ring.prepare(fresh=False)
    assert await ring.active() == SealKey(keys[0]).id
    where = Place(Kind.USER_KEY, b"1" * 16)
    for key in keys:
        root = SealKey(key).id
        assert await ring.holds(root)
        assert await ring.unwrap(await ring.wrap(b"content", where, root=root), where, root=root) == b"content"
    with pytest.raises(BadInput):
        ring.update(lambda now: now.with_new_root(STORE))
    await ring.reload()
    await ring.claim(STORE, [SealKey(keys[0]).id])


async def test_a_root_that_is_not_there_is_a_wrong_key(tmp_path: Path) -> None:
    ring = KeyRing(Ring.new())
    with pytest.raises(WrongKey):
        await ring.wrap(b"key", Place(Kind.USER_KEY, b"1" * 16), root=b"12345678")


def test_keys_are_not_shown() -> None:
    ring = Ring.new()
    shown = repr(ring) + repr(KeyRing(ring))
    assert not any(key.hex() in shown or repr(key) in shown for key in ring.roots.values())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
async def test_a_file_that_may_not_be_read_is_a_wrong_key(tmp_path: Path) -> None:
    made(tmp_path / "keys.json")
    (tmp_path / "keys.json").chmod(0)
    with pytest.raises(WrongKey):
        await KeyRing(None, path=tmp_path / "keys.json").prepare(fresh=True)


@pytest.mark.parametrize("what", ["folder", "pipe", "deep", "circle"])
def test_what_is_no_key_file_is_one_clear_error(tmp_path: Path, what: str) -> None:
    path = tmp_path / "keys.json"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "circle":
        path.symlink_to(path)
    else:
        path.write_text("[" * 200_000, encoding="utf-8")
    with pytest.raises((WrongKey, BadInput)):
        _ = KeyRing(None, path=path).ring
