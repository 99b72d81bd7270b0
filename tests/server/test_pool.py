"""On PostgreSQL: no connection is held while a model is thinking."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from nitka.store.postgres import PostgresStore
from tests.contract.databases import server
from tests.server.stage import Script, http_client, says, serving

STREAMS, CONNECTIONS = 40, 5
PATH = "/v1/chat/completions"


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    with server() as databases:
        yield PostgresStore(databases.new(), wait=20, size=CONNECTIONS, database_clock=False)


@pytest.mark.slow
def test_forty_open_streams_hold_none_of_five_connections(store: PostgresStore, script: Script) -> None:
    """All are open at once, in mid-answer, and every connection is free for whoever asks meanwhile."""
    script.answer, script.hold = lambda body: says("One two three four five."), 3
    said: dict[int, str] = {}
    with serving(script, store=store) as stage:
        key = stage.key("turns")

        def ask(number: int, *, stream: bool) -> str:
            body = {"messages": [{"role": "user", "content": "q"}], "metadata": {"session_id": "s"}, "stream": stream}
            auth = {"Authorization": f"Bearer {key}"}
            with http_client(headers=auth, timeout=120) as client:
                return client.post(stage.url + PATH, json={**body, "user": f"u{number}"}).text

        def read(number: int) -> None:
            said[number] = ask(number, stream=True)

        def free() -> bool:
            assert store._data._pool is not None
            numbers = store._data._pool.get_stats()
            return numbers["pool_available"] == numbers["pool_size"] and not numbers["requests_waiting"]

        threads = [threading.Thread(target=read, args=(number,)) for number in range(STREAMS)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 60
        while len(script.asked) < STREAMS or not free():
            assert time.monotonic() < end, f"{len(script.asked)} streams are open; {said}"
            time.sleep(0.05)
        assert said == {}
        assert '"One two three four five."' in ask(STREAMS, stream=False)
        script.go.set()
        for thread in threads:
            thread.join()
        assert all(text.endswith("data: [DONE]\n\n") for text in said.values())
        assert all(len(stage.rows(f"u{number}")) == 2 for number in range(STREAMS + 1))
