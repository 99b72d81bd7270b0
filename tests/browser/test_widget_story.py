"""The visitor's whole story: write, reload, a second tab, a new conversation, stop, a cut line, forget me."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from nitka.types import User
from tests.browser.stage import Line, Speaker
from tests.browser.widget import Chat, Shop

pytestmark = pytest.mark.slow

STORY = "Once upon a time there was a thread. It was long and red. It never broke."


def test_a_visitor_writes_and_finds_it_again_after_a_reload(shop: Shop, speaker: Speaker) -> None:
    chat = shop.chat()
    expect(chat.host.get_by_text("This is an AI system. It remembers what you write")).to_be_visible()
    speaker.answer = lambda messages: "Rex is a **good** name."
    chat.say("My dog is called Rex.", "Rex is a good name.")
    expect(chat.answers.locator("strong")).to_have_text("good")
    chat.reload()
    expect(chat.questions).to_have_text(["My dog is called Rex."])
    expect(chat.answers).to_have_text(["Rex is a good name."])
    assert shop.rows(chat) == [("user", "My dog is called Rex."), ("assistant", "Rex is a **good** name.")]
    assert chat.problems == []


def test_an_answer_comes_as_it_is_written(shop: Shop, speaker: Speaker) -> None:
    """Piece by piece, told to a screen reader in whole sentences, each once."""
    chat = shop.chat()
    speaker.answer, speaker.hold = lambda messages: STORY, 5
    chat.write("Tell me a story.")
    expect(chat.answers).to_have_text(STORY[:40])
    expect(chat.host.locator(".main[aria-busy=true]")).to_have_count(1)
    assert chat.spoken == ["Once upon a time there was a thread."]
    speaker.go.set()
    expect(chat.answers).to_have_text(STORY)
    chat.settled()
    assert chat.spoken == ["Once upon a time there was a thread.", "It was long and red.", "It never broke."]
    expect(chat.input).to_be_focused()


def test_two_tabs_are_one_visitor_and_one_conversation(shop: Shop, speaker: Speaker) -> None:
    """What is said in one appears in the other, both ways; a new conversation begins in both."""
    browser = shop.context()
    first = shop.chat(browser)
    first.say("One.", "All right.")
    second = shop.chat(browser)
    expect(second.questions).to_have_text(["One."])
    second.say("Two.", "All right.")
    expect(first.questions).to_have_text(["One.", "Two."])
    first.say("Three.", "All right.")
    expect(second.questions).to_have_text(["One.", "Two.", "Three."])
    assert first.record == second.record
    assert len(shop.rows(first)) == 6
    second.input.fill("a draft")
    first.button("New conversation").click()
    expect(second.questions).to_have_count(0)
    expect(second.host.locator(".notice")).to_have_text("A new conversation. What was learned about you stays.")
    expect(second.input).to_have_value("a draft")
    second.say("Four.", "All right.")
    expect(first.questions).to_have_text(["Four."])


def test_two_tabs_that_begin_at_once_make_one_visitor(shop: Shop) -> None:
    """Also where the second has asked before the first knows its visitor: neither loses what was written in it."""
    browser = shop.context()
    tabs = [shop.chat(browser), shop.chat(browser)]
    asked: list[Route] = []
    browser.route("**/v1/visitors", lambda route: asked.append(route))
    for tab in tabs:
        tab.write("Hello.")
        expect(tab.answers).to_have_count(1)
        tab.page.wait_for_timeout(100)
    assert len(asked) == 1, "the second waits for the first"
    asked[0].continue_()
    for tab in tabs:
        expect(tab.questions).to_have_text(["Hello.", "Hello."])
        tab.settled()
    assert len(asked) == 1 and len(shop.rows(tabs[0])) == 4


def test_two_tabs_of_a_signed_in_user_that_begin_at_once_are_one_conversation(shop: Shop, speaker: Speaker) -> None:
    browser = shop.context()
    token = shop.token("anna")
    tabs = [shop.chat(browser, user_token=token), shop.chat(browser, user_token=token)]
    speaker.hold = 1
    for tab in tabs:
        tab.write("Hello.")
        expect(tab.answers).to_have_count(1)
    speaker.go.set()
    for tab in tabs:
        expect(tab.questions).to_have_text(["Hello.", "Hello."])
        tab.settled()
    assert tabs[0].record["session"] == tabs[1].record["session"] and len(shop.rows(tabs[0], "anna")) == 4


def test_what_was_not_sent_stays_a_draft_when_another_tab_begins_anew(shop: Shop, line: Line) -> None:
    browser = shop.context()
    shop.server = line.url
    first = shop.chat(browser)
    first.say("Sent.", "All right.")
    second = shop.chat(browser)
    line.cut()
    first.write("Not sent yet.")
    expect(first.host.locator(".note")).to_have_text("The connection was lost. Trying again.")
    first.input.fill("and a draft")
    second.button("New conversation").click()
    expect(first.questions).to_have_count(0)
    expect(first.input).to_have_value("Not sent yet.\nand a draft")


def test_a_new_conversation_breaks_the_thread_and_says_what_stays(shop: Shop, speaker: Speaker) -> None:
    chat = shop.chat()
    speaker.answer = lambda messages: f"{len([m for m in messages if m['role'] == 'user'])} questions"
    chat.say("My name is Anna.", "1 questions")
    chat.say("And my cat is Tom.", "2 questions")
    chat.input.fill("a draft")
    chat.button("New conversation").click()
    expect(chat.questions).to_have_count(0)
    expect(chat.host.get_by_text("What was learned about you stays.")).to_have_count(2)  # shown, and told
    expect(chat.input).to_be_focused()
    expect(chat.input).to_have_value("a draft")
    chat.say("Hello again.", "1 questions")
    chat.reload()
    expect(chat.questions).to_have_text(["Hello again."])


def test_what_was_shown_when_an_answer_is_stopped_is_what_is_kept(shop: Shop, speaker: Speaker) -> None:
    chat = shop.chat()
    speaker.answer, speaker.hold = lambda messages: STORY, 3
    chat.write("Tell me a story.")
    expect(chat.answers).to_have_text("Once upon a time there w"[:24])
    chat.button("Stop the answer").click()
    expect(chat.input).to_be_focused()
    expect(chat.host.get_by_text("Stopped. This is what is kept.")).to_have_count(2)
    chat.settled()
    shown = chat.answers.text_content()
    assert shop.rows(chat) == [("user", "Tell me a story."), ("assistant", shown)]
    chat.reload()
    expect(chat.answers).to_have_text([shown or ""])
    speaker.hold, speaker.answer = None, lambda messages: "Done."
    chat.say("Go on.", "Done.")


def test_stopped_before_an_answer_came_nothing_is_kept(shop: Shop, speaker: Speaker) -> None:
    """The text is back where it was written."""
    chat = shop.chat()
    speaker.hold = 0
    chat.write("Tell me a story.")
    expect(chat.answers).to_have_text("An answer is being written…")
    chat.button("Stop the answer").click()
    expect(chat.input).to_have_value("Tell me a story.")
    expect(chat.questions).to_have_count(0)
    expect(chat.host.locator(".notice")).to_contain_text("Nothing was kept")
    assert shop.rows(chat) == []


def test_stopped_while_the_line_is_away_nothing_is_said_to_be_kept(shop: Shop, speaker: Speaker, line: Line) -> None:
    """Nobody can know; sent again under its key, the server says what it kept."""
    chat = broken_off(shop, speaker, line)
    chat.button("Stop the answer").click()
    expect(chat.host.locator(".note.bad")).to_contain_text("Not sent. Your text is still here.")
    expect(chat.host.get_by_text("This is what is kept.")).to_have_count(0)
    line.mend()
    chat.button("Try again").click()
    expect(chat.host.locator(".note")).to_have_text("The answer was cut short. This is what is kept.")
    rows = shop.rows(chat)
    expect(chat.answers).to_have_text([rows[1][1]])


def cut(shop: Shop, line: Line) -> Chat:
    """A chat over a line that can be cut."""
    shop.server = line.url
    return shop.chat()


def broken_off(shop: Shop, speaker: Speaker, line: Line) -> Chat:
    """A chat whose line broke in mid-answer."""
    chat = cut(shop, line)
    speaker.answer, speaker.hold = lambda messages: STORY, 5
    chat.write("Tell me a story.")
    expect(chat.answers).to_have_text(STORY[:40])
    line.cut()
    expect(chat.host.locator(".note")).to_have_text("The connection was lost. Trying again.")
    return chat


def test_a_line_that_breaks_in_mid_answer_is_mended_without_doubling(shop: Shop, speaker: Speaker, line: Line) -> None:
    """What was handed out is kept; delivered again under the same key, it comes back as it is kept."""
    chat = broken_off(shop, speaker, line)
    line.mend()
    expect(chat.host.locator(".note")).to_have_text("The answer was cut short. This is what is kept.")
    rows = shop.rows(chat)
    assert [role for role, _ in rows] == ["user", "assistant"]
    expect(chat.answers).to_have_text([rows[1][1]])
    assert len(speaker.asked) <= 2


def test_a_line_that_is_not_there_keeps_the_text(shop: Shop, speaker: Speaker, line: Line) -> None:
    """The question waits in the list, and is sent again by hand, once."""
    chat = cut(shop, line)
    chat.say("One.", "All right.")
    line.cut()
    chat.page.clock.install()
    chat.write("Two.")
    for _ in range(6):
        chat.page.wait_for_timeout(30)
        chat.page.clock.run_for(10_000)
    note = chat.host.locator(".note.bad")
    expect(note).to_contain_text("Not sent. Your text is still here.")
    line.mend()
    chat.button("Try again").click()
    expect(chat.answers).to_have_count(2)
    expect(note).to_have_count(0)
    expect(chat.input).to_be_focused()
    chat.settled()
    assert [text for role, text in shop.rows(chat) if role == "user"] == ["One.", "Two."]


def test_offline_is_told_and_what_waits_goes_out_when_the_line_is_back(shop: Shop) -> None:
    browser = shop.context()
    chat = shop.chat(browser)
    chat.say("One.", "All right.")
    browser.set_offline(True)
    expect(chat.host.locator(".banner")).to_contain_text("You are offline.")
    chat.write("Two.")
    expect(chat.host.locator(".note")).to_contain_text("Goes out when the connection is back.")
    browser.set_offline(False)
    expect(chat.answers).to_have_text(["All right.", "All right."])
    expect(chat.host.locator(".banner")).to_be_hidden()
    chat.settled()
    assert len(shop.rows(chat)) == 4


def test_what_was_not_sent_is_still_there_after_a_reload(shop: Shop) -> None:
    browser = shop.context()
    chat = shop.chat(browser)
    chat.say("One.", "All right.")
    browser.set_offline(True)
    chat.write("Two.")
    expect(chat.host.locator(".note")).to_have_count(1)
    chat.page.route("**/v1/turns", lambda route: route.abort())
    browser.set_offline(False)
    chat.reload()
    expect(chat.questions).to_have_text(["One.", "Two."])
    expect(chat.host.locator(".note.bad")).to_contain_text("Your text is still here.")
    chat.page.unroute("**/v1/turns")
    chat.button("Try again").click()
    expect(chat.answers).to_have_count(2)
    chat.settled()
    assert [text for role, text in shop.rows(chat) if role == "user"] == ["One.", "Two."]


def test_a_failed_answer_says_what_to_do(shop: Shop, speaker: Speaker) -> None:
    """The text can be sent again as it is, or changed first. Nothing of the failure is kept."""
    from nitka.errors import ModelError

    chat = shop.chat()
    speaker.answer = lambda messages: ModelError("down")
    chat.write("One.")
    expect(chat.host.locator(".note.bad")).to_contain_text("No answer came. Your text is still here.")
    assert shop.rows(chat) == []
    speaker.answer = lambda messages: "Up again."
    chat.button("Try again").click()
    expect(chat.answers).to_have_text(["Up again."])
    speaker.answer = lambda messages: ModelError("down")
    chat.write("Two.")
    expect(chat.host.locator(".note.bad")).to_have_count(1)
    chat.button("Edit").click()
    expect(chat.input).to_have_value("Two.")
    expect(chat.questions).to_have_text(["One."])
    speaker.answer = lambda messages: "Yes."
    chat.say("Two, please.", "Yes.")
    assert len(shop.rows(chat)) == 4


def test_too_many_messages_are_told_when_to_come_again(shop: Shop) -> None:
    shop.key = shop.house.key("widget", origins=(shop.site.url,), rate=3)
    chat = shop.chat()
    chat.say("One.", "All right.")
    for text in ("Two.", "Three."):
        chat.write(text)
        chat.page.wait_for_timeout(50)
        chat.settled()
    expect(chat.host.locator(".note.bad").last).to_contain_text(re.compile(r"Try again in \d+ s"))


def test_more_than_a_page_of_history_is_read_when_asked_for(shop: Shop, speaker: Speaker) -> None:
    chat = shop.chat()
    chat.say("The first of all.", "All right.")
    record = chat.record
    who = User(record["visitor"]["id"])
    for number in range(30):
        shop.house.run(shop.house.nitka.record(who, record["session"], text=f"Number {number}.", answer="Noted."))
    chat.reload()
    expect(chat.questions).to_have_count(25)
    expect(chat.questions.last).to_have_text("Number 29.")
    expect(chat.questions.last).to_be_in_viewport()
    chat.button("Earlier messages").click()
    expect(chat.questions).to_have_count(31)
    expect(chat.questions.first).to_have_text("The first of all.")
    expect(chat.button("Earlier messages")).to_have_count(0)


def test_a_visitor_sees_what_is_known_and_deletes_it(shop: Shop, speaker: Speaker) -> None:
    chat = shop.chat()
    chat.say("My dog is called Rex.", "All right.")
    chat.say("I live in Riga.", "All right.")
    who = learned(shop, chat)
    chat.know()
    expect(chat.facts).not_to_have_count(0)
    expect(chat.facts.filter(has_text="Riga")).to_have_count(1)
    before = chat.facts.count()
    chat.host.get_by_role("button", name=re.compile("^Delete: .*Riga")).click()
    expect(chat.facts).to_have_count(before - 1)
    expect(chat.host.locator(".told")).to_have_text("Deleted. Exchanges that still say it: 1.")
    assert "Riga" not in str(shop.house.run(shop.house.nitka.facts(who)))
    chat.host.get_by_label("Also delete my messages that say it").check()
    rex = chat.host.get_by_role("button", name=re.compile("^Delete: .*Rex"))
    while rex.count():
        rex.first.click()
        expect(chat.host.locator(".told")).to_contain_text("Deleted.")
        chat.page.wait_for_timeout(50)
    chat.button("Back to the conversation").click()
    expect(chat.input).to_be_focused()
    expect(chat.questions).to_have_text(["I live in Riga."])


def learned(shop: Shop, chat: Chat) -> User:
    """Waits until what the visitor said has been read; gives the visitor."""
    who = User(chat.record["visitor"]["id"])
    shop.house.users.add(who)
    shop.house.run(shop.house.nitka.settle())
    end = time.monotonic() + 20
    while not shop.house.run(shop.house.nitka.facts(who)) and time.monotonic() < end:
        time.sleep(0.05)
    return who


def test_forget_me_asks_once_and_tells_the_true_count(shop: Shop) -> None:
    browser = shop.context()
    chat, other = shop.chat(browser), shop.chat(browser)
    chat.say("My dog is called Rex.", "All right.")
    expect(other.questions).to_have_count(1)
    who = learned(shop, chat)
    facts = len(shop.house.run(shop.house.nitka.facts(who)))
    chat.know()
    chat.button("Forget everything about me").click()
    expect(chat.button("Cancel")).to_be_focused()
    chat.button("Cancel").click()
    expect(chat.button("Forget everything about me")).to_be_focused()
    assert len(shop.rows(chat)) == 2
    chat.button("Forget everything about me").click()
    chat.button("Delete everything").click()
    told = chat.host.locator(".told")
    expect(told).to_have_text(f"Everything is deleted. Messages: 2. Facts: {facts}. Conversations: 1.")
    expect(told).to_be_focused()
    expect(chat.host.get_by_text("Nothing is remembered about you.").first).to_be_visible()
    expect(other.questions).to_have_count(0)
    assert shop.house.run(shop.house.nitka.facts(who)) == ()
    assert shop.house.run(shop.house.nitka.sessions(who)) == ()
    assert chat.visitor is None
    chat.button("Back to the conversation").click()
    chat.say("Who am I?", "All right.")
    assert chat.record["visitor"]["id"] != who.id


def test_what_is_private_is_neither_kept_nor_answered_from_memory(shop: Shop, speaker: Speaker) -> None:
    chat = shop.chat()
    speaker.answer = lambda messages: "I see Rex." if "Rex" in str(messages) else "I see nothing."
    chat.say("My dog is called Rex.", "I see Rex.")
    chat.host.get_by_role("switch", name="Private").check()
    expect(chat.host.locator(".banner")).to_contain_text("what you write now is not kept")
    chat.say("A secret.", "I see nothing.")
    expect(chat.host.locator(".note")).to_have_text("Private, not kept")
    chat.host.get_by_role("switch", name="Private").uncheck()
    chat.say("And now?", "I see Rex.")
    assert [text for role, text in shop.rows(chat) if role == "user"] == ["My dog is called Rex.", "And now?"]
    assert "secret" not in str(chat.page.evaluate("() => JSON.stringify([localStorage, sessionStorage])"))
    chat.reload()
    expect(chat.questions).to_have_text(["My dog is called Rex.", "And now?"])


def test_another_visitor_with_the_same_session_id_sees_nothing(
    shop: Shop, context: Callable[..., BrowserContext]
) -> None:
    """Neither with a token of his own, nor with none."""
    first = shop.chat()
    first.say("My dog is called Rex.", "All right.")
    record = first.record
    second = shop.chat(context())
    second.say("Hello.", "All right.")
    stolen = {**second.record, "session": record["session"]}
    name = second.page.evaluate("() => Object.keys(localStorage).find((name) => name.startsWith('nitka:'))")
    second.page.evaluate("([name, value]) => localStorage.setItem(name, value)", [name, as_json(stolen)])
    second.reload()
    expect(second.host.locator(".about")).to_be_visible()
    second.say("And now?", "All right.")
    expect(second.questions).to_have_text(["And now?"])
    second.page.evaluate("([n, v]) => localStorage.setItem(n, v)", [name, as_json({**stolen, "visitor": None})])
    second.reload()
    expect(second.questions).to_have_count(0)
    assert len(shop.rows(first)) == 2


def as_json(value: object) -> str:
    import json

    return json.dumps(value)
