"""`nitka.sync`: the same names for code that does not await."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

import nitka
from nitka import sync, turn
from nitka.errors import BadInput
from nitka.testing import FakeModel, MemoryStore, memory_ring
from nitka.types import ChatMessage

ASYNC = {name: member for name, member in vars(nitka.Nitka).items() if not name.startswith("_")}


def opened(model: object = None, **more: object) -> sync.Nitka:
    chosen = model or FakeModel(["one two three"])
    return sync.Nitka.open(MemoryStore(), model=chosen, keys=memory_ring(), **more)  # type: ignore[arg-type]


@pytest.fixture
def waiting() -> Iterator[sync.Nitka]:
    with opened() as it:
        yield it


def run(script: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, for what ends or forks one."""
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROLOGUE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


PROLOGUE = """
import os
from nitka import sync
from nitka.errors import BadInput
from nitka.testing import FakeModel, MemoryStore, memory_ring

def opened(model=None):
    return sync.Nitka.open(MemoryStore(), model=model or FakeModel(["hello"]), keys=memory_ring())
"""


@pytest.mark.parametrize("name", sorted(ASYNC))
def test_every_public_name_is_there_with_its_docstring(name: str) -> None:
    """What the async class offers, the waiting one offers too; a name that is added there must be added here."""
    assert callable(getattr(sync.Nitka, name))
    assert getattr(sync.Nitka, name).__doc__


@pytest.mark.parametrize("name", sorted(ASYNC.keys() - {"say", "close", "open"}))
def test_signatures_are_the_same(name: str) -> None:
    """Nothing is written twice: arguments and defaults are those of the async method."""
    assert inspect.signature(getattr(sync.Nitka, name)) == inspect.signature(ASYNC[name])


def test_nothing_more_is_there() -> None:
    """A name that only the waiting class had would be a second API."""
    assert {name for name in vars(sync.Nitka) if not name.startswith("_")} == set(ASYNC)


def test_say_answers_and_stores(waiting: sync.Nitka) -> None:
    reply = waiting.say("anna", "s", text="hi")
    assert reply.text == "one two three"
    assert reply.receipt is not None
    assert [(m.role, m.text) for m in waiting.history("anna", "s")] == [("user", "hi"), ("assistant", "one two three")]
    assert [info.id for info in waiting.sessions("anna")] == ["s"]


def test_a_stream_is_a_block_and_an_iterator(waiting: sync.Nitka) -> None:
    with waiting.say("anna", "s", text="hi", stream=True) as pieces:
        assert list(pieces) == ["one", " two", " three"]
    assert (pieces.text, pieces.interrupted) == ("one two three", False)
    assert pieces.receipt is not None
    names = {name for name, member in vars(turn.Stream).items() if isinstance(member, property)}
    assert names <= set(vars(sync.Stream))


def test_a_stream_left_early_is_interrupted(waiting: sync.Nitka) -> None:
    with waiting.say("anna", "s", text="hi", stream=True) as pieces:
        next(iter(pieces))
    assert pieces.interrupted
    assert waiting.history("anna", "s")[1].text == "one"


def test_a_turn_is_a_block(waiting: sync.Nitka) -> None:
    with waiting.turn("anna", "s", text="hi") as turn:
        assert turn.request.messages[-1]["content"] == "hi"
        turn.answer("hello")
    assert waiting.history("anna", "s")[1].text == "hello"


def test_a_turn_that_fails_leaves_nothing(waiting: sync.Nitka) -> None:
    with pytest.raises(ZeroDivisionError), waiting.turn("anna", "s", text="hi"):
        _ = 1 / 0
    assert waiting.history("anna", "s") == ()


def test_export_is_an_iterator_that_may_be_left(waiting: sync.Nitka) -> None:
    waiting.record("anna", "s", text="hi", answer="hello")
    assert [record["text"] for record in waiting.export("anna")] == ["hi", "hello"]
    records = waiting.export("anna")
    assert next(iter(records))["text"] == "hi"
    records.close()
    assert list(records) == []


def test_forget_and_settle_wait(waiting: sync.Nitka) -> None:
    waiting.record("anna", "s", text="hi", answer="hello")
    assert waiting.forget("anna").messages == 2
    assert waiting.settle().failed == 0


def test_errors_come_through(waiting: sync.Nitka) -> None:
    with pytest.raises(nitka.BadText):
        waiting.say("anna", "s", text=" ")


def test_closed_is_closed() -> None:
    with opened() as it:
        pass
    with pytest.raises(BadInput):
        it.sessions("anna")


def test_it_works_inside_a_running_loop() -> None:
    """As in a notebook: the caller's loop is held up meanwhile, and nothing else happens to it."""

    async def cell() -> str:
        with opened() as it:
            return it.say("anna", "s", text="hi").text

    assert asyncio.run(cell()) == "one two three"


def test_one_thread_serves_all() -> None:
    with opened() as one, opened() as two:
        one.say("anna", "s", text="hi")
        two.say("anna", "s", text="hi")
        assert [thread.name for thread in threading.enumerate()].count("nitka-sync") == 1


def test_threads_may_share_one() -> None:
    with opened() as it:
        threads = [threading.Thread(target=it.say, args=("anna", "s"), kwargs={"text": f"t{n}"}) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(it.history("anna", "s")) == 16


def test_a_callback_cannot_wait_for_the_loop_that_runs_it() -> None:
    """It would wait for itself for ever."""

    def redact(text: str) -> str:
        it.sessions("anna")
        return text

    with opened(redact=redact) as it, pytest.raises(BadInput, match="callback"):
        it.say("anna", "s", text="hi")


class Slow:
    """A model that says a word and then thinks for ever."""

    name = "slow"

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str]:
        yield "begun"
        await asyncio.sleep(3600)

    async def close(self) -> None:
        pass


def test_ctrl_c_in_mid_answer_keeps_what_was_handed_out() -> None:
    with opened(Slow()) as it:
        stream = it.say("anna", "s", text="hi", stream=True)
        with pytest.raises(KeyboardInterrupt), stream as pieces:
            for _ in pieces:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        assert stream.interrupted
        assert [(m.text, m.interrupted) for m in it.history("anna", "s")] == [("hi", False), ("begun", True)]


@pytest.mark.parametrize("after", [0.0, 0.0005, 0.001, 0.002, 0.005])
def test_ctrl_c_at_any_moment_meets_no_running_work(after: float) -> None:
    """It may come between the start of a wait and the wait itself; the block ends properly all the same."""
    with opened(Slow()) as it:
        for n in range(10):
            stream = it.say("anna", f"s{n}", text="hi", stream=True)
            timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
            with pytest.raises(KeyboardInterrupt), stream as pieces:
                timer.start()
                for _ in pieces:
                    pass
            assert [m.text for m in it.history("anna", f"s{n}")] in ([], ["hi", "begun"])


def test_ctrl_c_is_heard_while_a_wait_is_asleep() -> None:
    """A signal that another thread took, or that came just before the main one fell asleep, wakes nobody."""
    cancelled = threading.Event()

    async def asleep() -> None:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def interrupt() -> None:
        time.sleep(0.3)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    taker = threading.Thread(target=interrupt)
    taker.start()
    with pytest.raises(KeyboardInterrupt):
        sync._worker().run(asleep)
    taker.join()
    assert cancelled.is_set()


def test_what_was_opened_before_a_fork_is_refused_after_it() -> None:
    """The child has neither the thread nor a right to the parent's files; it may open its own."""
    done = run("""
        with opened() as it:
            it.say("anna", "s", text="hi")
            if os.fork() == 0:
                try:
                    it.sessions("anna")
                except BadInput as error:
                    print(error, flush=True)
                with opened() as mine:
                    print(mine.say("anna", "s", text="hi").text, flush=True)
                os._exit(0)
            os.wait()
            print(len(it.sessions("anna")))
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "An argument cannot be used. This was opened before the process forked; open it anew in the child.",
        "hello",
        "1",
    ]


def test_what_is_open_at_exit_is_closed(tmp_path: Path) -> None:
    """Also a store whose closing wants a thread pool, which takes no more work by then."""
    done = run(f"""
        class Loud(FakeModel):
            async def close(self):
                print("closed", flush=True)
        it = sync.Nitka.open("sqlite:///{tmp_path}/n.db", model=Loud(["hello"]), keys=memory_ring())
        it.__enter__()
        it.say("anna", "s", text="hi")
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "closed\n", "")
    assert not (tmp_path / "n.db-wal").exists()  # SQLite removes it when the last connection closes properly
