"""The widget on a page of a shop, and a visitor's ways with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import jwt
from playwright.sync_api import BrowserContext, Locator, Page, expect

from nitka.types import User
from tests.browser.stage import Pages
from tests.server.stage import Stage

SECRET = "ws_" + "s" * 43
STRICT = "default-src 'none'; script-src {server}; connect-src {server}; require-trusted-types-for 'script'"
"""What a strict page allows: the widget's script, requests to its server, and nothing else; no inline anything."""

HTML = """<!doctype html>
<html lang="{lang}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Shop</title>
<script type="module" src="{server}/widget.js"></script></head>
<body><main><h1>{heading}</h1></main>{widget}</body></html>"""


@dataclass
class Shop:
    """A site with the widget on it. `key` is the widget's; `server` the address that it is loaded from."""

    house: Stage
    site: Pages
    context: Callable[..., BrowserContext]
    server: str
    key: str

    def put(self, *, path: str = "/", lang: str = "en", csp: str = STRICT, **attributes: str) -> str:
        """Puts a page with the widget there; its address. Attributes' names are written with underscores."""
        named = {"key": self.key, **{name.replace("_", "-"): value for name, value in attributes.items()}}
        widget = "<nitka-chat {}></nitka-chat>".format(" ".join(f'{name}="{value}"' for name, value in named.items()))
        heading = "Магазин" if lang.startswith("ru") else "A shop"
        html = HTML.format(lang=lang, server=self.server, heading=heading, widget=widget)
        return self.site.put(html, path=path, Content_Security_Policy=csp.format(server=self.server))

    def chat(self, browser: BrowserContext | None = None, **page: str) -> Chat:
        """The widget, opened, on a new page."""
        browser = browser or self.context()
        tab = browser.new_page()
        problems: list[str] = []
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.goto(self.put(**page))
        return Chat(tab, problems).open()

    def token(self, user: str, *, secret: str = SECRET, **claims: Any) -> str:
        """A user token as a host's server signs it."""
        ends = int((self.house.clock() + timedelta(hours=1)).timestamp())
        return jwt.encode({"sub": user, "exp": ends, **claims}, secret, algorithm="HS256")

    def rows(self, chat: Chat, user: str | None = None) -> list[tuple[str, str]]:
        """What the server keeps of a chat's conversation."""
        record = chat.record
        who = User(user or record["visitor"]["id"])
        self.house.users.add(who)
        found = self.house.run(self.house.nitka.history(who, record["session"], limit=1000))
        return [(message.role, message.text) for message in found]


@dataclass
class Chat:
    """The widget as a visitor has it before him."""

    page: Page
    problems: list[str]

    @property
    def host(self) -> Locator:
        return self.page.locator("nitka-chat")

    @property
    def input(self) -> Locator:
        return self.host.locator("textarea")

    @property
    def panel(self) -> Locator:
        return self.host.locator(".panel")

    @property
    def questions(self) -> Locator:
        return self.host.locator("li.user > .text")

    @property
    def answers(self) -> Locator:
        return self.host.locator("li.bot > .text")

    @property
    def facts(self) -> Locator:
        return self.host.locator(".facts li span")

    @property
    def record(self) -> Any:
        """What the browser keeps."""
        return self.page.evaluate(
            "() => JSON.parse(Object.entries(localStorage).find(([name]) => name.startsWith('nitka:'))?.[1] ?? 'null')"
        )

    @property
    def visitor(self) -> str | None:
        """The visitor's id, as the page learns it."""
        found: str | None = self.page.evaluate("document.querySelector('nitka-chat').visitor")
        return found

    @property
    def spoken(self) -> list[str]:
        """What a screen reader was told."""
        return self.host.locator("[aria-live] p").all_text_contents()

    def button(self, name: str, *, exact: bool = True) -> Locator:
        return self.host.get_by_role("button", name=name, exact=exact)

    def open(self) -> Chat:
        expect(self.page.locator("nitka-chat:defined")).to_have_count(1)
        if not self.panel.is_visible():
            self.host.locator(".launcher").click()
        expect(self.input).to_be_visible()
        return self

    def write(self, text: str) -> None:
        self.input.fill(text)
        self.input.press("Enter")

    def say(self, text: str, answer: str) -> None:
        """Writes, and waits for the whole answer."""
        before = self.answers.count()
        self.write(text)
        expect(self.answers).to_have_count(before + 1)
        expect(self.answers.last).to_have_text(answer)
        self.settled()

    def settled(self) -> None:
        """Waits until no answer is under way."""
        expect(self.host.locator(".main[aria-busy]")).to_have_count(0)

    def reload(self) -> None:
        self.page.reload()
        self.open()

    def know(self) -> None:
        """Opens what is known."""
        self.button("What do you know about me?").first.click()
        expect(self.host.get_by_text("Looking", exact=True)).to_have_count(0)
