"""The pages: signing in, whom to look at, his conversations, and one conversation turn by turn.

No id stands in an address: a person is named in a form, and from there on tickets stand for him and his conversations
(`nitka.server.inspector.tickets`). Every page that is shown under a ticket leaves a line in the log, each time
(`nitka.server.inspector.audit`); the forms that lead to it show nothing yet and leave none.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from nitka import acts
from nitka.conversation import find_owner
from nitka.facts import Facts
from nitka.server.access import Caller
from nitka.server.errors import Refusal
from nitka.server.inspector import audit, drawing, ended, flags, parsing, reading, render, tickets, views
from nitka.server.inspector.door import BEGIN, Anybody, Form, Paged, Signed, Visit, see
from nitka.server.inspector.past import MARKS, NOT_KEPT
from nitka.server.inspector.views import Conversation
from nitka.server.keys import Grant
from nitka.types import Handle, Person, User

SESSIONS = 25  # of one page
TURNS = 20
FACTS = 50
MOST_WATCHED = 200_000  # characters of a conversation that are read for flags, some seconds at most

router = APIRouter(prefix=BEGIN, route_class=Paged, include_in_schema=False)

TicketText = Annotated[str, Path(max_length=tickets.MOST)]
PageNumber = Annotated[int, Query(ge=1, le=1 << 31, alias="page")]


@router.get("")
async def begin(visit: Anybody) -> Response:
    """The form that names a person; before that, the one that takes a key."""
    if visit.grant is None:
        return visit.page("sign_in.html", code="", status_code=200)
    return visit.page("home.html", problem="", named="", channel="")


@router.post("/sign-in")
async def sign_in(visit: Anybody, form: Form) -> Response:
    """Takes an API key with the scope admin; the browser gets a cookie in its place."""
    caller = await visit.shared.access.caller(form.get("key", "").strip())
    if caller is None:
        raise Refusal("The API key is not known.", status=401, code="invalid_api_key")
    visit.request.state.key_id = caller.key_id
    if "admin" not in caller.scopes:
        raise Refusal("This needs a key with the scope admin.", status=403, code="missing_scope")
    visit.become(visit.new(key=caller.hash.hex()), _grant(caller))
    return see(BEGIN)


def _grant(caller: Caller) -> Grant:
    return Grant(tenant=caller.tenant, scopes=tuple(sorted(caller.scopes)), kind=caller.kind)


@router.post("/sign-out")
async def sign_out(visit: Anybody, form: Form) -> Response:
    """Ends the sign-in, also for whoever has its cookie; what was made in it, addresses too, opens no more."""
    if visit.grant is not None:
        await ended.end(visit.shared, visit.key, visit.sign_in)
    visit.become(visit.new(), None)
    return see(BEGIN)


@router.post("/language")
async def language(visit: Anybody, form: Form) -> Response:
    """Changes the language of the pages, and comes back."""
    _speak(visit, form)
    back = form.get("back", "")
    return see(back if back == BEGIN or back.startswith((f"{BEGIN}/", f"{BEGIN}?")) else BEGIN)


def _speak(visit: Visit, form: Mapping[str, str]) -> None:
    """Goes on in the language that a form asks for, if it asks for one."""
    if form.get("language") in render.LANGUAGES:
        held = visit.sign_in
        visit.become(
            visit.new(key=held.key, token=held.token, until=held.until, language=form["language"]), visit.grant
        )


@router.post("/person")
async def look_up(visit: Signed, form: Form) -> Response:
    """Opens a person: by the id that the application knows him by, or by a channel and a name there."""
    name, channel = form.get("user", ""), form.get("channel", "").strip()
    if not name:
        return visit.page("home.html", status=400, problem="no_name", named="", channel=channel)
    person: Person = Handle(channel, name, visit.tenant) if channel else User(name, visit.tenant)
    if await find_owner(visit.shared.vault, person) is None:
        plain = _plain(name)
        problem = "nobody" if plain == name else "nobody_to_the_letter"
        return visit.page("home.html", status=404, problem=problem, named=plain, channel=channel)
    return see(f"{BEGIN}/person/{visit.ticket('person', person)}")


def _plain(name: str) -> str:
    """A name without what cannot be seen: a pasted one may have spaces around it, or marks of direction."""
    return "".join(char for char in name if unicodedata.category(char) not in ("Cc", "Cf")).strip()


@router.get("/person/{ticket}")
async def person(ticket: TicketText, visit: Signed, number: PageNumber = 1) -> Response:
    """A person's conversations, the newest first."""
    who = visit.read("person", ticket).person(visit.tenant)
    if owner := await find_owner(visit.shared.vault, who):
        audit.shown(visit, owner)
    found = await acts.sessions(visit.shared.vault, who)
    pages = render.pages_of(len(found), SESSIONS)
    shown = [
        (info, "" if info.damaged else visit.ticket("door", who, info.id))
        for info in render.spread(found, number, SESSIONS)
    ]
    return visit.page(
        "person.html",
        person=who,
        ticket=ticket,
        view="sessions",
        sessions=shown,
        count=len(found),
        page=number,
        pages=pages,
    )


@router.get("/facts/{ticket}")
async def facts(ticket: TicketText, visit: Signed, number: PageNumber = 1) -> Response:
    """What is known of a person, each fact with its words, the turn it came from and what it was before."""
    who = visit.read("person", ticket).person(visit.tenant)
    owner = await find_owner(visit.shared.vault, who)
    if owner is not None:
        audit.shown(visit, owner)
    kept = await reading.facts_at_hand(visit.shared.vault, owner) if owner is not None else Facts()
    found = sorted(reading.listed(kept), key=lambda fact: not fact.current)
    pages = render.pages_of(len(found), FACTS)
    shown = list(render.spread(found, number, FACTS))
    sources = [one for fact in shown for one in (fact, *fact.past)]
    doors = {one.session: visit.ticket("door", who, one.session) for one in sources if one.session}
    return visit.page(
        "facts.html",
        person=who,
        ticket=ticket,
        view="facts",
        facts=shown,
        doors=doors,
        count=len(found),
        broken=len(kept.broken),
        page=number,
        pages=pages,
    )


@router.post("/open")
async def open_conversation(visit: Signed, form: Form) -> Response:
    """Opens a conversation; at one of its turns if one is named."""
    ticket = visit.read("door", form.get("door", ""))
    who = ticket.person(visit.tenant)
    if await reading.found(visit.shared.vault, who, ticket.session) is None:
        raise Refusal("There is no such conversation.", status=404, code="no_session")
    opened = visit.ticket("session", who, ticket.session)
    seq = form.get("seq", "")
    if seq.isascii() and seq.isdigit() and len(seq) < 17:
        return see(f"{BEGIN}/turn/{opened}?seq={int(seq) & ~1}")
    return see(f"{BEGIN}/session/{opened}")


@router.get("/session/{ticket}")
async def session(
    ticket: TicketText, visit: Signed, number: Annotated[int | None, Query(ge=1, alias="page")] = None
) -> Response:
    """A conversation turn by turn; its end first, since that is what somebody asks about."""
    talk = await views.prepared(visit, visit.read("session", ticket))
    pages = render.pages_of(len(talk.turns), TURNS)
    number = min(number or pages, pages)
    chosen = render.spread(talk.turns, number, TURNS)
    shown = await asyncio.to_thread(lambda: [talk.turn(seq) for seq in chosen])
    bars = {turn.seq: drawing.budget_bar(turn.request) for turn in shown if turn.request}
    return _talk(visit, ticket, talk, "session.html", view="turns", turns=shown, bars=bars, page=number, pages=pages)


@router.get("/turn/{ticket}")
async def turn(ticket: TicketText, visit: Signed, seq: Annotated[int, Query(ge=0, le=1 << 53)]) -> Response:
    """One turn: its request to the scale of its budget, every block of it, and where the cursor stood."""
    talk = await views.prepared(visit, visit.read("session", ticket))
    if seq not in talk.turns:
        raise Refusal("There is no such turn.", status=404, code="no_turn")
    shown = talk.turn(seq)
    request = shown.request
    at = talk.turns.index(seq)
    return _talk(
        visit,
        ticket,
        talk,
        "turn.html",
        view="turns",
        turn=shown,
        bar=drawing.budget_bar(request) if request else [],
        near=drawing.close_up(request) if request else [],
        shares=drawing.shares(request) if request else [],
        blocks=views.blocks_of(request) if request else [],
        strip=drawing.rows_strip(talk.log, seq, request, shown.stand.cursor) if shown.stand else [],
        marks=MARKS,
        not_kept=NOT_KEPT,
        home=at // TURNS + 1,
        before=talk.turns[at - 1] if at else None,
        after=talk.turns[at + 1] if at + 1 < len(talk.turns) else None,
    )


@router.get("/summary/{ticket}")
async def summary(ticket: TicketText, visit: Signed) -> Response:
    """The lines of the summary with the rows they rest on, and which were tightened to their gist."""
    talk = await views.prepared(visit, visit.read("session", ticket))
    cap = visit.shared.limits.summary_tokens
    return _talk(visit, ticket, talk, "summary.html", view="summary", summary=talk.log.summary, cap=cap)


@router.get("/watch/{ticket}")
async def watch(ticket: TicketText, visit: Signed) -> Response:
    """What the watch sees in a conversation, by the rules of today; nothing where the tenant is not watched."""
    talk = await views.prepared(visit, visit.read("session", ticket))
    watching = visit.shared.nitka._turns.watching
    seen = await _seen(visit, talk) if watching.on(visit.tenant) else None
    return _talk(
        visit,
        ticket,
        talk,
        "watch.html",
        view="watch",
        along=seen,
        purpose=watching.purposes.get(visit.tenant, ""),
        lanes=drawing.lanes(seen.noticed, seen.first, talk.log.head) if seen else [],
        raised=drawing.dots([alert.seq for alert in seen.alerts], seen.first, talk.log.head) if seen else [],
    )


async def _seen(visit: Visit, talk: Conversation) -> flags.Along:
    """The conversation, read beside the event loop."""
    from nitka.watch.data import default  # here: rules and lexicons take half a second to load

    async with visit.shared.parsing:
        return await asyncio.to_thread(lambda: flags.along(talk.log.rows, default(), visit.language, most=MOST_WATCHED))


@router.get("/cost/{ticket}")
async def cost(ticket: TicketText, visit: Signed) -> Response:
    """Tokens sent with each turn, and tokens folded between turns."""
    talk = await views.prepared(visit, visit.read("session", ticket))
    columns, most, most_folded = await asyncio.to_thread(talk.columns)
    whole = sum(talk.log.sizes.values())
    return _talk(
        visit, ticket, talk, "cost.html", view="cost", columns=columns, most=most, most_folded=most_folded, whole=whole
    )


def _talk(visit: Visit, ticket: str, talk: Conversation, template: str, *, view: str, **values: Any) -> Response:
    """A page of one conversation, with its line in the log."""
    audit.shown(visit, talk.owner)
    log = talk.log
    known: dict[str, Any] = {
        "person": talk.person,
        "session": talk.session,
        "ticket": ticket,
        "people": visit.ticket("person", talk.person),
        "view": view,
        "log": log,
        "forgotten": log.head - log.first - len(log.rows) - len(log.damaged),
    }
    return visit.page(template, **{**known, **values})


@router.get("/parse")
async def parse_page(visit: Signed) -> Response:
    """Type messages one after another and see the memory travel."""
    read = await asyncio.to_thread(parsing.shown, (), visit.language)
    return visit.page("parse.html", **read, view="parse", problem="")


@router.post("/parse")
async def parse(visit: Signed, form: Form) -> Response:
    """Reads the messages so far and one more, each with the memory of those before it. Nothing is kept here: the page
    carries them.
    """
    _speak(visit, form)
    said, problem = parsing.carried(form)
    async with visit.shared.parsing:
        read = await asyncio.to_thread(parsing.shown, said, visit.language)
    status = 400 if problem else 200
    return visit.page("parse.html", status=status, **read, view="parse", problem=problem)


@router.get("/assets/{name}")
async def assets(name: str) -> Response:
    """The style sheet and the module."""
    if name not in render.ASSETS:
        raise Refusal("There is nothing at this address.", status=404, code="not_found")
    return render.asset(name)


@router.get("/{rest:path}")
async def nothing(rest: str, request: Request) -> Response:
    """Whatever else is asked for."""
    raise Refusal("There is nothing at this address.", status=404, code="not_found")
