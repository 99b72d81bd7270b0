"""What is hostile stays text; what is strict is kept; nothing is asked of anybody but the widget's own server."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from nitka.types import User
from tests.browser.stage import Speaker
from tests.browser.widget import Chat, Shop

pytestmark = pytest.mark.slow

HOSTILE = [
    "<img src=x onerror=window.hacked=1>",
    "<script>window.hacked=1</script>",
    "<svg/onload=window.hacked=1>",
    "[click](javascript:window.hacked=1)",
    "[click](JaVaScRiPt:window.hacked=1)",
    "[click](&#106;avascript:window.hacked=1)",
    "[click](java\tscript:window.hacked=1)",
    "[click](data:text/html,<script>1</script>)",
    "[click](vbscript:x) [click](file:///etc/passwd) [click](blob:x) [click](//evil.example)",
    '[click](https://a.example" onclick="window.hacked=1)',
    "[![x](https://evil.example/pixel.png)](javascript:window.hacked=1)",
    "![tracking](https://evil.example/pixel.png)",
    "<https://a.example/\"onmouseover='window.hacked=1'>",
    "<a href='javascript:window.hacked=1'>x</a>",
    "`<img src=x onerror=window.hacked=1>`",
    "```html\n<img src=x onerror=window.hacked=1>\n```",
    "# <img src=x onerror=window.hacked=1>",
    "| <b onclick=window.hacked=1>x</b> | y |\n|---|---|\n| <img src=x onerror=window.hacked=1> | z |",
    "> - <iframe srcdoc='<script>parent.hacked=1</script>'></iframe>",
    "</div></li></ol><style>*{display:none}</style><form action=https://evil.example><button>",
    "**<u>x</u>** _<i>y</i>_ ~~<s>z</s>~~",
    "<!-- --><![CDATA[ x ]]><?php echo 1 ?>&lt;script&gt;",
    "\u202ekcilc\u202c \u2066x\u2069 \u200b{constructor} ${window.hacked=1} {{7*7}}",
]
ELEMENTS = set("p br strong em del code pre a ul ol li h3 h4 h5 h6 blockquote hr table tbody tr th td div".split())
"""All that Markdown becomes."""


def markup(chat: Chat) -> dict[str, Any]:
    """The elements and attributes in all messages."""
    found: dict[str, Any] = chat.host.evaluate(
        """(host) => {
            const nodes = [...host.shadowRoot.querySelectorAll(".text *, .facts li span *")];
            return {
                tags: [...new Set(nodes.map((node) => node.localName))],
                names: [...new Set(nodes.flatMap((node) => [...node.attributes].map(({ name }) => name)))],
                links: nodes.filter((node) => node.href).map((node) => [node.href, node.rel, node.target]),
            };
        }"""
    )
    return found


def test_hostile_text_never_becomes_markup(shop: Shop, speaker: Speaker) -> None:
    """As a question, an answer, a fact, what a fact is about; in a page without any policy that would stop it."""
    chat = shop.chat(csp="")
    asked: list[str] = []
    chat.page.on("request", lambda request: asked.append(request.url))
    speaker.answer = lambda messages: "\n\n".join(HOSTILE)
    chat.write("\n".join(HOSTILE))
    expect(chat.answers).to_contain_text("{{7*7}}")
    chat.settled()
    assert chat.questions.evaluate("(text) => text.children.length") == 0
    assert chat.questions.text_content() == "\n".join(HOSTILE).strip()
    found = markup(chat)
    assert set(found["tags"]) <= ELEMENTS
    assert set(found["names"]) <= {"dir", "href", "title", "target", "rel", "tabindex", "class", "start"}
    assert found["links"]
    for href, rel, target in found["links"]:
        assert urlsplit(href).scheme in ("http", "https", "mailto"), href
        assert (rel, target) == ("noopener noreferrer nofollow", "_blank")
    who = User(chat.record["visitor"]["id"])
    shop.house.users.add(who)
    for number, text in enumerate(HOSTILE[:6]):
        about = text[:100] if number % 2 else "user"
        shop.house.run(shop.house.nitka.set_fact(who, f"note.n{number}", text, about=about))
    chat.know()
    expect(chat.facts).to_have_count(6)
    assert set(markup(chat)["tags"]) <= ELEMENTS
    assert chat.facts.evaluate_all("(facts) => facts.map((fact) => fact.children.length)") == [0] * 6
    chat.page.wait_for_timeout(100)
    assert chat.page.evaluate("window.hacked") is None
    assert {urlsplit(url).netloc for url in asked} == {urlsplit(shop.server).netloc}
    assert chat.problems == []


def test_a_hostile_page_title_or_attribute_is_text_too(shop: Shop) -> None:
    chat = shop.chat(text_title="&lt;img src=x onerror=window.hacked=1&gt;", csp="")
    expect(chat.host.locator("h2")).to_have_text("<img src=x onerror=window.hacked=1>")
    assert chat.page.evaluate("window.hacked") is None


def test_a_strict_policy_has_nothing_to_report(shop: Shop, speaker: Speaker) -> None:
    """No inline script or style, no eval, no trusted types, one origin; and the widget is styled all the same."""
    chat = shop.chat()
    reports: list[str] = []
    chat.page.on("console", lambda message: reports.append(message.text) if message.type == "error" else None)
    chat.page.evaluate("addEventListener('securitypolicyviolation', (e) => console.error(e.violatedDirective))")
    speaker.answer = lambda messages: "**Yes**\n\n- a\n- b\n\n```\ncode\n```"
    chat.write("Hello.")
    expect(chat.answers.locator("li")).to_have_count(2)
    chat.settled()
    chat.know()
    chat.button("Forget everything about me").click()
    chat.button("Delete everything").click()
    expect(chat.host.locator(".told")).to_be_visible()
    assert reports == []
    assert chat.panel.evaluate("(panel) => getComputedStyle(panel).flexDirection") == "column"
    assert chat.host.evaluate("(host) => host.shadowRoot.querySelectorAll('[style], style, script, link').length") == 0


def test_nothing_is_asked_of_anybody_but_the_widgets_server(shop: Shop, speaker: Speaker) -> None:
    """A visit's requests, in order. Before somebody writes there is one: the script."""
    asked: list[tuple[str, str, str]] = []
    tab = shop.context().new_page()
    tab.on("request", lambda it: asked.append((it.method, it.url, it.resource_type)))
    tab.goto(shop.put())
    chat = Chat(tab, []).open()
    tab.wait_for_timeout(200)
    site = shop.site.url
    assert [(method, url) for method, url, kind in asked if not url.startswith(site)] == [
        ("GET", f"{shop.server}/widget.js")
    ]
    chat.say("Hello.", "All right.")
    speaker.answer = lambda messages: "![a picture](https://evil.example/p.png) https://evil.example"
    chat.write("Show me.")
    expect(chat.answers.locator("a")).to_have_count(2)
    chat.settled()
    chat.know()
    tab.wait_for_timeout(100)
    here = [(method, url.removeprefix(shop.server)) for method, url, _ in asked if not url.startswith(site)]
    assert here == [
        ("GET", "/widget.js"),
        ("POST", "/v1/visitors"),
        ("POST", "/v1/turns"),
        ("POST", "/v1/turns"),
        ("GET", "/v1/me/facts?limit=200"),
    ]


def test_ids_and_tokens_stand_in_no_address(shop: Shop) -> None:
    asked: list[str] = []
    chat = shop.chat(user_token=shop.token("anna"))
    chat.page.on("request", lambda it: asked.append(it.url))
    chat.say("Hello.", "All right.")
    chat.reload()
    expect(chat.questions).to_have_count(1)
    record = chat.record
    assert not [url for url in asked for secret in (record["session"], shop.key, "anna", "eyJ") if secret in url]


MARKDOWN: list[tuple[str, str]] = [
    ("plain\ntwo lines", "<p>plain<br>two lines</p>"),
    ("**b** __b__ *i* _i_ ~~d~~ `c`", "<p>b:strong b:strong i:em i:em d:del c:code</p>"),
    ("a*b*c snake_case_name 2 * 3 * 4", "<p>ab:emc snake_case_name 2 * 3 * 4</p>"),
    ("**bold *and italic* inside**", "<p><strong>bold and italic:em inside</strong></p>"),
    ("**open, `open, [open](", "<p>**open, `open, [open](</p>"),
    (r"\*not\* \[a\](b)", "<p>*not* [a](b)</p>"),
    ("``a ` b`` `*c*`", "<p>a ` b:code *c*:code</p>"),
    ("# One\n## Two ##\ntext", "<h3>One</h3><h4>Two</h4><p>text</p>"),
    ("- a\n- b\n  - c\n\n- d\n\nend", "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul><p>end</p>"),
    ("1. a\n2. b\n\n- c\n- d", '<ol start="1"><li>a</li><li>b</li></ol><ul><li>c</li><li>d</li></ul>'),
    ("- a\n1. b\n   - c", '<ul><li>a</li></ul><ol start="1"><li>b<ul><li>c</li></ul></li></ol>'),
    ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
    ("> a\n> b\n\nc", "<blockquote><p>a<br>b</p></blockquote><p>c</p>"),
    ("---\n***", "<hr><hr>"),
    ("```py\n*a*\n\n<b>\n```\nb", "<pre><code>*a*\n\n&lt;b&gt;</code></pre><p>b</p>"),
    ("```\nnot closed", "<pre><code>not closed</code></pre>"),
    (
        "| a | b |\n|:--|--:|\n| 1 | *2* |",
        "<div><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2:em</td></tr></table></div>",
    ),
    ("a | b is no table", "<p>a | b is no table</p>"),
    ("see https://a.example/x_(y), or (https://b.example).", "<p>see 0:a, or (1:a).</p>"),
    ("[**a** b](https://a.example 'x')", "<p>[a:strong b](0:a 'x')</p>"),
    ("[mail](mailto:x@a.org) <https://c.example> ![pic](https://d.example/q.png)", "<p>0:a 1:a pic:a</p>"),
    ("x < y && a <b> c", "<p>x &lt; y &amp;&amp; a &lt;b&gt; c</p>"),
    ("Это **важно**: _да_.", "<p>Это важно:strong: да:em.</p>"),
]

SHORT = """(text) => {
    // Inline elements are written as text:tag, and links by their number, so that cases are short.
    const copy = text.cloneNode(true);
    copy.querySelectorAll("a").forEach((a, n) => { if (a.href.includes(a.textContent)) a.textContent = n; });
    for (const node of [...copy.querySelectorAll("strong, em, del, a, :not(pre) > code")]) {
        const isWhole = node.localName === "strong" && node.querySelector("*");
        if (!isWhole) node.replaceWith(`${node.textContent}:${node.localName}`);
    }
    for (const node of copy.querySelectorAll("*")) {
        for (const { name } of [...node.attributes]) if (name !== "start") node.removeAttribute(name);
    }
    copy.normalize();
    return copy.innerHTML;
}"""


@pytest.fixture
def read(shop: Shop, speaker: Speaker) -> Any:
    chat = shop.chat()

    def answer(markdown: str) -> str:
        speaker.answer, speaker.chunk = lambda messages: markdown, 3
        before = chat.answers.count()
        chat.write("?")
        expect(chat.answers).to_have_count(before + 1)
        chat.settled()
        found: str = chat.answers.last.evaluate(SHORT)
        return found

    return answer


@pytest.mark.parametrize("half", [0, 1])  # one visitor may speak twenty times a minute
def test_markdown_becomes_what_it_means(read: Any, half: int) -> None:
    """A table: source, and what it becomes, streamed in pieces of three characters."""
    wrong = [(source, want, got) for source, want in MARKDOWN[half::2] if (got := read(source)) != want]
    assert wrong == []


def test_long_and_nested_markdown_takes_no_time(shop: Shop, speaker: Speaker) -> None:
    """Sources made to be slow, each as long as a paragraph that is looked at, or longer where blocks are: all of them
    together keep the page for a moment only.
    """
    chat = shop.chat()
    giants = ["[" * 7_000, "**a " * 1_900, "`" * 3_000 + "a", "> " * 3_000, "- " * 3_000, "[a](" * 1_900, "<" * 7_000]
    giants += ["_a" * 3_500, "|" * 7_000 + "\n|-|", "https://a.example/" + "(" * 7_000, "\\" * 7_000, "  - a\n" * 500]
    giants += ["a" * 100_000, "x **" + "b" * 20_000 + "**"]
    speaker.chunk, speaker.answer = 1_000_000, lambda messages: "\n\n".join(giants)
    chat.page.evaluate(
        """() => {
            window.longest = 0;
            const longer = ({ duration }) => (window.longest = Math.max(window.longest, duration));
            new PerformanceObserver((list) => list.getEntries().forEach(longer)).observe({ type: "longtask" });
        }"""
    )
    chat.write("?")
    expect(chat.answers).to_contain_text("b" * 20_000)
    chat.settled()
    assert chat.page.evaluate("window.longest") < 3_000


def test_an_element_may_come_and_go(shop: Shop, page: Page) -> None:
    """Put into the page by a script, in its place among the rest, moved, and taken out again."""
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(shop.put())
    page.evaluate(
        """(key) => {
            const second = document.createElement("nitka-chat");
            second.setAttribute("key", key);
            second.setAttribute("inline", "");
            document.querySelector("main").append(second);
        }""",
        shop.key,
    )
    expect(page.locator("main nitka-chat textarea")).to_be_visible()
    page.evaluate("document.querySelector('main').prepend(document.querySelector('main nitka-chat'))")
    expect(page.locator("main nitka-chat textarea")).to_be_visible()
    page.evaluate("document.querySelector('main nitka-chat').remove()")
    expect(page.locator("nitka-chat textarea")).to_have_count(1)
    assert problems == []
