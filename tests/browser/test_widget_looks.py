"""What it looks and sounds like: languages, widths, schemes, zoom, keyboard, screen reader, axe's rules."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from nitka.types import User
from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.inspecting import violations
from tests.browser.stage import Speaker
from tests.browser.widget import Chat, Shop

pytestmark = pytest.mark.slow

ANSWER = (
    "# Order\n\n**On its way**, see [the page](https://a.example).\n\n1. one\n2. two\n\n> so\n\n`code`\n\n```\nx\n```\n"
)
ZOOMED = {"width": 320, "height": 256}  # 1280 by 1024 at 400 %

SMALL = """(host) => [...host.shadowRoot.querySelectorAll("button, textarea, label")]
    .filter((part) => part.checkVisibility() && !part.closest("[hidden]"))
    .map((part) => [part.textContent || part.ariaLabel, part.getBoundingClientRect()])
    .filter(([, { width, height }]) => width < 44 || height < 44)
    .map(([name, { width, height }]) => `${name}: ${width} by ${height}`)"""

WIDE = """(host) => {
    const wide = (part) => part.scrollWidth > part.clientWidth + 1;
    const parts = [...host.shadowRoot.querySelectorAll(".panel, .main, header, form, .text")];
    const shown = [document.documentElement, ...parts].filter((part) => part.checkVisibility());
    return shown.filter(wide).map((part) => `${part.localName}.${part.className} is too wide`);
}"""


def grave(chat: Chat) -> list[str]:
    """What axe finds that is serious or critical."""
    return [
        f"{one['id']}: {[node['html'][:200] for node in one['nodes']]}"
        for one in violations(chat.page)
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(
    ("lang", "options"),
    [
        ("en", {"viewport": DESKTOP, "color_scheme": "light"}),
        ("ru", {"viewport": DESKTOP, "color_scheme": "dark"}),
        ("ru", {"viewport": PHONE, "color_scheme": "light"}),
        ("en", {"viewport": PHONE, "color_scheme": "dark"}),
        ("ru", {"viewport": ZOOMED, "color_scheme": "light"}),
        ("en", {"viewport": DESKTOP, "forced_colors": "active"}),
    ],
    ids=["desktop light en", "desktop dark ru", "phone light ru", "phone dark en", "zoomed ru", "forced colours"],
)
def test_every_state_is_within_reach(shop: Shop, speaker: Speaker, lang: str, options: dict[str, Any]) -> None:
    """A conversation, an error, private, the facts, the question before everything goes: axe finds nothing grave, all
    targets have 44 px, nothing is wider than its place.
    """
    browser = shop.context(**options)
    chat = shop.chat(browser, lang=lang)
    speaker.answer = lambda messages: ANSWER + "W" * 300
    chat.write("Where is it? " + "ы" * 200)
    expect(chat.answers.locator("pre")).to_have_count(1)
    chat.settled()
    chat.page.route("**/v1/turns", lambda route: route.fulfill(status=500, json={}))
    chat.write("And now?")
    expect(chat.host.locator(".note.bad")).to_have_count(1)
    chat.host.get_by_role("switch").check()
    problems = [*grave(chat), *chat.host.evaluate(SMALL), *chat.host.evaluate(WIDE)]
    who = User(chat.record["visitor"]["id"])
    shop.house.users.add(who)
    for slot in ("home.city", "work.title"):
        shop.house.run(shop.house.nitka.set_fact(who, slot, "R" * 200))
    chat.host.locator("header button:visible").first.click()
    chat.host.locator(".facts .danger").click()
    expect(chat.host.locator(".ask")).to_be_visible()
    problems += [*grave(chat), *chat.host.evaluate(SMALL), *chat.host.evaluate(WIDE)]
    assert problems == []
    assert chat.problems == []


def test_what_is_at_the_end_stays_in_sight_where_the_window_is_low(shop: Shop, speaker: Speaker) -> None:
    chat = shop.chat(shop.context(viewport=ZOOMED))
    for number in range(3):
        speaker.answer = lambda messages, n=number: f"Answer {n}."  # type: ignore[misc]
        chat.say(f"Question {number}.", f"Answer {number}.")
    expect(chat.answers.last).to_be_in_viewport()
    expect(chat.input).to_be_in_viewport()


def test_it_speaks_the_pages_language_or_what_the_page_says(shop: Shop) -> None:
    """English and Russian by `lang`, of the element first; other words by attributes; unknown languages are English."""
    chat = shop.chat(lang="ru-RU")
    expect(chat.host.get_by_text("Вам отвечает искусственный интеллект.")).to_be_visible()
    expect(chat.input).to_have_attribute("placeholder", "Напишите сообщение")
    words = {"text_hint": "Nachricht schreiben", "text_title": "Werkstatt", "text_know": "Was weißt du?"}
    chat.page.goto(shop.put(lang="de", **words))
    chat.open()
    expect(chat.input).to_have_attribute("placeholder", "Nachricht schreiben")
    expect(chat.host.locator("h2")).to_have_text("Werkstatt")
    expect(chat.button("Was weißt du?")).to_have_count(2)
    expect(chat.button("New conversation")).to_be_visible()
    chat.page.evaluate("document.querySelector('nitka-chat').setAttribute('lang', 'ru')")
    expect(chat.button("Новый разговор")).to_be_visible()


def test_each_message_has_its_language_and_its_direction(shop: Shop, speaker: Speaker) -> None:
    chat = shop.chat(shop.context(locale="uk-UA"))
    table = {
        "Hello there, 5 €": ("en", "ltr"),
        "Добрый день, Anna": ("uk-UA", "ltr"),  # of those in Cyrillic, the one that the reader reads
        "שלום עולם abc": ("he", "rtl"),
        "مرحبا بكم": ("ar", "rtl"),
        "こんにちは、世界": ("ja", "ltr"),
        "🐕 👩‍👩‍👧 1234": ("en", "ltr"),
    }
    speaker.answer = lambda messages: str(messages[-1]["content"])
    for text in table:
        chat.say(text, text)
    # Of an answer each paragraph has a direction of its own.
    style = "(texts) => texts.map((it) => [it.lang, getComputedStyle(it.querySelector('p') ?? it).direction])"
    for texts in (chat.questions, chat.answers):
        assert texts.evaluate_all(style) == [list(value) for value in table.values()]


def test_the_keyboard_does_everything(shop: Shop, speaker: Speaker) -> None:
    """Open, write, a line more, send, see what is known, come back, close: the focus is where it is looked for."""
    chat = shop.chat()
    page = chat.page
    page.keyboard.press("Escape")
    expect(chat.panel).to_be_hidden()
    expect(chat.host.locator(".launcher")).to_be_focused()
    expect(chat.host.locator(".launcher")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    expect(chat.input).to_be_focused()
    page.keyboard.type("One")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    expect(chat.questions).to_have_text(["One\ntwo"])
    chat.settled()
    expect(chat.input).to_be_focused()
    page.keyboard.type("x")
    order = []
    for _ in range(3):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.shadowRoot.activeElement.ariaLabel ?? 'switch'"))
    assert order == ["Send", "switch", "Chat"]
    for _ in range(9):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement?.shadowRoot?.activeElement?.ariaLabel ?? ''").startswith(
            "What do you"
        ):
            break
    page.keyboard.press("Enter")
    expect(chat.button("Back to the conversation")).to_be_focused()
    page.keyboard.press("Escape")
    expect(chat.input).to_be_focused()
    page.keyboard.press("Escape")
    expect(chat.panel).to_be_hidden()


def test_a_host_may_open_it_and_gets_the_focus_back(shop: Shop) -> None:
    chat = shop.chat()
    chat.page.keyboard.press("Escape")
    chat.page.evaluate(
        """() => {
            const ask = document.createElement("button");
            ask.textContent = "Ask us";
            ask.addEventListener("click", () => document.querySelector("nitka-chat").open());
            document.querySelector("main").append(ask);
        }"""
    )
    chat.page.get_by_role("button", name="Ask us").click()
    expect(chat.input).to_be_focused()
    chat.page.keyboard.press("Escape")
    expect(chat.page.get_by_role("button", name="Ask us")).to_be_focused()


def test_keys_of_an_input_method_are_its_own(shop: Shop, speaker: Speaker) -> None:
    """Enter chooses a candidate, and does not send; Escape drops it, and does not close."""
    chat = shop.chat()
    chat.input.fill("こん")
    for key in ("Enter", "Escape"):
        chat.input.evaluate(
            """(input, key) =>
                input.dispatchEvent(new KeyboardEvent("keydown", { key, isComposing: true, bubbles: true }))""",
            key,
        )
    expect(chat.input).to_have_value("こん")
    expect(chat.panel).to_be_visible()
    assert speaker.asked == []


def test_there_is_one_live_region_and_it_says_whole_sentences_once(shop: Shop, speaker: Speaker) -> None:
    """However an answer comes in pieces; Markdown is not read out, an error and a notice are."""
    chat = shop.chat()
    speaker.chunk = 1
    speaker.answer = lambda messages: "It costs 3.50 €. **Really**! See [here](https://a.example).\n\n- One thing"
    chat.write("What does it cost?")
    expect(chat.answers.locator("li")).to_have_count(1)
    chat.settled()
    assert [text.strip() for text in chat.spoken] == ["It costs 3.50 €.", "Really !", "See here.", "- One thing"]
    assert chat.host.locator("[aria-live], [role=log], [role=status], [role=alert]").count() == 1
    chat.button("New conversation").click()
    assert chat.spoken == ["A new conversation. What was learned about you stays."]


def test_nothing_moves(shop: Shop, speaker: Speaker) -> None:
    """No animation, so none that who asked for less motion would have to be spared."""
    chat = shop.chat()
    speaker.hold = 0
    chat.write("Wait.")
    expect(chat.answers).to_have_text("An answer is being written…")
    count = "(host) => [...host.shadowRoot.querySelectorAll('*')].flatMap((part) => part.getAnimations()).length"
    assert chat.host.evaluate(count) == 0


def test_the_page_chooses_colours_measures_and_scheme(shop: Shop) -> None:
    style = "nitka-chat{--nitka-accent:#7a1f5c;--nitka-radius:0px;--nitka-width:333px;--nitka-font:italic 18px serif}"
    shop.site.put(style, path="/s.css", Content_Type="text/css")
    chat = shop.chat(shop.context(color_scheme="dark"), theme="light", csp="")
    chat.page.add_style_tag(url=f"{shop.site.url}/s.css")
    expect(chat.panel).to_have_css("width", "333px")
    expect(chat.panel).to_have_css("border-top-left-radius", "0px")
    expect(chat.panel).to_have_css("font-style", "italic")
    expect(chat.host.locator(".launcher")).to_have_css("background-color", "rgb(122, 31, 92)")
    expect(chat.panel).to_have_css("background-color", "rgb(255, 255, 255)")


def test_on_a_phone_it_is_all_there_is(shop: Shop) -> None:
    """It fills the screen, the page behind is out of reach, and it closes."""
    chat = shop.chat(shop.context(viewport=PHONE))
    assert chat.panel.bounding_box() == {"x": 0, "y": 0, **PHONE}
    assert chat.panel.evaluate("(panel) => panel.matches(':modal')")
    chat.button("Close the chat").click()
    expect(chat.panel).to_be_hidden()
    expect(chat.host.locator(".launcher")).to_be_focused()


@pytest.mark.parametrize("name", ["widget.md", "widget.ru.md"])
def test_what_the_documents_tell_to_put_into_a_page_is_all_it_takes(shop: Shop, name: str) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / name).read_text(encoding="utf-8")
    snippet = re.findall(r"```html\n(.*?)```", page, re.DOTALL)[0]
    html = snippet.replace("https://nitka.example", shop.server).replace("pk_...", shop.key)
    tab = shop.context().new_page()
    tab.goto(shop.site.put(f"<!doctype html><title>Shop</title>{html}", path="/snippet"))
    Chat(tab, []).open().say("Hello.", "All right.")
