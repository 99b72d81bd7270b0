"""One turn: open, the caller's own loop, and the two rows.

Leaving the block writes what the turn became:

* answered: two rows;
* cut off after a piece was handed out (an exception, a cancellation, or leaving with pieces and no `answer`): two
  rows, the answer being the pieces, marked interrupted; the write is shielded from the cancellation that caused it;
* failed before that, private, discarded, or already stored under its key: none.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Self

from nitka.conversation import Opened
from nitka.door import is_blank
from nitka.errors import BadInput, BadText
from nitka.models.think import strip_think
from nitka.types import Alert, ChatMessage, Receipt, Request


class Turn:
    """An open turn. `stored` says that a turn with this key was written before: `text` is its answer, and `answer`
    does nothing. `seq` is the number of its first row, once it has one.
    """

    def __init__(
        self,
        request: Request | None,
        *,
        opened: Opened | None,
        refit: Callable[[Sequence[ChatMessage]], Request],
        stored: str | None = None,
        private: bool = False,
    ) -> None:
        self._request = request
        self._refit = refit
        self._pieces: list[str] = []
        self._answer: str | None = None
        self._private = private  # kept nowhere, but its caller gets the answer
        self._discarded = private
        self.opened = opened
        self.stored = stored is not None
        self.text = stored
        self.seq: int | None = None
        self.interrupted = False
        self.alerts: tuple[Alert, ...] = ()

    @property
    def request(self) -> Request:
        """What to send to the model. Raises `BadInput` for a turn that was stored before: there is nothing to ask."""
        if self._request is None:
            raise BadInput("This turn was answered before; look at turn.stored first, its answer is turn.text.")
        return self._request

    @property
    def receipt(self) -> Receipt | None:
        """The account of the request as last packed."""
        return self._request.receipt if self._request else None

    @property
    def started(self) -> bool:
        """Whether a piece was handed out or an answer given."""
        return bool(self._pieces) or self._answer is not None

    def piece(self, text: str) -> None:
        """Reports a piece of the answer that was handed out. Should the turn be cut off, the pieces so far are what
        is kept. Raises `BadText` for what is no text.
        """
        self._pieces.append(_text(text))

    def answer(self, text: str | None = None) -> None:
        """Gives the whole answer; without a text, the pieces handed out are all of it. Reasoning blocks are taken
        out. Raises `BadText` for what is no text.
        """
        self._answer = "".join(self._pieces) if text is None else _text(text)

    def discard(self) -> None:
        """This turn shall leave nothing behind, whatever was handed out (a guard refused it)."""
        self._discarded = True

    def refit(self, messages: Sequence[ChatMessage]) -> Request:
        """Packs again with the tool traffic that the loop added after the question; nothing of it is stored.

        `messages` are the request's messages with the loop's own after them. Raises `OverBudget` when the traffic
        alone is too large.
        """
        self._request = self._refit(messages)
        return self._request

    def outcome(self, failed: bool) -> str | None:
        """The text to write on leaving the block, or None to write nothing. Raises `BadInput` for a block that
        forgot to answer.
        """
        if self.stored:
            return None
        if self._private:
            self.text = strip_think("".join(self._pieces) if self._answer is None else self._answer)
        if self._discarded:
            return None
        if self._answer is not None and not failed:
            return strip_think(self._answer)
        if self._pieces:
            text = strip_think("".join(self._pieces))
            self.interrupted = not is_blank(text)  # nothing to be seen was handed out: as if cut off before
            return text if self.interrupted else None
        if failed:
            return None
        raise BadInput(
            "The turn's block ended without an answer: call turn.answer(text), or turn.discard() to keep nothing."
        )


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise BadText(f"The answer is a {type(text).__name__}, not a string.")
    return text


class TurnBlock:
    """The block around a turn: `async with nitka.turn(...) as turn`."""

    def __init__(
        self, opening: Callable[[], Awaitable[Turn]], commit: Callable[[Turn, str], Coroutine[Any, Any, None]]
    ) -> None:
        self._opening = opening
        self._commit = commit
        self._turn: Turn | None = None

    async def __aenter__(self) -> Turn:
        self._turn = await self._opening()
        return self._turn

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._turn is not None
        text = self._turn.outcome(failed=kind is not None)
        if text is not None:
            await shielded(self._commit(self._turn, text))


async def shielded(work: Coroutine[Any, Any, None]) -> None:
    """Waits for the work to end, however often the waiting is cancelled; a cancellation is raised again afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except BaseException:
            if not task.done():
                raise
    task.result()
    if cancelled is not None:
        raise cancelled


@contextlib.asynccontextmanager
async def closing(source: AsyncIterator[str]) -> AsyncIterator[AsyncIterator[str]]:
    """The source, closed at the end if it can be: one that was left early gives back its connection at once, and not
    when it is collected.
    """
    try:
        yield source
    finally:
        if (close := getattr(source, "aclose", None)) is not None:
            await close()


class Stream:
    """An answer that comes in pieces: `async with nitka.say(..., stream=True) as pieces`, then `async for piece in
    pieces`.

    Leaving it early is the interruption. Afterwards `text` is what was stored, `receipt` the account of the request.
    Waiting for a piece no longer than some time (`asyncio.wait_for`) ends the stream when the time is up.
    """

    def __init__(self, block: TurnBlock, pieces: Callable[[Turn], Any]) -> None:
        self._block = block
        self._pieces = pieces
        self._turn: Turn | None = None
        self._source: Any = None
        self._broken = False

    @property
    def text(self) -> str:
        return (self._turn.text or "") if self._turn else ""

    @property
    def receipt(self) -> Receipt | None:
        return self._turn.receipt if self._turn else None

    @property
    def alerts(self) -> tuple[Alert, ...]:
        return self._turn.alerts if self._turn else ()

    @property
    def interrupted(self) -> bool:
        return self._turn is not None and self._turn.interrupted

    @property
    def replayed(self) -> bool:
        return self._turn is not None and self._turn.stored

    @property
    def seq(self) -> int | None:
        return self._turn.seq if self._turn else None

    async def __aenter__(self) -> Self:
        self._turn = await self._block.__aenter__()
        self._source = self._pieces(self._turn)
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        if self._turn is None:
            raise BadInput("A stream is a block: `async with nitka.say(..., stream=True) as pieces`.")
        try:
            piece: str = await anext(self._source)
        except StopAsyncIteration:
            if not (self._turn.stored or self._broken):
                self._turn.answer()
            raise
        except BaseException:
            self._broken = True  # a source that was cut off ends too when it is asked again: that is no whole answer
            raise
        self._turn.piece(piece)
        return piece

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._turn is not None
        try:
            await self._source.aclose()
        finally:
            if kind is None and not self._turn.started:
                self._turn.discard()  # left before a piece was handed out
            await self._block.__aexit__(kind, error, trace)
