"""A browser and what it looks at: one browser and one server for all tests of a worker's package, a context each.

Playwright keeps an event loop in the thread that it runs in. So the browser lives as long as this package's tests do,
and not as long as the worker: other tests find the thread as it was.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.stage import Line, Pages, Speaker, pages
from tests.browser.widget import SECRET, Shop
from tests.server.stage import Script, Stage, serving

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
WAIT = 15_000  # milliseconds; a busy machine is slow

expect.set_options(timeout=WAIT)


@pytest.fixture(scope="package")
def chromium() -> str:
    """Where Chromium is. Without it these tests are skipped; never where a build depends on them."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and os.environ.get("CI"):
        pytest.fail("There is no Chromium for the tests of the browser.")
    if found is None:
        pytest.skip("no Chromium on the PATH")
    return found


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        args = ["--disable-gpu", "--renderer-process-limit=1", *(["--no-sandbox"] if is_root else [])]
        running = playwright.chromium.launch(executable_path=chromium, args=args)
        yield running
        running.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Makes contexts: each a browser of its own, with its own storage. Takes Playwright's options (`viewport`,
    `color_scheme`, `locale`, `reduced_motion`, `forced_colors`, ...).
    """
    made: list[BrowserContext] = []

    def make(**options: object) -> BrowserContext:
        fresh = browser.new_context(**{"viewport": DESKTOP, "locale": "en-GB", **options})  # type: ignore[arg-type]
        fresh.set_default_timeout(WAIT)
        made.append(fresh)
        return fresh

    yield make
    for one in made:
        one.close()


@pytest.fixture
def page(context: Callable[..., BrowserContext]) -> Page:
    """A page of a fresh browser, desktop size."""
    return context().new_page()


@pytest.fixture(scope="package")
def running_server() -> Iterator[tuple[Stage, Speaker]]:
    speaker = Speaker()
    with serving(Script(), model=speaker) as stage:
        yield stage, speaker


@pytest.fixture
def house(running_server: tuple[Stage, Speaker]) -> Iterator[Stage]:
    """A real server of nitka's with a scripted model, `speaker`. `house.url` is its address, `house.key("admin")`
    makes an API key, `house.run(house.nitka...)` calls what is behind it.
    """
    stage, speaker = running_server
    speaker.reset()
    yield stage
    speaker.go.set()
    stage.clear()


@pytest.fixture
def speaker(house: Stage, running_server: tuple[Stage, Speaker]) -> Speaker:
    """The model that answers."""
    return running_server[1]


@pytest.fixture(scope="package")
def running_pages() -> Iterator[Pages]:
    with pages() as served:
        yield served


@pytest.fixture
def site(running_pages: Pages) -> Pages:
    """A web site of another origin than the server: `site.put(html)` gives the address of a page."""
    running_pages.pages.clear()
    return running_pages


@pytest.fixture
def line(house: Stage) -> Iterator[Line]:
    """Another address of the server, which can be cut: `line.url`, `line.cut()`, `line.mend()`."""
    made = Line(house.url)
    yield made
    made.close()


@pytest.fixture
def shop(house: Stage, site: Pages, context: Callable[..., BrowserContext]) -> Shop:
    """A site with the widget on it."""
    key = house.key("widget", origins=(site.url,), signing=SECRET)
    return Shop(house, site, context, house.url, key)
