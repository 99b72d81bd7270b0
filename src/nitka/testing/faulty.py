"""A store that fails at its n-th call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from nitka.errors import StoreError
from nitka.store.port import KeyStore, Store


class InjectedFault(StoreError):
    """A fault that a test asked for."""


class FaultyStore:
    """Wraps a store; the call number `at` (counted from 0, over the store and its keys) fails once.

    `after` says whether the call takes effect before it fails: the outcome is then unknown to the caller, as it is
    when a connection breaks during a commit. `calls` counts; a test that runs with at = 0, 1, 2, … is done when
    `calls` stays at or below `at`.
    """

    def __init__(self, store: Store, *, at: int, after: bool = False) -> None:
        self._store = store
        self._at = at
        self._after = after
        self.calls = 0
        self.keys = cast(KeyStore, _Faulty(store.keys, self))

    def __getattr__(self, name: str) -> Any:
        return self.wrap(getattr(self._store, name), name)

    def wrap(self, method: Any, name: str) -> Any:
        """The method with the fault in it. Opening and closing never fail."""
        if not callable(method) or name in ("start", "close"):
            return method
        return self._call(method)

    def _call(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            number, self.calls = self.calls, self.calls + 1
            if number != self._at:
                return await method(*args, **kwargs)
            if self._after:
                await method(*args, **kwargs)
            raise InjectedFault()

        return call


class _Faulty:
    def __init__(self, keys: KeyStore, store: FaultyStore) -> None:
        self._keys = keys
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return self._store.wrap(getattr(self._keys, name), name)
