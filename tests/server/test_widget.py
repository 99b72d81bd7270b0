"""The widget's side of the server: its script, user tokens, and the visitor who signs in."""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import json
import re
import tomllib
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.server import keys, user_tokens, widget
from nitka.server.errors import Refusal
from nitka.server.keys import Grant
from nitka.server.service import Options
from nitka.store.port import ApiKeyRow
from nitka.types import User
from nitka.vault.seal import Kind, Place
from nitka.world import random_bytes
from tests.server.stage import Script, Stage, serving
from tests.server.test_access import PAGE, call, routes

SECRET = "ws_" + "s" * 43
OTHER = "ws_" + "t" * 43
NOW = 1_767_603_600  # what the stage's clock says


@pytest.fixture
def key(stage: Stage) -> str:
    return stage.key("widget", origins=(PAGE,), signing=SECRET)


def token(stage: Stage, user: Any = "anna", *, secret: str = SECRET, hours: float = 1, **claims: Any) -> str:
    ends = int((stage.clock() + timedelta(hours=hours)).timestamp())
    return jwt.encode({"sub": user, "exp": ends, **claims}, secret, algorithm="HS256")


def send(stage: Stage, key: str, method: str, path: str, *, body: Any = None, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    all_headers = {"Authorization": f"Bearer {key}", "Origin": PAGE, **named}
    return stage.plain.request(method, path, headers=all_headers, json=body)


def visitor(stage: Stage, key: str) -> dict[str, str]:
    made: dict[str, str] = send(stage, key, "POST", "/v1/visitors").json()
    stage.users.add(User(made["user"]))
    return made


# The script


def test_any_page_may_load_the_script(stage: Stage) -> None:
    """It needs no key, has the type of a module, and may be read by pages of any origin."""
    answer = stage.plain.get("/widget.js", headers={"Origin": "https://anywhere.example"})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "max-age=600" in answer.headers["cache-control"]
    assert 'customElements.define("nitka-chat"' in answer.text
    assert stage.plain.head("/widget.js").headers["etag"] == answer.headers["etag"]


@pytest.mark.parametrize(
    ("accepts", "is_packed"),
    [("gzip", True), ("br, gzip;q=0.5", True), ("", False), ("br", False), ("gzip;q=0", False), ("gzip; q=0.0", False)],
)
def test_the_script_is_packed_for_whoever_takes_that(stage: Stage, accepts: str, is_packed: bool) -> None:
    with stage.plain.stream("GET", "/widget.js", headers={"Accept-Encoding": accepts}) as answer:
        data = b"".join(answer.iter_raw())
    assert (answer.headers.get("content-encoding") == "gzip") is is_packed
    assert answer.headers["vary"] == "Accept-Encoding"
    plain = gzip.decompress(data) if is_packed else data
    assert plain == widget.script().plain


def test_the_script_is_its_source_without_the_lines_of_comments() -> None:
    source = (Path(keys.__file__).parent / "web" / "widget.js").read_text("utf-8")
    whole = re.sub(r"^ */\*.*?\*/ *$", "", source, flags=re.M | re.S).splitlines()
    lines = [line for line in whole if line.strip() and not line.strip().startswith("//")]
    assert widget.script().plain.decode().splitlines() == lines


def test_the_script_is_small() -> None:
    """Under 20 kB as it is sent."""
    assert len(widget.script().packed) < 20_000


def test_what_a_browser_has_already_is_not_sent_again(stage: Stage) -> None:
    """By either ETag, weakened by a proxy or not; another one gets the script."""
    for encoding in ("gzip", "identity"):
        etag = stage.plain.get("/widget.js", headers={"Accept-Encoding": encoding}).headers["etag"]
        for named in (etag, f"W/{etag}", f'"x", {etag}'):
            again = stage.plain.get("/widget.js", headers={"If-None-Match": named})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["access-control-allow-origin"] == "*"
    assert stage.plain.get("/widget.js", headers={"If-None-Match": '"other"'}).status_code == 200


# User tokens


def test_a_user_token_speaks_for_its_user_and_no_other(stage: Stage, key: str) -> None:
    """Whatever visitor's token comes along; the visitor, and another user, see nothing of it."""
    guest = visitor(stage, key)
    said = send(
        stage, key, "POST", "/v1/turns", body={"text": "My city is Riga."}, X_Nitka_User_Token=token(stage),
        X_Nitka_Visitor=guest["token"], X_Nitka_Session="s",
    )  # fmt: skip
    assert said.json()["seq"] == 0
    assert [text for _, text in stage.rows()][:1] == ["My city is Riga."]
    for headers in ({"X_Nitka_Visitor": guest["token"]}, {"X_Nitka_User_Token": token(stage, "bert")}):
        assert send(stage, key, "GET", "/v1/me/conversation", X_Nitka_Session="s", **headers).json()["data"] == []
    mine = send(stage, key, "GET", "/v1/me/conversation", X_Nitka_Session="s", X_Nitka_User_Token=token(stage))
    assert len(mine.json()["data"]) == 2
    named = send(stage, key, "GET", "/v1/me/facts", X_Nitka_User_Token=token(stage), X_Nitka_User="bert")
    assert (named.status_code, named.json()["error"]["code"]) == (403, "visitor_only")


def raw(header: Any, claims: Any, secret: str = SECRET) -> str:
    """A JWT made by hand, signed with HMAC-SHA-256 whatever its header says."""

    def part(value: Any) -> str:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    signed = f"{part(header)}.{part(claims)}"
    return f"{signed}.{part(hmac.digest(secret.encode(), signed.encode(), hashlib.sha256))}"


HS = {"alg": "HS256", "typ": "JWT"}
GOOD: dict[str, Any] = {"sub": "anna", "exp": NOW + 600}


def bad_tokens() -> dict[str, str]:
    good = raw(HS, GOOD)
    head, body, sign = good.split(".")
    none = raw({"alg": "none"}, GOOD).rsplit(".", 1)[0] + "."
    claims: dict[str, Any] = {
        "expired": {"exp": NOW},
        "longer than a day": {"exp": NOW + 86_400 + 61},
        "for ever": {"exp": 10**30},
        "of no end": {"exp": None},
        "ends at infinity": {"exp": float("inf")},
        "ends at no number": {"exp": float("nan")},
        "ends in words": {"exp": str(NOW + 600)},
        "ends at true": {"exp": True},
        "of later": {"nbf": NOW + 120},
        "of a later word": {"nbf": "now"},
        "of a number": {"sub": 5},
        "of nobody": {"sub": ""},
        "of a null": {"sub": None},
        "of NUL": {"sub": "a\0b"},
        "of half a letter": {"sub": "\ud800"},
        "of too long a name": {"sub": "x" * 513},
        "of a visitor": {"sub": "visitor:abc"},
        "with a visitor that is a list": {"visitor": ["visitor:abc"]},
        "for another audience": {"aud": "somebody else"},
    }
    return {
        "empty": "",
        "words": "anna",
        "three dots": "...",
        "cut": good[:-2],
        "longer": good + "A",
        "without a signature": f"{head}.{body}.",
        "another's signature": f"{head}.{body}.{raw(HS, GOOD, OTHER).rsplit('.')[-1]}",
        "other claims": f"{head}.{raw(HS, {**GOOD, 'sub': 'bert'}).split('.')[1]}.{sign}",
        "foreign": raw(HS, GOOD, OTHER),
        "signed with nothing": raw(HS, GOOD, ""),
        "alg none": none,
        "alg None": none.replace(none.split(".")[0], raw({"alg": "None"}, GOOD).split(".")[0]),
        "alg none, signed": raw({"alg": "none"}, GOOD),
        "another hash": jwt.encode(GOOD, SECRET * 2, algorithm="HS512"),
        "alg RS256": raw({"alg": "RS256"}, GOOD),
        "no alg": raw({}, GOOD),
        "a header of a list": raw([], GOOD),
        "claims of a list": raw(HS, [GOOD]),
        "claims that are none": raw(HS, b"{"),
        "claims that are deep": raw(HS, b"[" * 1_000),
        "a critical extension": raw({**HS, "crit": ["x"], "x": 1}, GOOD),
        "a wall of text": good + "x" * 5_000,
        **{name: raw(HS, {**GOOD, **changed}) for name, changed in claims.items()},
        "without sub": raw(HS, {"exp": NOW + 600}),
        "without exp": raw(HS, {"sub": "anna"}),
    }


@pytest.mark.parametrize("name", bad_tokens())
def test_a_bad_token_is_refused_as_every_other(stage: Stage, key: str, name: str) -> None:
    assert send(stage, key, "GET", "/v1/me/facts", X_Nitka_User_Token=raw(HS, GOOD)).status_code == 200
    refused = send(stage, key, "GET", "/v1/me/facts", X_Nitka_User_Token=bad_tokens()[name])
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_user_token")
    assert refused.json()["error"]["message"] == "The user token is not good, or no longer."
    assert refused.headers["access-control-allow-origin"] == PAGE  # or the page could not tell


@pytest.mark.parametrize("changed", [{"exp": NOW + 86_400}, {"exp": NOW + 0.5}, {"nbf": NOW + 30}, {"iat": NOW + 30}])
def test_clocks_may_differ_a_little(stage: Stage, key: str, changed: dict[str, Any]) -> None:
    good = raw(HS, {**GOOD, **changed})
    assert send(stage, key, "GET", "/v1/me/facts", X_Nitka_User_Token=good).status_code == 200


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("latin-1")))
def test_no_text_is_a_token_by_chance(text: str) -> None:
    from datetime import UTC, datetime

    with pytest.raises(Refusal, match="not good"):
        user_tokens.read(text, SECRET, datetime.fromtimestamp(NOW, UTC))


def test_no_endpoint_opens_for_a_wrong_user_token(stage: Stage, key: str) -> None:
    """A table: endpoint by wrong token, with a key that is good. Before the body is read, each says 401."""
    secret = stage.key("turns", "read", "admin", "parse", "metrics")
    wrong = [(key, raw(HS, GOOD, OTHER)), (key, raw({"alg": "none"}, GOOD)), (key, raw(HS, {**GOOD, "exp": NOW}))]
    for method, path in routes():
        for who, bad in [*wrong, (secret, raw(HS, GOOD))]:  # a server's key takes none at all
            headers = {"Authorization": f"Bearer {who}", "Origin": PAGE, "X-Nitka-User-Token": bad}
            refused = call(stage, method, path, **headers)
            assert refused.status_code == 401, (method, path)
            assert not path.startswith("/v1/") or refused.json()["error"]["code"] == "invalid_user_token"


def test_another_widgets_secret_is_foreign(stage: Stage, key: str) -> None:
    """Of the same tenant or another: each key has its own."""
    for tenant in ("", "other"):
        other = stage.key("widget", origins=(PAGE,), signing=OTHER, tenant=tenant)
        assert send(stage, other, "GET", "/v1/me/facts", X_Nitka_User_Token=token(stage)).status_code == 401
        good = token(stage, secret=OTHER)
        assert send(stage, other, "GET", "/v1/me/facts", X_Nitka_User_Token=good).status_code == 200


def test_a_key_from_before_there_were_secrets_works_without_user_tokens(stage: Stage) -> None:
    """Its row has no such field; a token is refused, were it signed with nothing."""
    secret = keys.secret_of("widget", random_bytes(32))
    hash = keys.hash_of(secret)
    fields = asdict(keys.grant_of(scopes=("widget",), origins=(PAGE,), rate=1_000))
    del fields["signing"]

    async def add() -> None:
        system = await stage.nitka._vault.keychain.system_key()
        body = system.seal(json.dumps(fields).encode(), Place(Kind.API_KEY, hash[:16], hash[16:], 1))
        await stage.store.add_api_key(ApiKeyRow(hash, 1, body))

    stage.run(add())
    assert visitor(stage, secret)["token"]
    for signed_with in (SECRET, ""):
        refused = send(stage, secret, "POST", "/v1/visitors", X_Nitka_User_Token=raw(HS, GOOD, signed_with))
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_user_token")
        assert "no signing secret" in refused.json()["error"]["message"]


def test_the_secret_is_told_to_nobody(stage: Stage, key: str) -> None:
    """It is in no row in clear, and in no representation of what holds it."""
    rows: Any = stage.run(stage.store.api_keys())
    assert SECRET.encode() not in b"".join(row.hash + row.body for row in rows)
    assert SECRET not in repr(stage.run(stage.service.access.caller(key)))
    assert SECRET not in repr(Grant(scopes=("widget",), signing=SECRET))


@pytest.mark.parametrize("scope", ["turns", "admin"])
def test_only_a_widgets_key_has_a_secret(scope: str) -> None:
    assert keys.grant_of(scopes=(scope,), signing=SECRET).signing == ""


# The visitor who signs in


def spoken_to(stage: Stage, key: str, guest: dict[str, str], text: str = "My city is Riga.") -> None:
    said = send(
        stage, key, "POST", "/v1/turns", body={"text": text}, X_Nitka_Visitor=guest["token"], X_Nitka_Session="s"
    )
    assert said.status_code == 200, said.text


def test_a_visitor_is_joined_to_the_user_whom_the_host_names_with_him(stage: Stage, key: str) -> None:
    guest = visitor(stage, key)
    spoken_to(stage, key, guest)
    both = {"X_Nitka_User_Token": token(stage, visitor=guest["user"]), "X_Nitka_Visitor": guest["token"]}
    joined = send(stage, key, "POST", "/v1/visitors/adopt", **both)
    assert (joined.status_code, joined.json()["messages"]) == (200, 2)
    assert [text for _, text in stage.rows()][:1] == ["My city is Riga."]
    assert stage.run(stage.nitka.sessions(User(guest["user"]))) == ()
    again = send(stage, key, "POST", "/v1/visitors/adopt", **both)
    assert (again.status_code, again.json()["messages"]) == (200, 0)
    assert len(stage.rows()) == 2


def test_nobody_is_joined_without_both_tokens(stage: Stage, key: str) -> None:
    """A table of what is sent: the visitor's conversation stays his own."""
    guest, other = visitor(stage, key), visitor(stage, key)
    spoken_to(stage, key, guest)
    naming, silent = token(stage, visitor=guest["user"]), token(stage)
    mine = stage.key("widget", origins=(PAGE,), signing=SECRET)
    table: list[tuple[str, dict[str, str], int, str]] = [
        (key, {}, 401, "invalid_user_token"),
        (key, {"X_Nitka_Visitor": guest["token"]}, 401, "invalid_user_token"),
        (key, {"X_Nitka_User_Token": naming}, 401, "invalid_visitor"),
        (key, {"X_Nitka_User_Token": silent, "X_Nitka_Visitor": guest["token"]}, 403, "other_visitor"),
        (key, {"X_Nitka_User_Token": naming, "X_Nitka_Visitor": other["token"]}, 403, "other_visitor"),
        (key, {"X_Nitka_User_Token": naming, "X_Nitka_Visitor": guest["token"][:-4]}, 401, "invalid_visitor"),
        (key, {"X_Nitka_User_Token": naming, "X_Nitka_Visitor": guest["user"]}, 401, "invalid_visitor"),
        (mine, {"X_Nitka_User_Token": naming, "X_Nitka_Visitor": guest["token"]}, 401, "invalid_visitor"),
    ]
    for who, headers, status, code in table:
        refused = send(stage, who, "POST", "/v1/visitors/adopt", **headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (status, code), headers
    assert len(stage.rows(guest["user"])) == 2
    assert stage.rows() == []


def test_a_servers_key_joins_nobody_here(stage: Stage) -> None:
    refused = send(stage, stage.key("admin"), "POST", "/v1/visitors/adopt")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "missing_scope")


# Pages of this server's own, and how often


def test_a_page_of_this_servers_own_may_read(stage: Stage) -> None:
    """Browsers send no Origin with a GET to where the page is from; `Sec-Fetch-Site`, which no script sets, says so."""
    key = stage.key("widget", origins=(stage.url,))
    headers = {"Authorization": f"Bearer {key}", "X-Nitka-Visitor": "nv_"}
    own = stage.plain.get("/v1/me/facts", headers={**headers, "Sec-Fetch-Site": "same-origin"})
    assert own.json()["error"]["code"] == "invalid_visitor"  # past the question where it is from
    for site in ("same-site", "cross-site", "none", ""):
        refused = stage.plain.get("/v1/me/facts", headers={**headers, "Sec-Fetch-Site": site})
        assert refused.json()["error"]["code"] == "wrong_origin"
    other = {"Authorization": f"Bearer {stage.key('widget', origins=(PAGE,))}", "Sec-Fetch-Site": "same-origin"}
    assert stage.plain.get("/v1/me/facts", headers=other).json()["error"]["code"] == "wrong_origin"


def test_a_visitor_may_look_more_often_than_he_may_speak(script: Script) -> None:
    """Twenty turns a minute, each of which asks a model; and a page can read why it has to wait."""
    with serving(script, options=Options(key_seconds=60)) as stage:
        key = stage.key("widget", origins=(PAGE,), signing=SECRET)
        guest = visitor(stage, key)
        for headers in ({"X_Nitka_Visitor": guest["token"]}, {"X_Nitka_User_Token": token(stage)}):
            where = {**headers, "X_Nitka_Session": "s"}
            spoken = [send(stage, key, "POST", "/v1/turns", body={"x": 1}, **where) for _ in range(21)]
            assert [answer.status_code for answer in spoken] == [400] * 20 + [429]
            assert spoken[-1].headers["access-control-allow-origin"] == PAGE
            assert "retry-after" in spoken[-1].headers["access-control-expose-headers"]
            assert send(stage, key, "GET", "/v1/me/facts", **headers).status_code == 200


def test_the_preflight_lets_user_tokens_pass(stage: Stage, key: str) -> None:
    asked = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
    answer = stage.plain.options("/v1/turns", headers=asked)
    assert "x-nitka-user-token" in answer.headers["access-control-allow-headers"]


def test_the_packages_wheel_takes_the_script_along() -> None:
    """Everything under the package's folder is in it, whatever its kind."""
    root = Path(__file__).parents[2]
    wheel = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/nitka"]}
    assert (root / "src/nitka/server/web/widget.js").is_file()
