"""One forwarded turn: open it, ask the upstream, keep the two rows. Chat completions and responses share it.

* Nothing is written while the answer asks for tools, says nothing, was cut off by a filter, or failed.
* Of a stream, the chunk that says why the answer ends is handed out after the rows are written: a client that has read
  the whole answer finds it in its next request.
* A stream that breaks off, or whose client goes, leaves the pieces handed out, marked interrupted.
* A turn that was delivered before is answered as it was then; the upstream is not asked.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from nitka.conversation import Thread
from nitka.errors import BadInput, Forgotten
from nitka.models.think import strip_think
from nitka.server import answers
from nitka.server.answers import Heard
from nitka.server.asked import Asked, sent
from nitka.server.errors import Refusal
from nitka.server.retries import SECONDS
from nitka.server.service import Service
from nitka.server.upstream import Chunk, encoded, head_of
from nitka.tokens import MEDIA_TOKENS
from nitka.turn import Turn, TurnBlock
from nitka.turns import Private
from nitka.types import Budget, ChatMessage, Receipt, User

Forward = Callable[[list[ChatMessage]], dict[str, Any]]
"""The upstream's request with these messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a turn is held: what the headers of a request say."""

    key: str | None = None
    is_again: bool = False  # a delivery of which nothing is known here
    replace_last: bool = False
    replaces: int | None = None  # the row from which on this turn takes the place of what there is
    private: Private = False


@dataclass(slots=True, kw_only=True)
class Deal:
    """One turn between a client and the upstream. What is told of it comes with its first chunk, or at its end."""

    shared: Service
    user: User
    session: str
    asked: Asked
    manner: Manner
    forward: Forward
    model: str
    room: int = 0  # tokens the client keeps for the answer
    tools: tuple[Mapping[str, Any], ...] = ()
    receipt: Receipt | None = None
    replayed: bool = False
    written: bool = False
    seq: int = field(default=-1)  # of the turn's first row, as far as it is known
    thread: Thread | None = None  # the session as it lives in this turn
    life: bytes = b""  # the incarnation that the session must have, where the turn began in an earlier call

    async def whole(self) -> dict[str, Any]:
        """The answer. Raises `NitkaError`; then nothing was written."""
        if (before := await self._before()) is not None:
            return self._again(before)
        heard = Heard()
        async with await self._block() as turn:
            request = self._begin(turn)
            if turn.stored:
                return self._again(turn.text or "")
            value = await self.shared.upstream.complete(self.forward(request))
            heard.whole(value)
            self._refuse_giant(heard)
            if heard.is_kept:
                turn.answer(heard.text)
            else:
                turn.discard()
        self.written = heard.is_kept and not self.manner.private
        if self.written and self.manner.key and turn.text != strip_think(heard.text):
            return answers.with_text(value, turn.text or "")  # another delivery was first
        return value

    async def flow(self) -> AsyncGenerator[Chunk, None]:
        """The answer in chunks. What fails before the first is raised by it and leaves nothing."""
        last: list[Chunk] = []
        before = await self._before()
        if before is not None:
            last = self._chunks(before)
        else:
            async with await self._block() as turn:
                request = self._begin(turn)
                if turn.stored:
                    last = self._chunks(turn.text or "")
                else:
                    async with aclosing(self._pieces(turn, request, last)) as pieces:
                        async for chunk in pieces:
                            yield chunk
        for chunk in last:
            yield chunk

    async def _pieces(self, turn: Turn, request: list[ChatMessage], last: list[Chunk]) -> AsyncGenerator[Chunk, None]:
        """The chunks up to the one that says why the answer ends; that one and what follows it are put into `last`."""
        heard = Heard()
        try:
            async with aclosing(self.shared.upstream.stream(self.forward(request))) as chunks:
                async for chunk in chunks:
                    self._hear(turn, heard, chunk)
                    if heard.finish:
                        last.append(chunk)
                    else:
                        yield chunk
        except Refusal:
            if not heard.finish:
                raise
        self.written = heard.is_kept and not self.manner.private
        if heard.is_kept:
            turn.answer()
        else:
            turn.discard()

    def _hear(self, turn: Turn, heard: Heard, chunk: Chunk) -> None:
        """Takes a chunk that is about to be handed out."""
        piece = heard.chunk(chunk.value)
        if heard.wants_tools:
            turn.discard()
        elif piece:
            turn.piece(piece)
        self._refuse_giant(heard)

    async def _block(self) -> TurnBlock:
        replaces = await self._last() if self.manner.replace_last else self.manner.replaces
        limits = self.shared.limits
        total = limits.budget - self.asked.media * MEDIA_TOKENS
        answer = min(self.room, limits.budget // 2) if self.room else min(limits.answer_tokens, limits.budget // 4)
        return self.shared.nitka.turn(
            self.user,
            self.session,
            text=self.asked.text,
            system=self.asked.system,
            tools=self.tools,
            budget=Budget(total=max(0, total), answer=answer),
            key=self.manner.key,
            private=self.manner.private,
            replaces=replaces,
        )

    def _begin(self, turn: Turn) -> list[ChatMessage]:
        """The messages to send, with this turn's traffic; none for a turn that was stored before."""
        if turn.opened is not None:
            self.thread = turn.opened.thread
            if self.life not in (b"", self.thread.incarnation):
                raise Forgotten("The session.")
            self.seq = turn.opened.pair[0].message.seq if turn.stored else turn.opened.top
        if turn.stored:
            return []
        request = turn.request
        if self.asked.traffic:
            request = turn.refit([*request.messages, *self.asked.traffic])
        self.receipt = request.receipt
        return sent(self.asked, request)

    async def _last(self) -> int | None:
        """The last row of the session; a first turn replaces nothing."""
        rows = await self.shared.nitka.history(self.user, self.session, limit=1)
        return rows[-1].seq if rows else None

    async def _before(self) -> str | None:
        """The answer to this very question, if it was the last one and its delivery comes again."""
        manner = self.manner
        if not manner.is_again or manner.replace_last or manner.replaces is not None or manner.private:
            return None
        pair = await self.shared.nitka.history(self.user, self.session, limit=2)
        if len(pair) < 2 or pair[0].role != "user" or pair[0].text != self.asked.text:
            return None
        if self.shared.clock() - pair[0].at > timedelta(seconds=SECONDS):
            return None
        self.seq = pair[0].seq
        return pair[1].text

    def _again(self, text: str) -> dict[str, Any]:
        self.replayed = True
        return answers.said_before(self._head("chat.completion"), text)

    def _chunks(self, text: str) -> list[Chunk]:
        self.replayed = True
        head = self._head("chat.completion.chunk")
        deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": text}, None), ({}, "stop")]
        values = [
            {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}
            for delta, finish in deltas
        ]
        return [Chunk(b"data: " + encoded(value) + b"\n\n", value) for value in values]

    def _head(self, kind: str) -> dict[str, Any]:
        return head_of(kind, model=self.model, at=int(self.shared.clock().timestamp()))

    def _refuse_giant(self, heard: Heard) -> None:
        limit = self.shared.limits.message_bytes
        if len(heard.text) * 4 > limit and len(heard.text.encode("utf-8", "replace")) > limit:
            raise Refusal(f"The upstream's answer has more than {limit:,} bytes.", status=502, code="answer_too_large")


def private_of(value: str | None) -> Private:
    """What `X-Nitka-Private` says: yes, or reads. Raises `BadInput`."""
    if value is None or value == "no":
        return False
    if value == "yes":
        return True
    if value == "reads":
        return "reads"
    raise BadInput("X-Nitka-Private is yes, reads or no.")
