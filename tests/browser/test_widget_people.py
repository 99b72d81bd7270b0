"""Who sits before the page: strangers, users, users who were strangers, and the next one at a shared computer."""

from __future__ import annotations

import time
from typing import Any

import pytest
from playwright.sync_api import expect

from nitka.types import User
from tests.browser.stage import Speaker
from tests.browser.widget import Chat, Shop
from tests.server.stage import Stage

pytestmark = pytest.mark.slow


def sign_in(chat: Chat, token: str) -> None:
    chat.page.evaluate("token => document.querySelector('nitka-chat').setAttribute('user-token', token)", token)


def sign_out(chat: Chat) -> None:
    chat.page.evaluate("document.querySelector('nitka-chat').removeAttribute('user-token')")


def kept(house: Stage, user: str) -> list[str]:
    """What the user has said, in all conversations."""
    house.users.add(User(user))
    found = house.run(house.nitka.sessions(User(user)))
    rows = [row for one in found for row in house.run(house.nitka.history(User(user), one.id, limit=1000))]
    return [row.text for row in rows if row.role == "user"]


def test_the_page_learns_the_visitors_id_so_that_its_server_can_sign_it(shop: Shop) -> None:
    """As a property, and by an event when there is one; nobody is made before he writes."""
    chat = shop.chat()
    chat.page.evaluate("addEventListener('nitka-visitor', ({ detail }) => (window.told = detail.visitor))")
    assert (chat.visitor, chat.record) == (None, None)
    chat.say("Hello.", "All right.")
    assert chat.page.evaluate("window.told") == chat.visitor == chat.record["visitor"]["id"]


def test_the_conversation_goes_on_when_the_visitor_signs_in(shop: Shop, speaker: Speaker) -> None:
    """He and the user are one from then on; the visitor is gone."""
    chat = shop.chat()
    chat.say("My dog is called Rex.", "All right.")
    guest = chat.visitor
    assert guest
    chat.input.fill("a draft")
    sign_in(chat, shop.token("anna", visitor=guest))
    gone(chat)
    expect(chat.questions).to_have_text(["My dog is called Rex."])
    expect(chat.input).to_have_value("a draft")
    speaker.answer = lambda messages: "Rex." if "Rex" in str(messages) else "I do not know."
    chat.say("What is my dog called?", "Rex.")
    assert kept(shop.house, "anna") == ["My dog is called Rex.", "What is my dog called?"]
    assert kept(shop.house, guest) == []
    chat.page.goto(shop.put(user_token=shop.token("anna")))
    chat.open()
    expect(chat.questions).to_have_text(["My dog is called Rex.", "What is my dog called?"])


def test_an_answer_that_is_being_written_at_the_sign_in_is_the_users(shop: Shop, speaker: Speaker) -> None:
    """What was asked as a visitor is answered to him, and he is joined then; nothing is lost between the two."""
    chat = shop.chat()
    chat.say("One.", "All right.")
    speaker.hold = 1
    chat.write("Two.")
    expect(chat.answers.last).to_have_text("All righ")
    sign_in(chat, shop.token("anna", visitor=chat.visitor or ""))
    chat.page.wait_for_timeout(300)
    speaker.go.set()
    gone(chat)
    expect(chat.answers).to_have_text(["All right.", "All right."])
    expect(chat.host.locator(".note")).to_have_count(0)
    chat.say("Three.", "All right.")
    assert kept(shop.house, "anna") == ["One.", "Two.", "Three."]


def test_an_answer_that_is_stopped_after_the_sign_in_is_kept_as_it_was_shown(shop: Shop, speaker: Speaker) -> None:
    chat = shop.chat()
    speaker.hold = 1
    chat.write("One.")
    expect(chat.answers.last).to_have_text("All righ")
    sign_in(chat, shop.token("anna", visitor=chat.visitor or ""))
    chat.button("Stop the answer").click()
    gone(chat)
    expect(chat.answers).to_have_text(["All righ"])
    assert kept(shop.house, "anna") == ["One."]


def test_whoever_only_reads_the_page_leaves_nothing_in_the_browser(shop: Shop) -> None:
    tab = shop.context().new_page()
    tab.goto(shop.put())
    chat = Chat(tab, []).open()
    chat.button("Close the chat").click()
    stored = tab.evaluate("[localStorage.length, sessionStorage.length, document.cookie]")
    assert stored == [0, 0, ""]
    chat.open()
    chat.say("Hello.", "All right.")
    assert chat.record["visitor"]


def gone(chat: Chat) -> None:
    """Waits until there is no visitor any more. (The page's policy forbids waiting inside it: that takes `eval`.)"""
    end = time.monotonic() + 15
    while chat.visitor is not None and time.monotonic() < end:
        chat.page.wait_for_timeout(20)
    assert chat.visitor is None


def test_who_signs_in_before_the_host_knows_the_visitor_is_joined_when_it_does(shop: Shop) -> None:
    """A first token names the user alone; the page has the visitor's id signed and gives a second one."""
    browser = shop.context()
    chat = shop.chat(browser)
    chat.say("My dog is called Rex.", "All right.")
    guest = chat.visitor
    sign_in(chat, shop.token("anna"))
    expect(chat.questions).to_have_count(0)  # not his yet, for all the server knows
    assert chat.visitor == guest
    sign_in(chat, shop.token("anna", visitor=guest))
    gone(chat)
    expect(chat.questions).to_have_text(["My dog is called Rex."])
    assert kept(shop.house, "anna") == ["My dog is called Rex."]


def test_a_shared_computer_shows_nothing_to_the_next(shop: Shop, speaker: Speaker) -> None:
    """Anna signs out, a stranger comes, Bert signs in: none sees what another said, on the screen, in storage, among
    facts, or in answers.
    """
    chat = shop.chat(user_token=shop.token("anna"))
    speaker.answer = lambda messages: "I see Rex." if "Rex" in str(messages) else "I see nothing."
    chat.say("My dog is called Rex.", "I see Rex.")
    chat.input.fill("Rex is")
    shop.house.run(shop.house.nitka.settle())
    chat.know()
    expect(chat.facts.first).to_be_visible()
    sign_out(chat)
    for token in (None, "bert"):
        if token:
            sign_in(chat, shop.token(token))
        stored = chat.page.evaluate("JSON.stringify([localStorage, sessionStorage])")
        everything = stored + chat.host.evaluate("(host) => host.shadowRoot.textContent")
        assert "Rex" not in everything
        assert "anna" not in everything
        expect(chat.input).to_have_value("")
        chat.say("What do you see?", "I see nothing.")
        chat.know()
        expect(chat.host.locator(".facts")).to_contain_text("Nothing is remembered about you.")
        chat.button("Back to the conversation").click()
    assert kept(shop.house, "anna") == ["My dog is called Rex."]
    assert kept(shop.house, "bert") == ["What do you see?"]
    sign_out(chat)
    sign_in(chat, shop.token("anna"))
    expect(chat.questions).to_have_count(0)
    chat.say("And I?", "I see Rex.")  # what was learned of her is hers wherever she signs in


def test_who_closes_the_browser_without_signing_out_leaves_nothing_either(shop: Shop) -> None:
    browser = shop.context()
    chat = shop.chat(browser, user_token=shop.token("anna"))
    chat.say("My dog is called Rex.", "All right.")
    chat.page.close()
    later = shop.chat(browser)
    expect(later.questions).to_have_count(0)
    assert "anna" not in str(later.record)
    later.say("Hello.", "All right.")
    assert kept(shop.house, "anna") == ["My dog is called Rex."]


def test_signing_out_in_one_tab_empties_the_other(shop: Shop) -> None:
    browser = shop.context()
    token = shop.token("anna")
    first, second = shop.chat(browser, user_token=token), shop.chat(browser, user_token=token)
    first.say("My dog is called Rex.", "All right.")
    expect(second.questions).to_have_count(1)
    sign_out(first)
    expect(second.questions).to_have_count(0)
    expect(second.host.locator(".banner")).to_contain_text("Somebody signed in or out in another tab.")
    expect(second.input).to_be_disabled()
    first.say("Hello.", "All right.")
    expect(second.questions).to_have_count(0)
    second.button("Reload the page").click()
    second.open()
    assert kept(shop.house, "anna") == ["My dog is called Rex."]


def test_a_page_that_is_come_back_to_shows_nothing_of_who_signed_out_since(shop: Shop) -> None:
    """Browsers keep pages that were left as they were. (Told here by the event that they then send.)"""
    chat = shop.chat(user_token=shop.token("anna"))
    chat.say("My dog is called Rex.", "All right.")
    chat.page.evaluate(
        """() => {
            const name = Object.keys(localStorage).find((name) => name.startsWith("nitka:"));
            localStorage.setItem(name, JSON.stringify({ who: "", session: "s", visitor: null, said: "" }));
            dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
        }"""
    )
    expect(chat.questions).to_have_count(0)
    expect(chat.input).to_be_disabled()


def test_a_sign_in_that_has_ended_is_asked_for_again(shop: Shop) -> None:
    """The page is told, gives a new token, and what was written goes out."""
    chat = shop.chat(user_token=shop.token("anna", exp=int(shop.house.clock().timestamp()) - 1))
    chat.page.evaluate("addEventListener('nitka-token-needed', () => (window.needed = true))")
    chat.write("Hello.")
    expect(chat.host.locator(".note.bad")).to_contain_text("Your sign-in has ended.")
    assert chat.page.evaluate("window.needed") is True
    sign_in(chat, shop.token("anna"))
    expect(chat.answers).to_have_text(["All right."])
    expect(chat.host.locator(".note.bad")).to_have_count(0)
    chat.settled()
    assert kept(shop.house, "anna") == ["Hello."]


def test_a_page_that_does_not_know_yet_who_is_there_shows_nobody(shop: Shop) -> None:
    """An empty token: wait. So a page that asks its server first does not look as if he had signed out."""
    browser = shop.context()
    chat = shop.chat(browser, user_token=shop.token("anna"))
    chat.say("My dog is called Rex.", "All right.")
    chat.page.goto(shop.put(user_token=""))
    chat.open()
    expect(chat.host.locator(".banner")).to_contain_text("One moment")
    expect(chat.input).to_be_disabled()
    sign_in(chat, shop.token("anna"))
    expect(chat.questions).to_have_text(["My dog is called Rex."])


def test_signing_out_in_mid_answer_shows_nothing_of_it(shop: Shop, speaker: Speaker) -> None:
    """What was handed out is the user's; the stranger sees none of it, not even in the box that he writes in."""
    chat = shop.chat(user_token=shop.token("anna"))
    speaker.answer, speaker.hold = lambda messages: "Rex is a good dog. " * 5, 2
    chat.write("Tell me of Rex.")
    expect(chat.answers).to_contain_text("Rex is")
    sign_out(chat)
    expect(chat.questions).to_have_count(0)
    speaker.go.set()
    speaker.hold, speaker.answer = None, lambda messages: "Hello."
    chat.say("Hi.", "Hello.")
    expect(chat.questions).to_have_text(["Hi."])
    assert kept(shop.house, "anna") == ["Tell me of Rex."]


def test_a_browser_that_keeps_nothing_has_a_chat_for_as_long_as_its_page_lives(shop: Shop) -> None:
    context = shop.context()
    context.add_init_script(
        """for (const name of ["localStorage", "sessionStorage"]) {
            Object.defineProperty(window, name, { get() { throw new DOMException("no", "SecurityError"); } });
        }"""
    )
    tab = context.new_page()
    tab.goto(shop.put())
    problems: list[Any] = []
    tab.on("pageerror", lambda error: problems.append(error))
    chat = Chat(tab, problems).open()
    chat.say("My dog is called Rex.", "All right.")
    chat.say("And my cat Tom.", "All right.")
    guest = chat.visitor
    assert guest
    assert kept(shop.house, guest) == ["My dog is called Rex.", "And my cat Tom."]
    chat.page.reload()
    chat.open()
    expect(chat.questions).to_have_count(0)
    assert problems == []


def test_a_visitor_whom_the_server_does_not_know_any_more_is_a_new_one(shop: Shop) -> None:
    """His key was changed, say: his message is sent all the same, as somebody new."""
    chat = shop.chat()
    chat.say("Hello.", "All right.")
    before = chat.visitor
    shop.key = shop.house.key("widget", origins=(shop.site.url,))
    name = chat.page.evaluate("() => Object.keys(localStorage).find((name) => name.startsWith('nitka:'))")
    chat.page.evaluate(
        "([old, key]) => localStorage.setItem(old.replace(/pk_.*/, key), localStorage.getItem(old))", [name, shop.key]
    )
    chat.page.goto(shop.put())
    chat.open()
    expect(chat.host.locator(".notice")).to_have_count(0)
    chat.write("Hello again.")
    expect(chat.answers.last).to_have_text("All right.")
    chat.settled()
    assert chat.visitor not in (before, None)
