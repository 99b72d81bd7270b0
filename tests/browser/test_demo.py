"""`nitka demo`, opened and used from end to end; and the pictures of it that the READMEs show."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from nitka.server.inspector.demo import examples
from nitka.server.inspector.render import HERE
from tests.browser.inspecting import LOOKS, PICTURES, SIZE, Inspector, demo, picture, pictures, serious

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 150_000


@pytest.fixture(scope="module")
def running() -> Iterator[str]:
    with demo() as url:
        yield url


@pytest.mark.parametrize(
    ("language", "locale", "ask", "answer"),
    [
        ("en", "en-GB", "Who is allergic to nuts?", "Vera"),
        ("ru", "ru-RU", "У кого аллергия на орехи?", "Веры"),
    ],
)
def test_the_example_is_there_and_each_answer_shows_its_request(
    running: str, context: Callable[..., BrowserContext], language: str, locale: str, ask: str, answer: str
) -> None:
    """Without a key: the browser's language is chosen, the widget has the example in it, an answer comes from what was
    said, the inspector beside shows the request of that turn, and nothing is asked for elsewhere.
    """
    look = Inspector(context(locale=locale).new_page(), running)
    page, frame = look.page, look.page.frame_locator("#inspector")
    page.goto(running)
    expect(page.locator("html")).to_have_attribute("lang", language)
    said = examples((HERE / "examples" / f"{language}.txt").read_text(encoding="utf-8"))
    first = next(iter(said.values()))
    expect(page.locator("nitka-chat")).to_contain_text(first[-1].answer)
    expect(frame.locator(".turns")).to_contain_text(first[-1].answer)
    page.locator("nitka-chat textarea").fill(ask)
    page.keyboard.press("Enter")
    expect(frame.locator("#request")).to_be_visible()
    expect(frame.locator(".bubble.user")).to_contain_text(ask)
    expect(frame.locator(".bubble.assistant")).to_contain_text(answer)
    assert frame.locator("details.block").count() == 1 + 12 + 1 + 1
    assert look.problems == []
    assert look.asked == {running.rstrip("/")}


def test_the_example_is_long_enough_to_show_everything(running: str, context: Callable[..., BrowserContext]) -> None:
    """Summary, cursor, facts that changed, and flags that add up to an alert: in both languages."""
    for language in ("en", "ru"):
        said = examples((HERE / "examples" / f"{language}.txt").read_text(encoding="utf-8"))
        assert 2 * len(next(iter(said.values()))) > 40
        look = Inspector(context(locale=language).new_page(), running)
        page = look.page
        page.goto(running + language)
        page.goto(running.rstrip("/") + (page.locator("#inspector").get_attribute("src") or ""))
        look.view("summary")
        assert page.locator(".lines li").count() > 10
        page.locator(".trail a").click()
        page.locator(".tabs a").nth(1).click()
        assert page.locator(".fact").count() > 5 and page.locator(".fact details").count()
        page.go_back()
        page.locator("button.card", has_text=re.compile("order|zakaz")).click()
        look.view("watch")
        expect(page.locator("article.alert", has_text="F16")).to_be_visible()


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_its_page_can_be_read_by_everybody(
    running: str, context: Callable[..., BrowserContext], size: str, scheme: str
) -> None:
    look = Inspector(context(viewport=LOOKS[size], color_scheme=scheme).new_page(), running)
    look.page.goto(running)
    expect(look.page.locator("nitka-chat")).to_contain_text("Pavel")
    assert serious(look.page) == []
    assert look.too_wide == 0
    if size == "desktop":
        assert look.page.evaluate("document.documentElement.scrollHeight <= window.innerHeight")


def test_it_answers_to_no_other_name_and_to_nobody_elsewhere(running: str) -> None:
    port = running.rstrip("/").rpartition(":")[2]
    for host in (f"evil.example:{port}", "evil.example", f"127.0.0.1.evil.example:{port}"):
        assert httpx.get(running + "en", headers={"Host": host}).status_code == 400
    assert httpx.get(running + "en", headers={"Host": f"localhost:{port}"}).status_code == 200
    assert httpx.get(f"{running}v1/me/sessions").status_code == 401


def size_of(data: bytes) -> tuple[int, int]:
    """Width and height of a PNG (its specification, 11.2.1)."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    return width, height


@pytest.mark.parametrize("language", ["en", "ru"])
def test_the_pictures_of_the_readmes_can_still_be_taken(
    running: str, browser: Browser, tmp_path: Path, language: str
) -> None:
    """`make pictures` takes them anew. Those that are kept are small, of the same size, and shown in the README."""
    page = (ROOT / {"en": "README.md", "ru": "README.ru.md"}[language]).read_text(encoding="utf-8")
    taken = dict(pictures(browser, running, language))
    assert tuple(taken) == PICTURES
    for name, data in taken.items():
        kept = picture(IMAGES, name, language)
        assert size_of(data) == size_of(kept.read_bytes()) == (SIZE["width"], SIZE["height"])
        assert len(data) > 20_000, "there is something to be seen"
        assert kept.stat().st_size < MOST_BYTES
        shown = re.search(rf"!\[([^\]]+)\]\(docs/images/{kept.name}\)", page)
        assert shown is not None and len(shown[1]) > 20, "it is described for whoever does not see it"
