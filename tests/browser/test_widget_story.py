"""The visitor's whole story: write, reload, a second tab, a new conversation, stop, a cut line, forget me."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.stage import Line, Speaker
from tests.browser.widget import Shop


def test_a_visitor_writes_and_finds_it_again_after_a_reload(shop: Shop, speaker: Speaker) -> None:
    chat = shop.chat()
    speaker.answer = lambda messages: "Rex is a **good** name."
    chat.say("My dog is called Rex.", "Rex is a good name.")
    expect(chat.answers.locator("strong")).to_have_text("good")
    chat.reload()
    expect(chat.questions).to_have_text(["My dog is called Rex."])
    expect(chat.answers).to_have_text(["Rex is a good name."])
    assert shop.rows(chat) == [("user", "My dog is called Rex."), ("assistant", "Rex is a **good** name.")]
    assert chat.problems == []
