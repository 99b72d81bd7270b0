"""What browser tests look at: pages of a shop, served from an origin of their own; a model that says what the test
wants, as slowly as it wants; and a line between browser and server that can be cut.
"""

from __future__ import annotations

import asyncio
import http.server
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from nitka.models.offline import OfflineChat
from nitka.models.ports import Answer
from nitka.types import ChatMessage

Said = str | BaseException


@dataclass
class Speaker:
    """A chat model under a test's control. `answer` gets the messages of each request; a stream comes in pieces of
    `chunk` characters, with `pause` seconds before each, and waits after `hold` of them until `go` is set.
    """

    name: str = "speaker"
    answer: Callable[[Sequence[ChatMessage]], Said] = field(default=lambda messages: "All right.")
    chunk: int = 8
    pause: float = 0.0
    hold: int | None = None
    go: threading.Event = field(default_factory=threading.Event)
    asked: list[Sequence[ChatMessage]] = field(default_factory=list)

    def reset(self) -> None:
        """As it was when it was new; whoever still waits goes on."""
        self.go.set()
        self.__dict__.update(Speaker().__dict__)

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: Mapping[str, Any] | None = None
    ) -> Answer:
        return Answer(text=self._said(messages))

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str]:
        text, go = self._said(messages), self.go
        for number, at in enumerate(range(0, len(text), self.chunk)):
            while number == self.hold and not go.is_set():
                await asyncio.sleep(0.01)
            await asyncio.sleep(self.pause)
            yield text[at : at + self.chunk]

    async def close(self) -> None:
        """Nothing is held."""

    def _said(self, messages: Sequence[ChatMessage]) -> str:
        self.asked.append(messages)
        said = self.answer(messages)
        if isinstance(said, BaseException):
            raise said
        return said


OFFLINE = OfflineChat()
"""The stand-in that answers where there is no model."""

Page = tuple[str, Mapping[str, str]]
"""A page's HTML, and headers for it."""


@dataclass
class Pages:
    """Pages of an origin of its own, by path. Every other path answers 404."""

    url: str
    pages: dict[str, Page] = field(default_factory=dict)

    def put(self, html: str, *, path: str = "/", **headers: str) -> str:
        """Puts a page there; its address. A header's name is written with underscores."""
        self.pages[path] = html, {name.replace("_", "-"): value for name, value in headers.items()}
        return self.url + path


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: Pages

    def do_GET(self) -> None:
        html, headers = self.served.pages.get(self.path.partition("?")[0], ("", {}))
        data = html.encode()
        self.send_response(200 if html else 404)
        for name, value in {"Content-Type": "text/html; charset=utf-8", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Listening(http.server.ThreadingHTTPServer):
    daemon_threads = True


@contextmanager
def pages() -> Iterator[Pages]:
    """A small web server of the test's pages. Its name is `localhost`: another origin than that of nitka's server."""
    served = Pages("")
    with _Listening(("127.0.0.1", 0), type("Handler", (_Handler,), {"served": served})) as listening:
        served.url = f"http://localhost:{listening.server_port}"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield served
        finally:
            listening.shutdown()
            thread.join()


class Line:
    """A line to a server that can be cut: a TCP proxy. `cut` breaks what is open and lets nothing in until `mend`."""

    def __init__(self, url: str) -> None:
        self._to = ("127.0.0.1", int(url.rpartition(":")[2]))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._is_cut = threading.Event()
        self._lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        self._is_cut.set()
        with self._lock:
            while self._open:
                _break(self._open.pop())

    def mend(self) -> None:
        self._is_cut.clear()

    def close(self) -> None:
        self.cut()
        _break(self._listening)
        self._thread.join(5)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                if self._is_cut.is_set():
                    _break(near)
                    continue
                far = socket.create_connection(self._to)
                with self._lock:
                    self._open += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    _break(source)
    _break(sink)


def _break(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
