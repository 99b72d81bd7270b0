"""The names of `nitka.Nitka` for code that does not await.

    with nitka.sync.Nitka.open("sqlite:///nitka.db") as nitka:
        reply = nitka.say("anna", "web-1", text="What did we decide about the cake?")

Rules:
* Nothing is written twice: each method is derived from the async one, its signature and its docstring included. What
  it returns is waited for; a block becomes a `with` block, an async iterator an iterator.
* One daemon thread with one event loop does the work of a process. So this can be used inside a running loop and in a
  notebook (which it holds up meanwhile); not from inside a callback that the loop itself runs.
* Ctrl-C while waiting cancels what is waited for and lets it end properly: an answer cut off in the middle is kept.
* What is still open at the end of the process is closed then. What was opened before a fork is refused after it;
  the child opens its own.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial, update_wrapper
from types import TracebackType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, cast, overload
from weakref import WeakSet

from nitka import app, turn
from nitka.errors import BadInput
from nitka.turn import Turn
from nitka.types import Alert, Person, Receipt, Reply

__all__ = ["Block", "Nitka", "Pieces", "Stream"]

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


LOOK = 0.2
"""Seconds. Python acts on a signal between two steps of the main thread: one that comes just as that falls asleep, or
to another thread, does not wake it."""


class _AsyncIterator(Protocol[T_co]):
    """What both an async generator and a stream can do."""

    def __anext__(self) -> Awaitable[T_co]: ...


class _Worker:
    """The thread and its event loop."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.opened: WeakSet[Nitka] = WeakSet()
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_Pool())
        self._thread = threading.Thread(target=self._loop.run_forever, name="nitka-sync", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Waits for the work. Interrupted, it cancels the work and waits for its end before it goes on, however
        often it is interrupted then: what comes next must not meet work that still runs.
        """
        result: Future[T] = Future()
        tasks: list[asyncio.Task[T]] = []

        def start() -> None:
            tasks.append(self._loop.create_task(work()))
            tasks[0].add_done_callback(partial(_hand_over, result))

        def cancel() -> None:
            if tasks:
                tasks[0].cancel()
            elif not result.done():  # the interruption came before the start was handed over
                result.set_exception(asyncio.CancelledError())

        self._check()
        try:
            self._loop.call_soon_threadsafe(start)
            while not wait([result], timeout=LOOK).done:
                pass
            return result.result()
        except BaseException:
            while not result.done():
                with suppress(KeyboardInterrupt):
                    self._loop.call_soon_threadsafe(cancel)
                    wait([result])
            raise

    def _check(self) -> None:
        if os.getpid() != self.pid:
            raise BadInput("This was opened before the process forked; open it anew in the child.")
        if threading.current_thread() is self._thread:
            raise BadInput("A callback that nitka runs cannot wait for nitka.")
        if not self._thread.is_alive():
            raise BadInput("The process is ending.")

    def stop(self) -> None:
        """At the end of the process: closes what is open, then the loop."""
        if os.getpid() != self.pid:
            return
        for nitka in list(self.opened):
            nitka.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class _Pool(ThreadPoolExecutor):
    """Threads, as long as they take work. From the moment the process is ending they take none, before anything is told
    of it: then the thread that asks does it at once.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:
            return _at_once(partial(fn, *args, **kwargs))


def _at_once(work: Callable[[], T]) -> Future[T]:
    done: Future[T] = Future()
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001  # kept, and raised where the work was asked for
        done.set_exception(error)
    return done


def _hand_over(result: Future[T], task: asyncio.Task[T]) -> None:
    if task.cancelled():
        result.set_exception(asyncio.CancelledError())
    elif (error := task.exception()) is not None:
        result.set_exception(error)
    else:
        result.set_result(task.result())


_starting = threading.Lock()
_workers: list[_Worker] = []


def _worker() -> _Worker:
    """This process's worker; a child made by a fork gets one of its own."""
    with _starting:
        if not _workers or _workers[-1].pid != os.getpid():
            _workers[:] = [_Worker()]
            atexit.register(_workers[0].stop)
        return _workers[0]


def _after_fork() -> None:
    global _starting
    _starting = threading.Lock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork)


class Block:
    """The block around a turn: `with nitka.turn(...) as turn`."""

    def __init__(self, block: turn.TurnBlock, worker: _Worker) -> None:
        self._block = block
        self._worker = worker

    def __enter__(self) -> Turn:
        return self._worker.run(self._block.__aenter__)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.run(partial(self._block.__aexit__, kind, error, trace))


class Pieces(Generic[T]):
    """An iterator over what an async iterator gives. `close` ends it early."""

    def __init__(self, source: _AsyncIterator[T], worker: _Worker) -> None:
        self._source = source
        self._worker = worker

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        found, item = self._worker.run(partial(_next, self._source))
        if not found:
            raise StopIteration
        return cast(T, item)

    def close(self) -> None:
        """Ends it, whether or not it was read to its end."""
        close = getattr(self._source, "aclose", None)
        if close is not None:
            self._worker.run(close)


async def _next(source: _AsyncIterator[T]) -> tuple[bool, T | None]:
    try:
        return True, await source.__anext__()
    except StopAsyncIteration:
        return False, None


class Stream(Pieces[str]):
    """An answer that comes in pieces: `with nitka.say(..., stream=True) as pieces`, then `for piece in pieces`."""

    def __init__(self, source: turn.Stream, worker: _Worker) -> None:
        super().__init__(source, worker)
        self._stream = source

    @property
    def text(self) -> str:
        return self._stream.text

    @property
    def receipt(self) -> Receipt | None:
        return self._stream.receipt

    @property
    def alerts(self) -> tuple[Alert, ...]:
        return self._stream.alerts

    @property
    def interrupted(self) -> bool:
        return self._stream.interrupted

    @property
    def replayed(self) -> bool:
        return self._stream.replayed

    @property
    def seq(self) -> int | None:
        return self._stream.seq

    def __enter__(self) -> Self:
        self._worker.run(self._stream.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.run(partial(self._stream.__aexit__, kind, error, trace))


@overload
def _derived(
    method: Callable[Concatenate[app.Nitka, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Nitka, P], T]: ...
@overload
def _derived(
    method: Callable[Concatenate[app.Nitka, P], turn.TurnBlock],
) -> Callable[Concatenate[Nitka, P], Block]: ...
@overload
def _derived(
    method: Callable[Concatenate[app.Nitka, P], _AsyncIterator[T]],
) -> Callable[Concatenate[Nitka, P], Pieces[T]]: ...
def _derived(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of the same name that waits."""

    def call(self: Nitka, *args: Any, **kwargs: Any) -> Any:
        return _waiting(method(self._nitka, *args, **kwargs), self._worker)

    return update_wrapper(call, method)


def _waiting(value: Any, worker: _Worker) -> Any:
    """What stands for an async value in code that does not await."""
    if asyncio.iscoroutine(value):
        return _run(value, worker)
    if isinstance(value, turn.Stream):
        return Stream(value, worker)
    if isinstance(value, turn.TurnBlock):
        return Block(value, worker)
    return Pieces(value, worker) if hasattr(value, "__anext__") else value


def _run(work: Coroutine[Any, Any, T], worker: _Worker) -> T:
    try:
        return worker.run(lambda: work)
    finally:
        work.close()  # does nothing to work that was run; work that was refused would complain of it otherwise


def _opening(method: Callable[P, app.Nitka]) -> Callable[P, Nitka]:
    def call(*args: P.args, **kwargs: P.kwargs) -> Nitka:
        return Nitka(method(*args, **kwargs))

    return update_wrapper(call, method)


class Nitka:
    """`nitka.Nitka` for code that does not await. Use it as `with nitka.sync.Nitka.open(...) as nitka`."""

    def __init__(self, nitka: app.Nitka) -> None:
        """For `open`."""
        self._nitka = nitka
        self._worker = _worker()

    open = staticmethod(_opening(app.Nitka.open))
    turn = _derived(app.Nitka.turn)
    record = _derived(app.Nitka.record)
    settle = _derived(app.Nitka.settle)
    sessions = _derived(app.Nitka.sessions)
    history = _derived(app.Nitka.history)
    summary = _derived(app.Nitka.summary)
    watch_memory = _derived(app.Nitka.watch_memory)
    set_watch_memory = _derived(app.Nitka.set_watch_memory)
    export = _derived(app.Nitka.export)
    forget = _derived(app.Nitka.forget)
    facts = _derived(app.Nitka.facts)
    set_fact = _derived(app.Nitka.set_fact)
    retract_fact = _derived(app.Nitka.retract_fact)
    profile = _derived(app.Nitka.profile)
    recall = _derived(app.Nitka.recall)
    link = _derived(app.Nitka.link)
    unlink = _derived(app.Nitka.unlink)
    links = _derived(app.Nitka.links)
    adopt = _derived(app.Nitka.adopt)

    @overload
    def say(self, user: str | Person, session: str, *, text: str, stream: Literal[True], **more: Any) -> Stream: ...

    @overload
    def say(
        self, user: str | Person, session: str, *, text: str, stream: Literal[False] = False, **more: Any
    ) -> Reply: ...

    def say(self, user: str | Person, session: str, **more: Any) -> Reply | Stream:
        return cast(Reply | Stream, _waiting(self._nitka.say(user, session, **more), self._worker))

    say.__doc__ = app.Nitka.say.__doc__

    def __enter__(self) -> Self:
        self._worker.run(self._nitka.__aenter__)
        self._worker.opened.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stops accepting, gives running folds `limits.close_seconds`, and closes."""
        self._worker.opened.discard(self)
        self._worker.run(self._nitka.close)
