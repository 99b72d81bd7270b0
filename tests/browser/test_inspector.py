"""The inspector in a browser: its pages in both languages, sizes and schemes, by hand and by keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.inspecting import HOSTILE, ODD, SESSION, USER, Inspector, Scheme, fill, serious
from tests.server.stage import Script, Stage, serving

pytestmark = pytest.mark.slow

APPEARANCES: tuple[tuple[str, Scheme], ...] = (("desktop", "light"), ("phone", "dark"))


@pytest.fixture(scope="module")
def filled() -> Iterator[Stage]:
    """A server on which somebody has said odd things."""
    with serving(Script()) as stage:
        fill(stage)
        yield stage


@pytest.fixture
def look(filled: Stage, context: Callable[..., BrowserContext]) -> Callable[..., Inspector]:
    """Somebody who has signed in, with a browser of his own."""

    def make(**options: object) -> Inspector:
        inspector = Inspector(context(**options).new_page(), filled.url)
        inspector.sign_in(filled.key("admin"))
        return inspector

    return make


@pytest.mark.parametrize("locale", ["en-GB", "ru-RU"])
def test_every_page_can_be_read_by_everybody(look: Callable[..., Inspector], locale: str) -> None:
    """Axe finds nothing serious, large and light or small and dark. No page is wider than the window, whatever it
    shows, nor when it is zoomed in four times (WCAG 2.2, 1.4.10). Nothing breaks the policy, no hostile text runs, and
    nothing is asked for elsewhere.
    """
    inspector = look(locale=locale)
    page, seen = inspector.page, []
    for name in inspector.every_page():
        seen.append(name)
        assert page.locator("html").get_attribute("lang") == locale[:2]
        assert page.locator("main img, main script").count() == 0
        assert page.title().endswith("nitka")
        for size, scheme in APPEARANCES:
            inspector.appear(size, scheme)
            assert serious(page) == [], (name, size, scheme)
            assert inspector.too_wide == 0, (name, size)
        inspector.appear("zoomed", "light")
        assert inspector.too_wide == 0, name
        inspector.appear("desktop", "light")
    assert {"person", "facts", "session", "turn", "summary", "watch", "cost", "parse"} <= set(seen)
    assert inspector.problems == []
    assert inspector.asked == {inspector.url}


def test_the_way_from_a_name_to_the_words_of_a_request(look: Callable[..., Inspector]) -> None:
    """Names stand as they were written; a part of the bar opens its block; blocks are word for word."""
    inspector = look()
    page = inspector.page
    inspector.person()
    expect(page.locator("h1")).to_contain_text(USER)
    assert HOSTILE not in page.url and "anna" not in page.url
    inspector.open()
    expect(page.locator("h1")).to_contain_text(SESSION[:60])
    page.get_by_role("link", name="Rows 58–59").click()
    history = page.locator("svg.apart rect.fill-history").nth(2)
    number = history.get_attribute("data-block")
    block = page.locator(f"#block-{number}")
    expect(block).not_to_have_attribute("open", "")
    history.click()
    expect(block).to_have_attribute("open", "")
    expect(block.locator("summary")).to_be_focused()
    questions = [text for text in page.locator("details.block pre").all_inner_texts() if "(2" in text]
    assert any(ODD[4] in text for text in questions)
    page.get_by_role("link", name="Turn before").click()
    expect(page.locator("h2").first).to_have_text("Rows 56–57")
    page.get_by_role("link", name="Summary", exact=True).click()
    expect(page.locator(".tabs [aria-current=page]")).to_have_text("Summary")
    page.locator(".lines a").first.click()
    expect(page.locator("h2").first).to_have_text("Rows 0–1")
    assert inspector.problems == []


def test_a_fact_leads_to_the_turn_that_said_it(look: Callable[..., Inspector]) -> None:
    inspector = look()
    page = inspector.page
    inspector.person()
    page.get_by_role("link", name="Facts").click()
    expect(page.locator(".fact", has_text="lives in")).to_contain_text("What it was before")
    expect(page.locator(".fact", has_text="likes")).to_contain_text(HOSTILE)
    page.locator(".fact", has_text="is called Anna").locator("button.link").first.click()
    expect(page.locator(".bubble.user").first).to_contain_text("My name is Anna")


def test_flags_add_up_to_an_alert_and_lead_to_their_turns(look: Callable[..., Inspector]) -> None:
    inspector = look()
    inspector.person()
    inspector.open()
    inspector.view("watch")
    alert = inspector.page.locator("article.alert", has_text="G01").first
    expect(alert).to_contain_text("asked where the parents are")
    expect(alert.locator("li").first.locator("a")).to_have_text("row 14")
    alert.locator("li a").last.click()
    expect(inspector.page.locator(".bubble.user").first).to_contain_text("camera")


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_row_numbers_stand_under_their_ticks(look: Callable[..., Inspector], size: str) -> None:
    """Each in the middle under its own, none over another, none beside the page."""
    who = look()
    who.appear(size, "light")
    who.person()
    who.open()
    who.view("watch")
    lanes = who.page.locator("svg.lane")
    assert lanes.count() > 1 and who.too_wide == 0
    for lane in lanes.all():
        ticks = [box for tick in lane.locator("rect").all() if (box := tick.bounding_box())]
        numbers = [box for text in lane.locator("a text").all() if (box := text.bounding_box())]
        assert len(ticks) == len(numbers) > 0
        for tick, number in zip(ticks, numbers, strict=True):
            assert abs(tick["x"] + tick["width"] / 2 - number["x"] - number["width"] / 2) < 1.5
            assert number["y"] >= tick["y"] + tick["height"] - 1
        for at, one in enumerate(numbers):
            for other in numbers[:at]:
                assert other["x"] + other["width"] <= one["x"] or abs(other["y"] - one["y"]) >= one["height"]


def test_everything_can_be_done_by_keyboard(filled: Stage, context: Callable[..., BrowserContext]) -> None:
    inspector = Inspector(context().new_page(), filled.url)
    page = inspector.page
    page.goto(f"{filled.url}/inspector")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("#key")).to_be_focused()
    page.keyboard.type(filled.key("admin"))
    page.keyboard.press("Enter")
    page.locator("#user").focus()
    page.keyboard.type(USER)
    page.keyboard.press("Enter")
    page.locator("button.card").last.focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Rows 58–59").focus()
    page.keyboard.press("Enter")
    page.locator("details.block summary").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("details.block").first).to_have_attribute("open", "")
    page.keyboard.press("Tab")
    expect(page.locator("details.block pre").first).to_be_focused()


def test_it_works_without_its_script(filled: Stage, context: Callable[..., BrowserContext]) -> None:
    inspector = Inspector(context(java_script_enabled=False).new_page(), filled.url)
    inspector.sign_in(filled.key("admin"))
    inspector.person()
    inspector.open()
    inspector.view("turn", "?seq=58")
    inspector.page.locator("details.block summary").last.click()
    expect(inspector.page.locator("details.block pre").last).to_be_visible()
    inspector.page.goto(f"{filled.url}/inspector/parse")
    inspector.page.fill("#text", "Where are your parents now?")
    inspector.page.locator("button.main").click()
    expect(inspector.page.locator(".step")).to_contain_text("asks where the parents are")


def test_languages_can_be_switched_and_a_visit_ended(look: Callable[..., Inspector]) -> None:
    inspector = look()
    page = inspector.page
    inspector.person()
    page.get_by_role("button", name="Русский").click()
    expect(page.locator(".tabs [aria-current=page]")).to_contain_text("Беседы")
    address = page.url
    page.get_by_role("button", name="Выйти").click()
    expect(page.locator("#key")).to_be_visible()
    page.goto(address)
    expect(page.locator("[role=alert]")).to_contain_text("Вход закончился")


def test_a_wrong_key_and_a_key_of_another_scope_are_told_apart(
    filled: Stage, context: Callable[..., BrowserContext]
) -> None:
    inspector = Inspector(context().new_page(), filled.url)
    inspector.sign_in("nk_wrong")
    expect(inspector.page.locator("[role=alert]")).to_contain_text("not known")
    inspector.sign_in(filled.key("turns", "read", "parse"))
    expect(inspector.page.locator("[role=alert]")).to_contain_text("scope admin")
    assert serious(inspector.page) == []


def test_another_site_neither_frames_it_nor_sends_its_forms(
    look: Callable[..., Inspector], filled: Stage, site: object
) -> None:
    """A page elsewhere that frames the inspector sees nothing, and a form of its own that aims at it does nothing."""
    inspector = look()
    page = inspector.page
    put = site.put  # type: ignore[attr-defined]
    page.goto(put(f'<!doctype html><iframe src="{filled.url}/inspector"></iframe>'))
    page.wait_for_timeout(300)
    assert page.frames[1].locator("#user, #key").count() == 0
    form = f'<form method="post" action="{filled.url}/inspector/person"><input name="user" value="{"anna"}"></form>'
    page.goto(put(f"<!doctype html>{form}", path="/form"))
    with page.expect_response(lambda response: "/inspector/person" in response.url) as answer:
        page.evaluate("document.forms[0].submit()")
    assert answer.value.status in (401, 403)
