"""Somebody at the inspector's pages, without a browser: forms are filled in and links followed."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

import httpx

from tests.server.stage import http_client

BEGIN = "/inspector"
FORM = re.compile(r"<form method=\"post\" action=\"([^\"]+)\".*?</form>", re.DOTALL)
FIELD = re.compile(r"name=\"([^\"]+)\"[^>]*value=\"([^\"]*)\"")


@dataclass
class Inspecting:
    """A browser's worth of cookies, and the page it is at."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client = http_client(base_url=self.url, headers=self.headers, follow_redirects=True)
        self.at = self.client.get(BEGIN)

    @property
    def token(self) -> str:
        """What the forms of the page repeat."""
        found = re.search(r'name="token" value="([0-9a-f]+)"', self.at.text)
        assert found is not None
        return found[1]

    @property
    def path(self) -> str:
        return self.at.url.path

    @property
    def text(self) -> str:
        """What the page says, with markup taken out and entities read."""
        return html.unescape(re.sub(r"<[^>]+>", " ", self.at.text))

    def get(self, path: str) -> httpx.Response:
        self.at = self.client.get(path)
        return self.at

    def post(self, path: str, **fields: str) -> httpx.Response:
        """Sends a form as the page would: with its token."""
        self.at = self.client.post(BEGIN + path, data={"token": self.token, **fields})
        return self.at

    def sign_in(self, key: str) -> httpx.Response:
        return self.post("/sign-in", key=key)

    def person(self, user: str, channel: str = "") -> httpx.Response:
        return self.post("/person", user=user, channel=channel)

    def doors(self) -> list[str]:
        """The conversations that the page offers to open."""
        return re.findall(r'name="door" value="([^"]+)"', self.at.text)

    def open(self, number: int = 0, **more: str) -> httpx.Response:
        return self.post("/open", door=self.doors()[number], **more)

    def view(self, name: str, query: str = "") -> httpx.Response:
        """Another view of the conversation that is open."""
        return self.get(re.sub(r"/(session|turn|summary|watch|cost)/", f"/{name}/", self.path) + query)

    def close(self) -> None:
        self.client.close()
