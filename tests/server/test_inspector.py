"""The inspector over HTTP: who gets in, what an address and the log may hold, and what the pages show."""

from __future__ import annotations

import html
import logging
import re
import string
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from nitka.cli.serve import _described
from nitka.conversation import SUMMARY, seal_summary
from nitka.server.inspector import pages, reading, render
from nitka.server.inspector.parsing import MOST, carried, shown
from nitka.server.keys import SCOPES, hash_of
from nitka.store.port import Change
from nitka.types import User
from nitka.watch import parse
from nitka.watch.data import default
from tests.server.inspecting import BEGIN, Inspecting
from tests.server.stage import Stage

SECRET = "the-cake-is-a-secret-91c"
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}"
PRIVATE = {"user": "anna", "session": "s", "text": f"private {SECRET}", "private": True}
FOREIGN = {"Sec-Fetch-Site": "cross-site"}


@pytest.fixture
def visitor(stage: Stage) -> Iterator[Callable[..., Inspecting]]:
    """Makes people who look; each has a browser of his own."""
    made: list[Inspecting] = []

    def make(*scopes: str, tenant: str = "", **headers: str) -> Inspecting:
        made.append(Inspecting(stage.url, {name.replace("_", "-"): value for name, value in headers.items()}))
        if scopes:
            assert made[-1].sign_in(stage.key(*scopes, tenant=tenant)).status_code == 200
        return made[-1]

    yield make
    for one in made:
        one.close()


def say(stage: Stage, *turns: str, user: str = "anna", session: str = "s", tenant: str = "") -> None:
    """Turns of a person, folded one by one."""
    who = User(user, tenant)
    stage.users.add(who)
    for text in turns:
        at = stage.clock()
        stage.run(stage.nitka.record(who, session, text=text, answer=f"Answer to {len(text)}.", at=at))
        stage.run(stage.nitka.settle(who))
        stage.clock.now += timedelta(minutes=1)


def routes(*methods: str) -> list[tuple[str, str]]:
    """Method and path of the inspector's routes, filled in."""
    found = [(method, route.path) for route in pages.router.routes for method in route.methods if method in methods]  # type: ignore[attr-defined]
    return [(method, re.sub(r"\{[^}]+\}", "x", path)) for method, path in found if "/assets/" not in path]


# Getting in


def test_a_key_with_the_scope_admin_opens_the_pages_and_no_other(stage: Stage, visitor: Any) -> None:
    who = visitor()
    assert who.at.status_code == 200 and 'type="password"' in who.at.text
    expected = {"admin": 200, "nk_" + "A" * 43: 401, "": 401, "x" * 9_000: 401}
    for scope in SCOPES[:-1]:
        status = who.sign_in(stage.key(scope)).status_code
        assert status == (200 if scope == "admin" else 403), scope
        who.post("/sign-out")
    widget = stage.key("widget", origins=("https://shop.example",))
    assert who.sign_in(widget).status_code == 403
    assert "scope admin" in who.text
    for key, status in list(expected.items())[1:]:
        assert who.sign_in(key).status_code == status
        assert who.path == "/inspector/sign-in"


@pytest.mark.parametrize("path", [path for _, path in routes("GET") if path != BEGIN])
def test_no_page_opens_without_a_sign_in(stage: Stage, visitor: Any, path: str) -> None:
    who = visitor()
    answer = who.get(path)
    assert answer.status_code == (404 if path == f"{BEGIN}/x" else 401)
    assert 'type="password"' in answer.text


def test_no_form_is_taken_without_a_sign_in_but_those_that_need_none(stage: Stage, visitor: Any) -> None:
    needed = {path: visitor().post(path.removeprefix(BEGIN)).status_code for _, path in routes("POST")}
    free = {f"{BEGIN}/sign-in": 401, f"{BEGIN}/sign-out": 200, f"{BEGIN}/language": 200}
    assert needed == {path: free.get(path, 401) for _, path in routes("POST")}


def test_a_key_that_is_revoked_or_over_opens_nothing_from_that_moment(stage: Stage, visitor: Any) -> None:
    key, short = stage.key("admin"), stage.key("admin", until=int(stage.clock().timestamp() * 1000) + 5_000)
    first, second = visitor(), visitor()
    assert (first.sign_in(key).status_code, second.sign_in(short).status_code) == (200, 200)
    stage.run(stage.store.remove_api_key(hash_of(key)))
    assert first.get(f"{BEGIN}/parse").status_code == 401
    before = stage.clock.now
    stage.clock.now += timedelta(seconds=6)
    assert second.get(f"{BEGIN}/parse").status_code == 401
    stage.clock.now = before


def test_a_sign_in_ends_by_itself_and_by_signing_out(stage: Stage, visitor: Any) -> None:
    who = visitor("admin")
    kept = dict(who.client.cookies)
    before = stage.clock.now
    stage.clock.now += timedelta(hours=9)
    assert who.get(f"{BEGIN}/parse").status_code == 401
    stage.clock.now = before
    again = visitor("admin")
    assert again.get(f"{BEGIN}/parse").status_code == 200
    again.post("/sign-out")
    assert again.get(f"{BEGIN}/parse").status_code == 401
    assert kept


def test_a_cookie_that_was_signed_out_is_dead_on_the_server(stage: Stage, visitor: Any) -> None:
    """It opens nothing, no form of it is taken, no list of keys shows it, and it is forgotten once it would be over."""

    def remembered() -> int:
        listed = stage.run(_described(stage.store, stage.service.vault.keychain))
        assert "signed out" not in "".join(listed)
        return len(stage.run(stage.store.api_keys())) - len(listed)

    who, other = visitor("admin"), visitor()
    before, saved, token = stage.clock.now, dict(who.client.cookies), who.token
    kept = remembered()
    who.post("/sign-out")
    assert remembered() == kept + 1
    other.client.cookies.clear()
    other.client.cookies.update(saved)
    assert other.get(f"{BEGIN}/parse").status_code == 401
    other.client.cookies.clear()
    other.client.cookies.update(saved)
    form = {"token": token, "language": "en", "back": f"{BEGIN}/parse"}
    assert other.client.post(f"{BEGIN}/language", data=form).status_code == 403
    try:
        stage.clock.now += timedelta(hours=9)
        visitor("admin").post("/sign-out")
        assert remembered() == 1
    finally:
        stage.clock.now = before


def test_the_cookie_is_sealed_and_goes_nowhere_else(stage: Stage, visitor: Any) -> None:
    key = stage.key("admin")
    who = visitor()
    token, before = who.token, set(who.client.cookies.values())
    answer = who.client.post(f"{BEGIN}/sign-in", data={"token": token, "key": key}, follow_redirects=False)
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 303
    assert {"HttpOnly", "Path=/inspector", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
    assert "Secure" not in cookie  # on this machine itself; from elsewhere only over TLS
    for told in (key, key[3:], hash_of(key).hex(), key.encode().hex()):
        assert told not in cookie
    assert not before & set(who.client.cookies.values())
    far = who.client.get(BEGIN, headers={"Host": "memory.example", "Cookie": ""})
    assert "Secure" in far.headers["set-cookie"]


def test_an_altered_cookie_is_none(stage: Stage, visitor: Any) -> None:
    who = visitor("admin")
    (name, value), *_ = who.client.cookies.items()
    for tried in (value[:-2], value[:40] + ("A" if value[40] != "A" else "B") + value[41:], "", "x", "é", value * 40):
        answer = who.client.get(f"{BEGIN}/parse", headers={"Cookie": f"{name}={tried}".encode()})
        assert answer.status_code == 401


@pytest.mark.parametrize("path", [path for _, path in routes("POST")])
def test_no_form_of_another_site_is_taken(stage: Stage, visitor: Any, path: str) -> None:
    """Without the token, with another visit's, or from another site by what the browser says: nothing is done."""
    who, other = visitor("admin"), visitor("admin")
    filled = {"user": "anna", "door": "x", "text": "hello", "do": "say", "key": stage.key("admin")}
    tries: list[tuple[dict[str, str], dict[str, str]]] = [
        ({}, {}),
        ({"token": ""}, {}),
        ({"token": other.token}, {}),
        ({"token": who.token}, FOREIGN),
        ({"token": who.token}, {"Sec-Fetch-Site": "same-site"}),
        ({"token": who.token}, {"Origin": "https://evil.example"}),
    ]
    for fields, headers in tries:
        answer = who.client.post(path, data={**filled, **fields}, headers=headers)
        assert answer.status_code == 403, (fields, headers)
    assert who.get(f"{BEGIN}/parse").status_code == 200
    as_json = who.client.post(path, json={"token": who.token})
    assert as_json.status_code == 415


def test_a_form_that_cannot_be_read_is_refused(stage: Stage, visitor: Any) -> None:
    who = visitor("admin")
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    for body in (b"user=%FF", "user=é".encode(), b"&".join([b"a=b"] * 500)):
        assert who.client.post(f"{BEGIN}/person", content=body, headers=kind).status_code == 400


# Addresses and logs


def test_no_id_of_a_person_stands_in_an_address_or_in_the_log(
    stage: Stage, visitor: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    say(stage, f"My name is {SECRET}.", user=f"user-{SECRET}", session=f"session-{SECRET}")
    who = visitor("admin")
    seen = []
    who.person(f"user-{SECRET}")
    seen.append(who.at)
    who.open()
    seen += [who.at, *(who.view(name) for name in ("summary", "watch", "cost"))]
    seen.append(who.view("turn", "?seq=0"))
    assert all(answer.status_code == 200 and SECRET in answer.text for answer in seen)
    assert not any(SECRET in str(answer.url) for answer in seen)
    assert not any(SECRET in link for answer in seen for link in re.findall(r'(?:href|action)="([^"]*)"', answer.text))
    stage.idle()
    assert SECRET not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("nitka"))


@pytest.mark.parametrize("pasted", [" olga", "olga ", "\u202eolga\u202c", "ol\u00adga", "\tolga\u200b"])
def test_a_name_with_what_cannot_be_seen_is_not_simply_said_to_be_unknown(
    stage: Stage, visitor: Any, pasted: str
) -> None:
    """The page says so and has the name without it; whose name really is so is found by it."""
    say(stage, "Hello.", user="olga")
    who = visitor("admin")
    who.person(pasted)
    assert who.at.status_code == 404 and "cannot be seen" in who.text and 'value="olga"' in who.at.text
    assert who.person("olga").status_code == 200
    say(stage, "Hello.", user=pasted)
    assert who.get(BEGIN).status_code == 200 and who.person(pasted).status_code == 200
    who.get(BEGIN)
    who.person("nobody")
    assert who.at.status_code == 404 and "cannot be seen" not in who.text


def test_every_page_that_shows_somebody_leaves_one_line_without_text_or_id(
    stage: Stage, visitor: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Each time it is shown: by a form, by its address, again, and from another browser with the same cookie."""
    caplog.set_level(logging.INFO, "nitka.server.audit")
    say(stage, f"My name is {SECRET}.", "Two.", "Three.", user=SECRET)
    owner = stage.run(stage.service.vault.owner_id(User(SECRET))).hex()
    key = stage.key("admin")
    who, elsewhere = visitor(), visitor()
    who.sign_in(key)

    def left(act: Callable[[], Any]) -> list[str]:
        caplog.clear()
        act()
        lines = [record.getMessage() for record in caplog.records if record.name == "nitka.server.audit"]
        rest = re.compile(rf" key={hash_of(key)[:6].hex()} owner={owner} at=\S+")
        for line in lines:
            assert SECRET not in line and rest.fullmatch(line, line.index(" key="))
        return [line.split()[2] for line in lines]

    assert left(lambda: who.person("nobody")) == []
    assert left(lambda: who.person(SECRET)) == [f"{BEGIN}/person/{{ticket}}"]
    person = who.path
    assert left(lambda: who.open()) == [f"{BEGIN}/session/{{ticket}}"]
    session = who.path
    for name in ("session", "summary", "watch", "cost", "turn"):
        assert left(partial(who.view, name, "?seq=2")) == [f"{BEGIN}/{name}/{{ticket}}"], name
    assert left(lambda: who.view("turn", "?seq=200")) == []
    assert left(lambda: who.get(person.replace("/person/", "/facts/"))) == [f"{BEGIN}/facts/{{ticket}}"]
    elsewhere.client.cookies = who.client.cookies
    for path in (person, session, session):
        assert left(partial(elsewhere.get, path)) == [re.sub(r"[^/]+$", "{ticket}", path)]
    for path in (BEGIN, f"{BEGIN}/parse"):
        assert left(partial(who.get, path)) == []


def test_an_address_opens_within_its_sign_in_alone(stage: Stage, visitor: Any) -> None:
    """Not for another key, not for the same key signed in anew, not in another place, not altered."""
    say(stage, "One.")
    key = stage.key("admin")
    who, same, other = visitor(), visitor(), visitor("admin")
    who.sign_in(key)
    same.sign_in(key)
    who.person("anna")
    person = who.path
    door = who.doors()[0]
    who.open()
    session = who.path
    for stranger in (same, other):
        for path in (person, session, person.replace("/person/", "/facts/")):
            assert stranger.get(path).status_code == 404
        stranger.get(BEGIN)
        assert stranger.post("/open", door=door).status_code == 404
    ticket = session.rsplit("/", 1)[1]
    for path in (
        f"/person/{ticket}",
        f"/session/{person.rsplit('/', 1)[1]}",
        f"/session/{door}",
        f"/turn/{door}?seq=0",
    ):
        assert who.get(BEGIN + path).status_code == 404
    flipped = ticket[:60] + ("A" if ticket[60] != "A" else "B") + ticket[61:]
    for tried in (flipped, ticket[:-4], "x", "%00", "é", "A" * 8_900):
        assert who.get(f"{BEGIN}/session/{tried}").status_code == 404
    who.get(BEGIN)
    assert who.post("/open", door=ticket).status_code == 404
    who.post("/sign-out")
    assert who.get(session).status_code == 401


def test_another_tenants_admin_sees_nothing(stage: Stage, visitor: Any) -> None:
    say(stage, f"It is {SECRET}.", tenant="shop")
    there = visitor("admin", tenant="shop")
    assert there.person("anna").status_code == 200
    for tenant in ("", "other"):
        elsewhere = visitor("admin", tenant=tenant)
        assert elsewhere.person("anna").status_code == 404
        assert SECRET not in elsewhere.at.text


# What the pages show


def test_every_page_is_sent_with_what_keeps_it_to_itself(stage: Stage, visitor: Any) -> None:
    say(stage, "One.")
    who = visitor("admin")
    answers = [visitor().at, who.at, who.person("anna"), who.get(f"{BEGIN}/nowhere"), who.get(f"{BEGIN}/parse")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?! type=\"module\" src=)", answer.text)
    for address in re.findall(r'(?:href|src)="(/inspector/assets/[^"]+)"', who.at.text):
        asset = who.client.get(address)
        assert asset.status_code == 200 and "immutable" in asset.headers["cache-control"]
    assert who.get(f"{BEGIN}/assets/secret.py").status_code == 404


def test_hostile_text_is_text(stage: Stage, visitor: Any) -> None:
    """In messages, facts, names, sessions, channels and what is typed: it never becomes markup or a template."""
    session, user = f"s {HOSTILE}", f"u {HOSTILE}"
    say(stage, f"My name is Anna. {HOSTILE}", *(f"{HOSTILE} {n}" for n in range(14)), user=user, session=session)
    stage.run(stage.nitka.set_fact(user, "home.city", HOSTILE))
    who = visitor("admin")
    pages_seen = [who.person(user), who.get(who.path.replace("/person/", "/facts/"))]
    who.person(user)
    pages_seen += [who.open(), *(who.view(name) for name in ("summary", "cost", "watch"))]
    pages_seen += [who.view("turn", "?seq=28"), who.view("turn", "?seq=0")]
    pages_seen += [who.get(f"{BEGIN}/parse"), who.post("/parse", text=HOSTILE, speaker="<b>", do="say")]
    pages_seen += [who.person(HOSTILE)]
    for answer in pages_seen:
        assert answer.status_code in (200, 404)
        assert "<script>alert" not in answer.text and "<img" not in answer.text and "<b>" not in answer.text
        assert "49" not in re.findall(r"\{\{7\*7\}\}|&gt;49", answer.text)
    assert all("&lt;script&gt;" in answer.text for answer in pages_seen[:3])


def test_a_turn_is_shown_as_the_model_saw_it(stage: Stage, visitor: Any) -> None:
    """Every block word for word, with how far it can be believed; what is not kept is named; the numbers add up."""
    say(stage, "My name is Anna.", *(f"Message number {n}, word for word." for n in range(1, 20)))
    who = visitor("admin")
    who.person("anna")
    who.open()
    who.view("turn", "?seq=38")
    blocks = re.findall(r'<details class="block".*?</details>', who.at.text, re.DOTALL)
    assert len(blocks) == 1 + 12 + 1 + 1  # summary, window, facts, question
    history = [block for block in blocks if "fill-history" in block]
    for number, block in zip(range(26, 38), history, strict=True):
        said = f"Message number {number // 2}, word for word." if number % 2 == 0 else "Answer to "
        assert f">{said}" in block and 'mark-exact">exact<' in block and f"history · {number}" in block
    assert "as it stands today" in blocks[0] and "name is Anna" in blocks[0] and "summary · 0–25" in blocks[0]
    assert "is called Anna" in blocks[-2] and 'mark-today">' in blocks[-2]
    assert "Message number 19" in blocks[-1] and 'mark-exact">' in blocks[-1]
    for name in ("system prompt", "tools", "profile", "recalled passages", "knowledge", "tool traffic"):
        assert name in who.text
    assert "not kept" in who.text and "put together again" in who.text
    assert "Summary has read rows 0–25" in who.text
    used = sum(int(number) for number in re.findall(r'class="tokens">(\d+) token', who.at.text))
    assert f"{used} tokens, to the scale of the budget of 8,000" in who.text
    assert "folded into the summary: 0–25" in who.text and "word for word: 26–37" in who.text


def tighten(stage: Stage, lines: int) -> None:
    """Lets the oldest lines of the summary give way to their gist, as they do at the cap."""

    async def write() -> None:
        vault = stage.service.vault
        there = await reading.found(vault, User("anna"), "s")
        assert there is not None
        before = await reading.summary_of(vault, there.thread)
        assert before is not None
        gists = tuple(replace(line, form="gist") for line in before.lines[:lines])
        after = replace(before, lines=(*gists, *before.lines[lines:]), version=before.version + 1)
        row = seal_summary(there.thread, after)
        await vault.store.change(there.thread.scope(SUMMARY), lambda locked: Change(folds=(row,)))

    stage.run(write())


def test_a_summary_and_its_lines_lead_to_their_turns(stage: Stage, visitor: Any) -> None:
    names = ("Boris", "Vera", "Misha", "Pavel", "Olga", "Ivan", "Nina", "Oleg", "Rita", "Gleb")
    say(stage, *(f"{name} from the old town told me that the garden is moved to room {len(name)}." for name in names))
    tighten(stage, 2)
    who = visitor("admin")
    who.person("anna")
    who.open()
    who.view("summary")
    summary = stage.run(stage.nitka.summary("anna", "s"))
    assert len(summary.lines) > 2
    assert f"covers rows 0–{summary.cursor - 1}, and takes {summary.tokens} of at most 300 tokens" in who.text
    for line in summary.lines:
        assert line.text in who.text and (line.form == "full" or line.full in who.text)
    rows = {line.first - line.first % 2 for line in summary.lines}
    linked = {int(seq) for seq in re.findall(r"/inspector/turn/[^\"?]+\?seq=(\d+)", who.at.text)}
    assert linked == rows
    assert who.text.count("tightened to its gist") == 2 and "All of it was written offline" in who.text


def test_facts_lead_to_the_words_they_rest_on_and_tell_what_was_before(stage: Stage, visitor: Any) -> None:
    say(stage, "I live in Leeds.", "I have moved to York.", session="home")
    fact = stage.run(stage.nitka.set_fact("anna", "likes", "trains"))
    stage.run(stage.nitka.retract_fact("anna", fact.id))
    who = visitor("admin")
    who.person("anna")
    who.get(who.path.replace("/person/", "/facts/"))
    assert "lives in York" in who.text and "lives in Leeds" in who.text and "taken back" in who.text
    assert "I have moved to York" in who.text and "set by hand" in who.text
    forms = re.findall(r'name="door" value="([^"]+)">\s*<input type="hidden" name="seq" value="(\d+)"', who.at.text)
    assert {int(seq) for _, seq in forms} == {0, 2}
    door, seq = next(form for form in forms if form[1] == "2")
    who.post("/open", door=door, seq=seq)
    assert who.path.startswith(f"{BEGIN}/turn/") and "Rows 2–3" in who.text and "I have moved to York" in who.text


def test_forgotten_turns_are_tombstones_and_private_ones_do_not_exist(stage: Stage, visitor: Any) -> None:
    say(stage, "One.", f"Two {SECRET}.", "Three.")
    private = stage.client("turns").post("/v1/turns", json=PRIVATE)
    assert private.status_code == 200
    stage.run(stage.nitka.forget("anna", session="s", turn=2))
    who = visitor("admin")
    who.person("anna")
    who.open()
    assert SECRET not in who.text and "Rows 2–3" in who.text and "Forgotten" in who.text
    assert "forgotten rows: 2" in who.text
    who.view("turn", "?seq=2")
    assert who.at.status_code == 200 and "nothing of it is left" in who.text
    who.view("turn", "?seq=4")
    assert "forgotten since: 2–3" in who.text and "word for word: 0–1" in who.text
    assert who.view("turn", "?seq=6").status_code == 404


def break_things(stage: Stage) -> None:
    """As a bad disk would: two rows do not open, the summary does not, nor does one session's own row."""

    async def spoil() -> None:
        owner = await stage.service.vault.owner_id(User("anna"))
        sessions = stage.store._owners[owner].sessions  # type: ignore[attr-defined]
        whole, broken = sorted(sessions.values(), key=lambda one: -len(one.rows))
        whole.rows[4] = whole.rows[4]._replace(body=whole.rows[8].body)
        whole.rows[9] = whole.rows[9]._replace(body=whole.rows[8].body)
        whole.folds[SUMMARY] = replace(whole.folds[SUMMARY], body=whole.rows[0].body)
        broken.row = replace(broken.row, body=whole.rows[0].body)

    stage.run(spoil())


def test_what_does_not_open_is_said_and_hides_nothing_else(stage: Stage, visitor: Any) -> None:
    say(stage, *(f"Turn {n}." for n in range(10)))
    say(stage, "Elsewhere.", session="broken")
    break_things(stage)
    who = visitor("admin")
    who.person("anna")
    assert "its row is damaged" in who.text and len(who.doors()) == 1
    who.open()
    assert "rows that do not open: 2" in who.text and who.text.count("the row is damaged or missing") == 2
    assert "Turn 3." in who.text and "Turn 9." in who.text and "Turn 2." not in who.text
    who.view("turn", "?seq=18")
    assert who.at.status_code == 200 and "does not open: 4" in who.text and "does not open: 9" in who.text
    assert who.view("turn", "?seq=4").status_code == 200
    for name in ("summary", "cost"):
        assert who.view(name).status_code == 200 and "summary of this conversation does not open" in who.text


def test_a_conversation_that_was_forgotten_meanwhile_is_gone(stage: Stage, visitor: Any) -> None:
    say(stage, "One.")
    who = visitor("admin")
    who.person("anna")
    door = who.doors()[0]
    who.open()
    stage.run(stage.nitka.forget("anna", session="s"))
    assert who.view("session").status_code == 404
    who.get(BEGIN)
    assert who.post("/open", door=door).status_code == 404
    say(stage, "Anew.")
    who.get(BEGIN)
    assert who.post("/open", door=door).status_code == 200 and "Anew." in who.text


def test_the_demonstration_says_what_to_do_where_its_example_was_forgotten(
    stage: Stage, visitor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(stage, "One.")
    who = visitor("admin")
    who.person("anna")
    who.open()
    stage.run(stage.nitka.forget("anna", session="s"))
    monkeypatch.setattr(stage.app.state, "inspector_frames", render.OURSELVES, raising=False)
    who.view("session")
    assert "start it again" in who.text and "no_session" not in who.text and "That did not work" not in who.text


def test_long_lists_come_in_pages_the_newest_first(stage: Stage, visitor: Any) -> None:
    for n in range(30):
        say(stage, "Hello.", session=f"talk-{n:02}")
    say(stage, *(f"Turn {n}." for n in range(45)), session="long")
    who = visitor("admin")
    who.person("anna")
    names = re.findall(r'<bdi class="id">(talk-\d\d|long)</bdi>', who.at.text)
    assert names == ["long", *(f"talk-{n:02}" for n in range(29, 5, -1))]
    assert "1 of 2" in who.text
    who.open(0)
    assert "3 of 3" in who.text and "Turn 44." in who.text and "Turn 39." not in who.text
    first = who.view("session", "?page=1").text
    assert "Turn 0." in first and "Turn 19." in first and "Turn 20." not in first
    for query in ("?page=0", "?page=x", "?page=-1"):
        assert who.view("session", query).status_code == 404
    assert "3 of 3" in (who.view("session", "?page=99"), who.text)[1]


def test_of_a_very_long_conversation_the_newest_rows_are_shown(
    stage: Stage, visitor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nitka.server.inspector.reading.read_log.__kwdefaults__", {"most": 40})
    say(stage, *(f"Turn {n}." for n in range(40)))
    who = visitor("admin")
    who.person("anna")
    who.open()
    assert "the newest, from row 40 on" in who.text and "Turn 39." in who.text
    assert who.view("turn", "?seq=60").status_code == 200 and "Summary has read rows 0–47" in who.text
    assert who.view("turn", "?seq=44").status_code == 404


def test_the_watch_is_read_again_only_where_it_is_switched_on(stage: Stage, visitor: Any) -> None:
    turns = ("Where are your parents now?", "Nice weather today.", "Can you turn on your camera?")
    say(stage, *turns, tenant="watched")
    say(stage, *turns)
    stage.service.nitka._turns.watching.purposes["watched"] = "safety of minors"
    try:
        off, on = visitor("admin"), visitor("admin", tenant="watched")
        for who in (off, on):
            who.person("anna")
            who.open()
            who.view("watch")
        assert "not switched on" in off.text and "camera" not in off.text
        assert "safety of minors" in on.text and "today's rules (version" in on.text
        alert = re.search(r'<article class="alert.*?</article>', on.at.text, re.DOTALL)
        assert alert is not None and "G01" in alert[0] and "asked where the parents are" in alert[0]
        assert re.findall(r"\?seq=(\d+)", alert[0]) == ["0", "4"]
        assert "guardian_whereabouts" in on.text or "parents" in on.text
    finally:
        stage.service.nitka._turns.watching.purposes.clear()


def test_cost_over_time_has_every_turn_and_its_sums(stage: Stage, visitor: Any) -> None:
    say(stage, *(f"A message of some length, number {n}." for n in range(20)))
    who = visitor("admin")
    who.person("anna")
    who.open()
    who.view("cost")
    rows = re.findall(r'\?seq=(\d+)">\d+</a></th><td class="right">(\d+)</td><td class="right">(\d+)</td>', who.at.text)
    assert [int(seq) for seq, _, _ in rows] == list(range(0, 40, 2))
    sent, folded = [int(number) for _, number, _ in rows], [int(number) for _, _, number in rows]
    assert folded[:7] == [0] * 7 and all(folded[7:])
    who.view("turn", "?seq=38")
    assert f"{sent[-1]} tokens, to the scale" in who.text


def test_a_name_in_a_channel_leads_to_its_person(stage: Stage, visitor: Any) -> None:
    say(stage, "Hello.")
    stage.run(stage.nitka.link("telegram", "8817", "anna"))
    who = visitor("admin")
    assert who.person("8817").status_code == 404
    assert who.person("8817", channel="telegram").status_code == 200
    assert "telegram" in who.text and who.open().status_code == 200
    for bad in ("", "x" * 600, "a\x00b"):
        assert who.person(bad).status_code == 400
        who.get(BEGIN)


@pytest.mark.parametrize("id", ["\x01" * 512, "я" * 256, "'\"&<>" * 100, "../../../etc", "a/b?c#d%00"])
def test_whatever_is_an_id_leads_to_its_person(stage: Stage, visitor: Any, id: str) -> None:
    """The longest ones too, also those that take most room when they are written down."""
    say(stage, "Here it is.", user=id, session=id)
    who = visitor("admin")
    assert who.person(id).status_code == 200
    assert who.open().status_code == 200 and "Here it is." in who.text
    assert who.view("turn", "?seq=0").status_code == 200


# Trying parse


def test_the_memory_travels_from_message_to_message_on_the_page(stage: Stage, visitor: Any) -> None:
    """What the page shows is what `parse` gives, each message read with the memory of those before it."""
    who = visitor("admin")
    who.get(f"{BEGIN}/parse")
    memory: dict[str, Any] = {}
    for speaker, text in (
        ("A", "Where are your parents now?"),
        ("B", "At work"),
        ("A", "Can you turn on your camera?"),
    ):
        found = re.search(r'name="carried" value="([^"]*)"', who.at.text)
        assert found is not None
        who.post("/parse", text=text, speaker=speaker, role="", do="say", carried=html.unescape(found[1]))
        parsed = parse(text, settings={"speaker": {"id": speaker}, "explain": True}, memory=memory)
        memory = parsed.memory
    assert all(words in who.text for words in parsed.result.explanations) and "G01" in who.text
    assert str(memory["x"]["s"]) in who.text
    found = re.search(r'name="carried" value="([^"]*)"', who.at.text)
    assert found is not None
    who.post("/parse", do="back", carried=html.unescape(found[1]))
    assert "G01" not in who.text and "At work" in who.text
    found = re.search(r'name="carried" value="([^"]*)"', who.at.text)
    assert found is not None and 'action="/inspector/parse"' in who.at.text[: who.at.text.index("</form>")]
    who.post("/parse", do="keep", language="ru", carried=html.unescape(found[1]))
    assert 'lang="ru"' in who.at.text and "At work" in who.text, "the switch of language takes them along"
    assert "At work" not in who.post("/parse", do="clear", carried=html.unescape(found[1])).text


@pytest.mark.parametrize(
    ("form", "kept", "problem"),
    [
        ({"text": "x", "do": "say"}, 1, ""),
        ({"text": " ", "do": "say"}, 0, "blank"),
        ({"text": "x" * 2_001}, 0, "too_long"),
        ({"text": "x", "role": "king"}, 0, "too_long"),
        ({"text": "x", "carried": "[[1,2"}, 1, ""),
        ({"text": "x", "carried": '[["A","king","x"]]'}, 1, ""),
        ({"text": "x", "carried": '{"a": 1}'}, 1, ""),
        ({"text": "x", "carried": '[["A","","hello"]]'}, 2, ""),
        ({"text": "x", "carried": str([["A", "", "m"]] * 60).replace("'", '"')}, MOST, "too_many"),
    ],
)
def test_what_the_page_carries_is_bounded_and_checked(form: dict[str, str], kept: int, problem: str) -> None:
    said, what = carried(form)
    assert (len(said), what) == (kept, problem)
    assert len(shown(said, "en")["steps"]) == kept


# Languages


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("ru", "ru"),
        ("ru-RU,ru;q=0.9,en;q=0.8", "ru"),
        ("en;q=0.5,ru;q=0.9", "ru"),
        ("de,fr", "en"),
        ("de;q=1,ru;q=0.1", "ru"),
        ("ru;q=x", "en"),
    ],
)
def test_the_browser_says_which_language(accepted: str, language: str) -> None:
    assert render.language_of(accepted) == language


def test_a_switch_changes_the_language_and_comes_back_nowhere_else(stage: Stage, visitor: Any) -> None:
    who = visitor("admin", Accept_Language="ru")
    assert "Чья память?" in who.text
    who.get(f"{BEGIN}/parse")
    who.post("/language", language="en", back=f"{BEGIN}/parse")
    assert who.path == f"{BEGIN}/parse" and "Messages one after another" in who.text
    for back in ("https://evil.example/", "//evil.example", "/inspectorate", "/v1/me"):
        who.post("/language", language="xx", back=back)
        assert who.path == BEGIN and "Whose memory?" in who.text


def _flat(table: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        assert not hasattr(table, key), f"{path}{key} is a method of a dict: a template would show that"
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def test_both_languages_say_the_same_things() -> None:
    """The same texts, with the same numbers filled in, none of them empty; and forms of nouns as each needs them."""
    english, russian = (dict(_flat(dict(render.words(language)))) for language in ("en", "ru"))
    assert english.keys() == russian.keys()
    for key, text in english.items():
        if isinstance(text, list):
            assert (len(text), len(russian[key])) == (2, 3)
            continue
        fields = [{name for _, name, _, _ in string.Formatter().parse(one) if name} for one in (text, russian[key])]
        assert fields[0] == fields[1] and text.strip() and russian[key].strip(), key


def test_every_text_is_used() -> None:
    used = "".join(path.read_text() for path in (render.HERE / "templates").iterdir())
    for key in tomllib.loads((render.HERE / "words" / "en.toml").read_text()):
        assert re.search(rf"\bt\.{key}\b", used), key


def test_shares_are_written_as_each_language_does() -> None:
    assert [render.percent(35, 1_000, language) for language in render.LANGUAGES] == ["3.5%", "3,5\N{NO-BREAK SPACE}%"]


def test_every_type_of_alert_has_words_in_both_languages() -> None:
    types = {rule.type for rule in default().rules}
    assert types and all(types <= render.words(language)["kinds"].keys() for language in render.LANGUAGES)


@pytest.mark.parametrize(
    ("count", "english", "russian"),
    [(1, 0, 0), (2, 1, 1), (5, 1, 2), (11, 1, 2), (21, 1, 0), (22, 1, 1), (111, 1, 2), (0, 1, 2)],
)
def test_numbers_choose_the_form_of_a_noun(count: int, english: int, russian: int) -> None:
    assert (render._form(count, "en"), render._form(count, "ru")) == (english, russian)
