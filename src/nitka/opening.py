"""How the parts of a `Nitka` are put together: from names and options to a store, keys, models, folds and turns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nitka.config import Settings
from nitka.conversation import Vault
from nitka.errors import BadInput
from nitka.folds import Folder, affordable
from nitka.layers.facts import CATEGORIES, Category
from nitka.learning import Learner
from nitka.models.choose import choose_chat, choose_embedder
from nitka.models.extract import OfflineSummariser, compact, condense
from nitka.models.extractor import ModelExtractor
from nitka.models.offline import OfflineChat
from nitka.models.offline_facts import OfflineExtractor
from nitka.models.ports import ChatModel, Summariser
from nitka.models.summariser import ModelSummariser
from nitka.people import People
from nitka.profiling import Profiler
from nitka.remembering import Remembering
from nitka.request.parts import Means
from nitka.store.choose import choose_store
from nitka.store.port import Store
from nitka.tokens import Counter, default_counter
from nitka.turns import Turns
from nitka.types import Limits
from nitka.vault.keychain import Keychain
from nitka.vault.roots import KeyRing, Ring, RootKeys
from nitka.watching import Watching
from nitka.world import Clock

if TYPE_CHECKING:
    from nitka.models.embed import Embedder


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What `Nitka.open` was given beside store and models; see there."""

    embedder: str | Embedder | None
    counter: Counter | None
    exclude: Collection[str]
    redact: Callable[[str], str] | None
    keys: str | Path | RootKeys | None
    watch: Mapping[str, str]
    limits: Limits
    clock: Clock


def put_together(
    url: str | Store,
    model: str | ChatModel,
    fold_model: str | ChatModel | Summariser | None,
    given: Given,
    settings: Settings,
) -> tuple[Turns, ChatModel, ChatModel | None]:
    """The turns, the model that answers, and the one that folds where it is a chat model. Raises `BadInput`."""
    limits = _sound(given.limits)
    chat = choose_chat(model, settings)
    counter = given.counter or default_counter()
    store = choose_store(url, wait=limits.wait_seconds, keys=settings.keys_store)
    keychain = Keychain(store.keys, _roots(given.keys, settings), limits)
    vault = Vault(store, keychain, counter.count, counter.name)
    fold_chat = chat if fold_model is None else _fold_chat(fold_model, settings)
    writer = fold_model if isinstance(fold_model, Summariser) else _summariser(fold_chat)
    excluded = _categories(given.exclude)
    watching = Watching(given.watch)
    watching.delivers = bool(settings.serving.webhook)
    remembering = Remembering(choose_embedder(given.embedder, settings), limits)
    people = _people(vault, fold_chat, remembering, limits=limits, clock=given.clock, excluded=excluded)
    folder = Folder(
        vault,
        model=writer,
        offline=OfflineSummariser(),
        watching=watching,
        people=people,
        limits=limits,
        clock=given.clock,
    )
    turns = Turns(
        vault=vault,
        folder=folder,
        watching=watching,
        remembering=remembering,
        means=Means(counter=counter, compact=compact, condense=condense),
        limits=limits,
        clock=given.clock,
        redact=given.redact or str,
        excluded=excluded,
    )
    return turns, chat, fold_chat


def _people(
    vault: Vault,
    chat: ChatModel | None,
    remembering: Remembering,
    *,
    limits: Limits,
    clock: Clock,
    excluded: frozenset[Category],
) -> People:
    """The folds of a person, with a model where one writes the summaries."""
    model = None if chat is None or isinstance(chat, OfflineChat) else ModelExtractor(chat)

    async def afford(tokens: int) -> bool:
        return await affordable(vault, limits, clock, tokens)

    learner = Learner(
        vault=vault,
        model=model,
        offline=OfflineExtractor(),
        limits=limits,
        afford=afford,
        clock=clock,
        excluded=excluded,
        embeds=remembering.embedder is not None,
    )
    profiler = Profiler(
        vault=vault, model=model, offline=OfflineExtractor(), limits=limits, afford=afford, excluded=excluded
    )
    return People(vault=vault, learner=learner, profiler=profiler, remembering=remembering)


def _categories(exclude: Collection[str]) -> frozenset[Category]:
    """Raises `BadInput` for a category that does not exist: a slip must not keep what it should not."""
    chosen = frozenset(category for category in CATEGORIES if category in exclude)
    if isinstance(exclude, str) or len(chosen) != len(set(exclude)):
        raise BadInput(f"Categories of facts are {', '.join(CATEGORIES)}.")
    return chosen


def _sound(limits: Limits) -> Limits:
    """Raises `BadInput` for a negative number. What a window and its slack hold is no backlog, however large they are:
    it is never folded, and an open that waited for that would not end.
    """
    if any(value is not None and value < 0 for value in astuple(limits)):
        raise BadInput("No limit is negative.")
    return replace(limits, backlog=max(limits.backlog, limits.window + limits.slack))


def _roots(keys: str | Path | RootKeys | None, settings: Settings) -> RootKeys:
    if keys is None and settings.root_keys:
        return KeyRing(Ring.from_text(settings.root_keys))
    if keys is None or isinstance(keys, str | Path):
        return KeyRing(None, path=Path(keys or settings.key_file))
    return keys


def _fold_chat(fold_model: str | ChatModel | Summariser, settings: Settings) -> ChatModel | None:
    """The chat model that writes the summaries; None where a summariser of the caller's own does."""
    if isinstance(fold_model, Summariser):
        return None
    return choose_chat(fold_model, settings)


def _summariser(chat: ChatModel | None) -> Summariser | None:
    """What asks the model for a summary; None where the offline summariser does it."""
    return None if chat is None or isinstance(chat, OfflineChat) else ModelSummariser(chat)
