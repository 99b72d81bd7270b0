"""The inspector in a browser: somebody to look at, who looks, and the pictures for the READMEs.

`python -m tests.browser.inspecting FOLDER` takes the pictures anew.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from nitka.types import User
from tests.server.stage import Stage

HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 3
ODD = (
    "My name is Anna, and I live in Leeds.",
    f"{HOSTILE} is what somebody wrote on the box.",
    f"It goes to {WORD}.",
    "שלום, אני רוצה להזמין עוגה לשבת",
    "🎂🎂🎂 для сестры Веры, ей 12 июня исполняется 40 лет 👩‍👩‍👧‍👦",
    "I have moved to York.",
    "\N{RIGHT-TO-LEFT OVERRIDE}gnp.drac\N{POP DIRECTIONAL FORMATTING} and then\n\n\nthree empty lines",
    "Where are your parents now?",
    "Ты можешь включить камеру? Can you turn on your camera?",
    "# Not a heading, **not bold**, [no link](javascript:alert(1))",
)
USER, SESSION = f"anna {HOSTILE}", f"order {HOSTILE} {WORD}"
Scheme = Literal["light", "dark"]
VIEWS = ("session", "summary", "watch", "cost")
SERIOUS = ("serious", "critical")
AXE = Axe().axe_script
expect.set_options(timeout=20_000)  # milliseconds, on a busy machine
PICTURES = ("demo", "turn", "alert")
SIZE: ViewportSize = {"width": 1200, "height": 760}
LOOKS: dict[str, ViewportSize] = {
    "desktop": {"width": 1280, "height": 800},
    "phone": {"width": 360, "height": 740},
    "zoomed": {"width": 320, "height": 256},
}


def fill(stage: Stage) -> None:
    """Somebody who has said odd things, in one long conversation and one short."""
    stage.users.add(User(USER))
    for at in range(30):
        text = ODD[at % len(ODD)] if at < 2 * len(ODD) else f"{ODD[at % len(ODD)]} ({at})"
        _say(stage, SESSION, text)
    _say(stage, "short", "Hello.")
    stage.run(stage.nitka.set_fact(USER, "likes", HOSTILE))
    stage.run(stage.nitka.forget(USER, session=SESSION, turn=44))
    stage.service.nitka._turns.watching.purposes[""] = "safety of minors"


def _say(stage: Stage, session: str, text: str) -> None:
    stage.run(stage.nitka.record(USER, session, text=text, answer=f"Noted: {text[:200]}", at=stage.clock()))
    stage.run(stage.nitka.settle(USER))
    stage.clock.now += timedelta(minutes=7)


@dataclass
class Inspector:
    """Somebody at the inspector. What goes wrong in the page, and where it asks, is noted."""

    page: Page
    url: str
    problems: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda said: self._note(said.type, said.text))
        self.page.on("dialog", lambda dialog: self.problems.append(dialog.message))
        self.page.on("request", lambda request: self.asked.add("/".join(request.url.split("/")[:3])))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "status of 40" not in text:  # the browser tells of each refused page
            self.problems.append(text)

    def sign_in(self, key: str) -> None:
        self.page.goto(f"{self.url}/inspector")
        self.page.fill("#key", key)
        self.page.locator("button.main").click()

    def person(self, user: str = USER) -> None:
        self.page.goto(f"{self.url}/inspector")
        self.page.fill("#user", user)
        self.page.locator("button.main").click()

    def open(self, number: int = 1) -> None:
        """Opens one of the conversations, the newest being 0."""
        self.page.locator("button.card").nth(number).click()

    def view(self, name: str, query: str = "") -> None:
        address = re.sub(r"/(session|turn|summary|watch|cost)/", f"/{name}/", self.page.url).partition("?")[0]
        self.page.goto(address + query)

    def every_page(self) -> Iterator[str]:
        """All pages one after another; gives the name of each when it is there."""
        self.person()
        yield "person"
        self.page.locator(".tabs a").nth(1).click()
        yield "facts"
        self.page.go_back()
        self.open()
        for name in VIEWS:
            self.view(name)
            yield name
        self.view("turn", "?seq=58")
        self.page.locator("[data-open-all]").click()
        yield "turn"
        self.view("turn", "?seq=44")
        yield "forgotten"
        self.person("nobody")
        yield "nobody"
        self.page.goto(f"{self.url}/inspector/parse")
        self.try_parse()
        yield "parse"
        self.page.goto(f"{self.url}/inspector/nowhere")
        yield "nowhere"

    def appear(self, size: str, scheme: Scheme) -> None:
        """Shows the page in another size and scheme; "zoomed" is 1280 by 1024 pixels at 400 %."""
        self.page.emulate_media(color_scheme=scheme)
        self.page.set_viewport_size(LOOKS[size])

    def try_parse(self) -> None:
        for speaker, text in (("A", ODD[7]), ("B", HOSTILE), ("A", "Can you turn on your camera?")):
            self.page.fill("#speaker", speaker)
            self.page.fill("#text", text)
            self.page.press("#text", "Enter")
            expect(self.page.locator(".step").last).to_contain_text(text[:20])

    @property
    def too_wide(self) -> int:
        """Pixels by which the page is wider than the window."""
        width: int = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        return max(0, width)


def violations(page: Page) -> list[dict[str, Any]]:
    """What axe finds. Its program, half a megabyte, is read once in each document."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE)
    found: list[dict[str, Any]] = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return found


def serious(page: Page) -> list[str]:
    """What axe finds that is serious or critical: rule and place."""
    found = violations(page)
    return [
        f"{rule['id']}: {json.dumps(node['target'])}"
        for rule in found
        if rule["impact"] in SERIOUS
        for node in rule["nodes"]
    ]


@contextmanager
def demo(language: str = "en") -> Iterator[str]:
    """`nitka demo` as a person runs it; gives its address. It is ended by Ctrl-C, and its folder has to be gone."""
    command = [sys.executable, "-m", "nitka.cli", "--language", language, "demo", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = ""
    try:
        for line in process.stdout:
            told += line
            if found := re.search(r"http://127\.0\.0\.1:\d+/", line):
                folder = re.search(r"\S*nitka-demo-[^\s,;]+", told)
                assert folder is not None and Path(folder[0]).is_dir()
                yield found[0]
                break
        else:
            raise AssertionError(f"It said no address: {told}")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        process.stdout.close()
    assert not Path(folder[0]).exists()


def pictures(browser: Browser, url: str, language: str) -> Iterator[tuple[str, bytes]]:
    """The pictures of the walk: the chat with the inspector beside it, one request, and how flags added up."""
    ask = {"en": "Who is allergic to nuts?", "ru": "У кого аллергия на орехи?"}[language]
    context = browser.new_context(viewport=SIZE, color_scheme="light", locale={"en": "en-GB", "ru": "ru-RU"}[language])
    page = context.new_page()
    page.goto(url + language)
    frame = page.frame_locator("#inspector")
    page.locator("nitka-chat textarea").fill(ask)
    page.keyboard.press("Enter")
    expect(frame.locator("#request")).to_be_visible()
    expect(frame.locator(".bubble.user")).to_contain_text(ask)
    frame.locator("h2").first.evaluate("element => window.scrollTo(0, element.offsetTop - 12)")
    yield "demo", page.screenshot()
    turn = page.frames[1].url
    page.goto(turn)
    page.locator("#request").evaluate("element => window.scrollTo(0, element.offsetTop - 16)")
    yield "turn", page.screenshot()
    page.locator(".trail a").click()
    page.locator("button.card", has_text=re.compile("order|zakaz")).click()
    page.locator(".tabs a").nth(2).click()
    yield "alert", page.screenshot()
    context.close()


def picture(folder: Path, name: str, language: str) -> Path:
    return folder / f"{name}.{language}.png"


def main(folder: Path) -> None:
    """Takes all pictures anew."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as playwright, demo() as url:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"] if is_root else []
        )
        for language in ("en", "ru"):
            for name, data in pictures(browser, url, language):
                picture(folder, name, language).write_bytes(data)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
