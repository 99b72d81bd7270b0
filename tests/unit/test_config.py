"""The environment is read in one place, checked there, and never quoted."""

import asyncio
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.config import CHECKS, OPENAI, Serving, Settings
from nitka.errors import BadInput
from nitka.store.choose import choose_store
from nitka.store.sqlite import SqliteStore

TAIL = "cannot be used as it is."
HOME = {"HOME": "/home/anna"}
GOOD = {
    "OPENAI_BASE_URL": "http://user:hush-hush@localhost:11434/v1/",
    "OPENAI_API_KEY": "sk-very-secret",
    "NITKA_ROOT_KEYS": "one:c2VjcmV0\ntwo:aGlkZGVu",
    "NITKA_KEY_FILE": "/etc/nitka/ключи.json",
    "NITKA_STORE": "postgresql://nitka:pass-word@db/nitka",
    "NITKA_KEYS": "postgresql://nitka:word-pass@keys/nitka",
    "NITKA_MODEL": "openai:gpt-5-mini",
    "NITKA_TIMEOUT": "7.5",
    "NITKA_HOST": "::1",
    "NITKA_PORT": "8443",
    "NITKA_WORKERS": "4",
    "NITKA_GRACE": "12.5",
    "NITKA_BODY_BYTES": "65536",
    "NITKA_FOLD_MODEL": "offline",
    "NITKA_WATCH": "shop = fraud towards our buyers; школа=protecting pupils",
    "NITKA_WEBHOOK_URL": "https://ops:pass-phrase@alerts.example/nitka",
    "NITKA_WEBHOOK_SECRET": f"whsec_{'A' * 32} whsec_{'B' * 32}",
    "NITKA_ANONYMOUS": "passthrough",
}
BAD = {
    "OPENAI_BASE_URL": [
        "localhost:11434",
        "ftp://localhost/v1",
        "http://",
        "http://h:99999/v1",
        "http://h:port",
        "http://a b/",
        "http://[::1",
    ],
    "OPENAI_API_KEY": ["two words", "ключ", "sk-\udcff", "sk-\n"],
    "NITKA_ROOT_KEYS": ["  ", "a\x00b", "one:\udcff"],
    "NITKA_KEY_FILE": ["  ", "/etc/\x00", "/etc/\udcff"],
    "NITKA_STORE": ["  ", "nitka.db", "sqlite:///a\x00b"],
    "NITKA_KEYS": ["  ", "keys", "postgresql:///a\x00b"],
    "NITKA_MODEL": ["  ", "openai:\udcff", "openai:a\nb"],
    "NITKA_TIMEOUT": ["0", "-1", "soon", "nan", "inf", "1e3", "²", "1.2.3", "99999"],
    "NITKA_HOST": ["two words", "хост", "a\n"],
    "NITKA_PORT": ["-1", "65536", "http", "²", "8 0", "1e3"],
    "NITKA_WORKERS": ["0", "257", "two", "9" * 5000],
    "NITKA_GRACE": ["0", "nan", "99999"],
    "NITKA_BODY_BYTES": ["10", "20MB", str(2 << 30)],
    "NITKA_FOLD_MODEL": ["  ", "openai:\udcff"],
    "NITKA_WATCH": ["  ", "shop=", "=fraud", ";", "shop=a;shop=b", "a=b;", "a=\x00"],
    "NITKA_WEBHOOK_URL": ["alerts.example", "ftp://alerts.example"],
    "NITKA_WEBHOOK_SECRET": ["hush", "whsec_", "whsec_short", "whsec_" + "я" * 32],
    "NITKA_ANONYMOUS": ["yes", "Passthrough", "1"],
}


def test_an_empty_environment_gives_the_defaults() -> None:
    settings = Settings.read(HOME)
    assert (settings.base_url, settings.api_key, settings.root_keys, settings.model) == (OPENAI, "", "", "offline")
    assert settings.key_file == Path("/home/anna/.config/nitka/keys.json")
    assert settings.store == "sqlite:////home/anna/.local/share/nitka/nitka.db"


@pytest.mark.parametrize("folder", ["100% anna", "a%20b", "що?", "#1", "дом", os.fsdecode(b"caf\xe9")])
def test_the_default_store_lies_where_the_folder_is_whatever_its_name(folder: str, tmp_path: Path) -> None:
    """A name of a home folder is no URL: what would mean something in one is encoded, and comes back as it was."""
    home = tmp_path / folder
    store = choose_store(Settings.read({"HOME": str(home)}).store, wait=1)
    assert isinstance(store, SqliteStore)
    assert store.paths[0] == str(home / ".local/share/nitka/nitka.db")
    (home / ".local/share/nitka").mkdir(parents=True)
    asyncio.run(started(store))
    assert (home / ".local/share/nitka/nitka.db").is_file()


async def started(store: SqliteStore) -> None:
    await store.start()
    await store.close()


@pytest.mark.parametrize("url", ["sqlite:///a%00b", "sqlite:////tmp/%00", "sqlite:///a\0b", "sqlite:///"])
def test_a_path_that_cannot_be_one_is_bad_input(url: str) -> None:
    with pytest.raises(BadInput):
        choose_store(url, wait=1)


def test_what_is_set_is_taken() -> None:
    settings = Settings.read(HOME | GOOD)
    assert settings == Settings(
        base_url="http://user:hush-hush@localhost:11434/v1",
        api_key=GOOD["OPENAI_API_KEY"],
        root_keys=GOOD["NITKA_ROOT_KEYS"],
        key_file=Path(GOOD["NITKA_KEY_FILE"]),
        store=GOOD["NITKA_STORE"],
        keys_store=GOOD["NITKA_KEYS"],
        model=GOOD["NITKA_MODEL"],
        timeout=7.5,
        serving=Serving(
            host="::1",
            port=8443,
            workers=4,
            grace=12.5,
            body_bytes=65_536,
            fold_model="offline",
            anonymous=True,
            watch={"shop": "fraud towards our buyers", "школа": "protecting pupils"},
            webhook=GOOD["NITKA_WEBHOOK_URL"],
            webhook_secrets=GOOD["NITKA_WEBHOOK_SECRET"],
        ),
    )


def test_an_empty_variable_is_as_if_unset() -> None:
    assert Settings.read(HOME | dict.fromkeys(CHECKS, "")) == Settings.read(HOME)


def test_xdg_folders_are_followed_and_relative_ones_ignored() -> None:
    there = Settings.read(HOME | {"XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"})
    assert (there.key_file, there.store) == (Path("/c/nitka/keys.json"), "sqlite:////d/nitka/nitka.db")
    assert Settings.read(HOME | {"XDG_CONFIG_HOME": "c", "XDG_DATA_HOME": "d"}) == Settings.read(HOME)


def test_a_tilde_in_the_key_file_is_the_home_folder() -> None:
    assert Settings.read(HOME | {"NITKA_KEY_FILE": "~/k.json"}).key_file == Path("/home/anna/k.json")


def test_secrets_stay_out_of_repr() -> None:
    shown = repr(Settings.read(HOME | GOOD))
    for secret in ("hush-hush", "sk-very-secret", "c2VjcmV0", "pass-word", "pass-phrase", "whsec_"):
        assert secret not in shown


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_malformed_value_is_named_and_not_shown(name: str, value: str) -> None:
    with pytest.raises(BadInput) as caught:
        Settings.read(HOME | GOOD | {name: value})
    assert name in str(caught.value)
    assert value.strip() == "" or value not in str(caught.value)
    assert all(other not in str(caught.value) for other in CHECKS if other != name)


def test_everything_wrong_is_told_at_once() -> None:
    with pytest.raises(BadInput) as caught:
        Settings.read(HOME | {name: values[0] for name, values in BAD.items()})
    assert all(name in str(caught.value) for name in CHECKS)


@given(st.dictionaries(st.sampled_from(sorted(CHECKS)), st.text(st.characters(codec=None), min_size=8, max_size=40)))
def test_any_environment_is_either_read_or_refused_without_a_quotation(environ: dict[str, str]) -> None:
    try:
        Settings.read(HOME | environ)
    except BadInput as error:
        told = set(re.findall(r"[A-Z]+_[A-Z_]+", str(error)))
        assert told and told <= environ.keys()
        assert str(error) == str(BadInput(f"Environment: {', '.join(n for n in CHECKS if n in told)} {TAIL}"))
