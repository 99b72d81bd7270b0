"""Streams that end early, clients that go, and a server that is told to stop."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

import httpx
import pytest

from tests.server.stage import Body, Script, Stage, http_client, says, serving

PATH = "/v1/chat/completions"
ASK: Body = {
    "messages": [{"role": "user", "content": "Count."}],
    "user": "anna",
    "metadata": {"session_id": "s"},
    "stream": True,
}
WORDS = "One two three four five six seven eight nine ten."


def within(seconds: float, holds: Callable[[], bool]) -> None:
    """Waits until something holds."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.02)


def kept(stage: Stage) -> list[tuple[str, bool]]:
    return [(row.text, row.interrupted) for row in stage.messages()]


@pytest.mark.parametrize("seen", [2, 4])
def test_a_client_that_goes_leaves_what_it_was_handed(stage: Stage, seen: int) -> None:
    """The pieces so far are kept, marked interrupted, and the upstream is left at once."""
    stage.script.answer = lambda body: says(WORDS)
    stage.script.hold = seen
    client = stage.client("turns")
    with client.stream("POST", PATH, json=ASK) as response:
        lines = response.iter_lines()
        for _ in range(2 * seen - 1):
            next(lines)
    within(20, lambda: len(kept(stage)) == 2)
    assert kept(stage) == [("Count.", False), (WORDS[: 4 * (seen - 1)], True)]
    stage.script.go.set()
    within(20, stage.script.gone.is_set)


def test_a_client_that_goes_before_the_first_word_leaves_nothing(stage: Stage) -> None:
    stage.script.hold = 1
    client = stage.client("turns")
    with client.stream("POST", PATH, json=ASK) as response:
        next(response.iter_lines())
    stage.idle()
    assert kept(stage) == []


def test_the_next_turn_after_a_stop_follows_the_stopped_one(stage: Stage) -> None:
    """Stop, then send at once: the new message comes after what was handed out, and the model sees it."""
    stage.script.answer = lambda body: says(WORDS)
    stage.script.hold = 4
    client = stage.client("turns")
    with client.stream("POST", PATH, json=ASK) as response:
        lines = response.iter_lines()
        for _ in range(7):
            next(lines)
    within(20, lambda: len(kept(stage)) == 2)
    stage.script.hold = None
    client.post(PATH, json={**ASK, "stream": False, "messages": [{"role": "user", "content": "Go on."}]})
    assert [role for role, _ in stage.script.texts()] == ["user", "assistant", "user"]
    assert stage.script.texts()[1][1].startswith(WORDS[:12])


def test_an_upstream_that_breaks_off_is_told_in_the_stream(stage: Stage) -> None:
    stage.script.answer = lambda body: says(WORDS)
    stage.script.breaks_after = 3
    told = stage.client("turns").post(PATH, json=ASK).text
    assert "[DONE]" not in told
    assert '"code":"upstream_broke_off"' in told
    assert kept(stage) == [("Count.", False), (WORDS[:8], True)]


def test_a_server_that_is_told_to_stop_lets_open_answers_end(script: Script) -> None:
    script.answer = lambda body: says(WORDS)
    script.hold = 3
    said: list[str] = []
    with serving(script, grace=20) as stage:
        client = stage.client("turns")

        def read() -> None:
            said.append(client.post(PATH, json=ASK).text)

        reading = threading.Thread(target=read)
        reading.start()
        within(20, lambda: bool(script.asked))
        time.sleep(0.2)
        stage.running.server.should_exit = True
        within(20, lambda: refuses(stage.url))
        script.go.set()
        reading.join(20)
        assert said[0].rstrip().endswith("data: [DONE]")


def refuses(url: str) -> bool:
    """Whether nobody listens there any more."""
    host, port = url.removeprefix("http://").split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) != 0


def test_an_answer_that_outlasts_the_grace_is_kept_as_far_as_it_was_handed_out(script: Script) -> None:
    """The store outlives the server here, so that one can look."""
    script.answer = lambda body: says(WORDS)
    script.hold = 4
    with serving(script, grace=1) as stage:
        client = stage.client("turns")
        store, ring = stage.store, stage.nitka._vault.keychain.roots
        with client.stream("POST", PATH, json=ASK) as response:
            lines = response.iter_lines()
            for _ in range(7):
                next(lines)
            stage.running.end()
            with pytest.raises(httpx.HTTPError):
                list(lines)
        script.go.set()
        assert not stage.running.is_alive()
    with serving(Script(), store=store, keys=ring) as again:
        assert kept(again) == [("Count.", False), (WORDS[:12], True)]


def test_many_slow_streams_wait_for_nobody(script: Script) -> None:
    """Forty streams that last two seconds are over in little more: none holds what another needs."""
    script.answer = lambda body: says("x" * 40)
    script.pause = 0.2
    with serving(script) as stage:
        key = stage.key("turns")
        took: list[float] = []

        def read(number: int) -> None:
            begin = time.monotonic()
            with http_client(base_url=stage.url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
                text = client.post(PATH, json={**ASK, "user": f"slow-{number}"}).text
            assert text.rstrip().endswith("data: [DONE]")
            took.append(time.monotonic() - begin)

        threads = [threading.Thread(target=read, args=(number,)) for number in range(40)]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(took) == 40
        assert time.monotonic() - begin < 40 * 2.2 / 2, "they waited for each other"
