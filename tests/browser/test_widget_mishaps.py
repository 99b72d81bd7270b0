"""What goes wrong on ordinary days: two clicks for one, a page left in mid-answer, no line, a wrong key."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from nitka.types import User
from tests.browser.stage import Line, Speaker
from tests.browser.widget import Chat, Shop

pytestmark = pytest.mark.slow

STORY = "Once upon a time there was a thread. It was long and red. It never broke."
SET_UP = "This chat is not set up for this page."


def test_a_double_click_on_send_is_one_message_and_does_not_stop_its_answer(shop: Shop, speaker: Speaker) -> None:
    """The button has become Stop by the second click, which was not meant for it; a later one stops."""
    chat = shop.chat()
    speaker.hold = 0
    chat.input.fill("Hello.")
    chat.button("Send").dblclick()
    speaker.go.set()
    expect(chat.answers).to_have_text(["All right."])
    chat.settled()
    assert shop.rows(chat) == [("user", "Hello."), ("assistant", "All right.")]
    speaker.go.clear()
    chat.input.fill("Again.")
    chat.button("Send").focus()
    for _ in range(2):
        chat.page.keyboard.press("Space")
    chat.button("Stop the answer").click()
    expect(chat.input).to_have_value("Again.")


def test_a_page_that_is_left_in_mid_answer_shows_once_what_is_kept(shop: Shop, speaker: Speaker) -> None:
    """Reloaded, or another page of the site: nothing is said to be unsent that was kept."""
    chat = shop.chat()
    chat.say("One.", "All right.")
    speaker.answer, speaker.pause = lambda messages: STORY, 0.3
    chat.write("Two.")
    expect(chat.answers.last).to_contain_text("Once upon")
    chat.reload()
    expect(chat.host.get_by_text("The answer was cut short. This is what is kept.").first).to_be_visible()
    chat.settled()
    rows = shop.rows(chat)
    assert [text for role, text in rows if role == "user"] == ["One.", "Two."]
    expect(chat.questions).to_have_text(["One.", "Two."])
    expect(chat.answers).to_have_text(["All right.", rows[3][1]])
    expect(chat.host.locator(".note")).to_have_count(1)
    chat.reload()
    expect(chat.questions).to_have_text(["One.", "Two."])
    expect(chat.host.locator(".note")).to_have_text(["The answer was cut short. This is what is kept."])


def test_a_fact_about_somebody_else_says_about_whom(shop: Shop) -> None:
    chat = shop.chat()
    chat.say("Hello.", "All right.")
    who = User(chat.record["visitor"]["id"])
    shop.house.users.add(who)
    shop.house.run(shop.house.nitka.set_fact(who, "likes", "jazz", about="Vera"))
    shop.house.run(shop.house.nitka.set_fact(who, "city", "Riga"))
    chat.know()
    expect(chat.host.locator(".facts li")).to_have_count(2)
    expect(chat.host.locator(".facts li").filter(has_text="jazz")).to_have_text(re.compile("^Vera: "))
    expect(chat.host.get_by_role("button", name=re.compile("^Delete: Vera: .*jazz"))).to_have_count(1)
    expect(chat.host.get_by_role("button", name=re.compile("^Delete: (?!Vera|user).*Riga"))).to_have_count(1)


@pytest.mark.parametrize("wrong", ["pk_wrong", "nk_wrong", "origin"])
def test_a_wrong_key_or_page_is_told_at_once(shop: Shop, wrong: str) -> None:
    """The browser may not read the refusal. That the server is there tells it from a line that broke."""
    if wrong == "origin":
        shop.key = shop.house.key("widget", origins=("https://elsewhere.example",))
    else:
        shop.key = wrong
    tab = shop.context().new_page()
    told: list[str] = []
    tab.on("console", lambda message: told.append(message.text))
    sent: list[str] = []
    tab.on("request", lambda request: sent.append(request.url))
    tab.goto(shop.put())
    chat = Chat(tab, []).open()
    chat.write("Hello.")
    expect(chat.host.locator(".note.bad")).to_contain_text(SET_UP)
    chat.settled()
    assert sum(url.endswith("/v1/visitors") for url in sent) == 2, "asked once more: the line might have come back"
    assert any(shop.key[:12] in line and shop.site.url in line for line in told)


def test_what_is_written_offline_waits_and_is_not_called_a_failure(shop: Shop) -> None:
    browser = shop.context()
    chat = shop.chat(browser)
    chat.say("One.", "All right.")
    browser.set_offline(True)
    chat.write("Two.")
    expect(chat.host.locator(".note")).to_contain_text("Goes out when the connection is back.")
    chat.host.get_by_role("switch").check()
    chat.write("Three.")
    chat.host.get_by_role("switch").uncheck()
    expect(chat.host.locator(".note").last).to_contain_text("Private, not kept. Goes out when the connection is back.")
    expect(chat.host.locator(".note.bad")).to_have_count(0)
    expect(chat.button("Try again")).to_have_count(0)
    browser.set_offline(False)
    expect(chat.answers).to_have_text(["All right."] * 3)
    chat.settled()
    assert [text for role, text in shop.rows(chat) if role == "user"] == ["One.", "Two."]


def test_what_could_not_be_read_offline_is_read_when_the_line_is_back(shop: Shop) -> None:
    browser = shop.context()
    chat = shop.chat(browser)
    chat.say("One.", "All right.")
    second = shop.chat(browser, path="/second")
    second.button("Close the chat").click()
    second.page.reload()
    browser.set_offline(True)
    second.open()
    expect(second.host.locator(".notice")).to_contain_text("This could not be read.")
    browser.set_offline(False)
    expect(second.questions).to_have_text(["One."])
    expect(second.host.locator(".notice")).to_have_count(0)


def test_what_could_not_be_read_is_read_when_the_server_is_back(shop: Shop, line: Line) -> None:
    browser = shop.context()
    shop.server = line.url
    chat = shop.chat(browser)
    chat.say("One.", "All right.")
    chat.button("Close the chat").click()
    chat.page.reload()
    chat.page.clock.install()
    line.cut()
    chat.open()
    notice = chat.host.locator(".notice")
    expect(notice).to_contain_text("This could not be read.")
    chat.page.clock.run_for(10_000)
    expect(notice).to_have_count(1)
    line.mend()
    for _ in range(200):
        if chat.questions.count():
            break
        chat.page.wait_for_timeout(50)
        chat.page.clock.run_for(10_000)
    expect(chat.questions).to_have_text(["One."])
    expect(notice).to_have_count(0)


def test_an_ended_sign_in_is_told_once(shop: Shop) -> None:
    chat = shop.chat(user_token=shop.token("anna", exp=int(shop.house.clock().timestamp()) - 1))
    expect(chat.button("Try again")).to_have_count(1)
    chat.write("Hello.")
    expect(chat.host.locator(".note.bad")).to_contain_text("Your sign-in has ended.")
    chat.settled()
    expect(chat.button("Try again")).to_have_count(1)


def test_escape_in_the_question_closes_the_question_alone(shop: Shop) -> None:
    chat = shop.chat()
    chat.say("Hello.", "All right.")
    chat.know()
    chat.button("Forget everything about me").click()
    expect(chat.button("Cancel")).to_be_focused()
    chat.page.keyboard.press("Escape")
    expect(chat.button("Forget everything about me")).to_be_focused()
    expect(chat.button("Cancel")).to_have_count(0)
    chat.page.keyboard.press("Escape")
    expect(chat.input).to_be_focused()


def test_whether_messages_go_too_is_asked_above_the_list(shop: Shop) -> None:
    chat = shop.chat()
    chat.say("Hello.", "All right.")
    who = User(chat.record["visitor"]["id"])
    shop.house.users.add(who)
    shop.house.run(shop.house.nitka.set_fact(who, "city", "Riga"))
    chat.know()
    expect(chat.host.locator(".facts label + ul")).to_have_count(1)
