"""Reconciling proposals with the facts as they are: pure, so that the commit can run it again when the version has
moved.

Rules:

* A proposal needs evidence: a row of the user's, with the quote in it. Without it, it is refused, and the others go on.
* Order comes from the evidence (a row's own time, then its number), never from the order of arrival: the newest word
  on a slot is current, older ones are its past. So the same proposals give the same facts in any order, once or many
  times.
* Saying again confirms. Only the same subject and the same slot are ever compared; a related fact elsewhere is never
  touched, except where the slot table names an opposite (liking and disliking the same thing).
* What was taken back stays as a fact that is no longer live, so that an older row cannot bring it back. What was set
  by hand has the time of the hand, so only newer words override it.
* A row that takes a value back and states another has changed it: whatever is said of the old one, the new one stands.
* A value that is not the rules' own must be borne out by the row, or it is refused as invented; a statement that names
  what the row does not gives way to the value.
* A row that claims a time more than a year ahead (no clock is that wrong) dates nothing (`not_ahead`): newer words
  override it.
* What the caller says was forgotten is not taught again; excluded categories and secrets are never written.

Changes name proposals by their position and never quote a text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from nitka.errors import BadInput
from nitka.layers.facts.canon import fold, one_line, tokens, value_key
from nitka.layers.facts.evidence import supports
from nitka.layers.facts.grounds import Ground, bears_out, ground_of, invents
from nitka.layers.facts.model import ROWS_KEPT, USER, Candidate, Fact, Key, Seen, When, key_of
from nitka.layers.facts.rules import russian
from nitka.layers.facts.secrets import holds_secret, names_secret
from nitka.layers.facts.slots import Category, category_of, is_many, is_slot, opposite_of, within
from nitka.types import Message

VALUE_CHARS, STATEMENT_CHARS, QUOTE_CHARS, ABOUT_CHARS = 300, 500, 1_000, 120
AHEAD = timedelta(days=366)
"""How far ahead of the learner's clock a row may be: a clock may be wrong by days, an import by a time zone, and a row
of the year 9999 is of neither."""
PAST_KEPT = 20
"""Past values a fact keeps, the newest."""
BY_HAND = -1
"""The place in a row's text of what no row says: it was done by hand, and forgetting a row does not undo it."""

Kind = Literal["added", "confirmed", "updated", "retracted", "repeated", "refused"]
Why = Literal[
    "",
    "no_row",
    "not_said",
    "blank",
    "bad_slot",
    "secret",
    "excluded",
    "forgotten",
    "no_such_fact",
    "older",
    "invented",
]
Found = dict[Key, Fact]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of one proposal. `candidate` is its position in the list given."""

    kind: Kind
    candidate: int
    key: Key | None = None
    why: Why = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """The facts after all proposals (retracted ones included, with `live` false), in a fixed order, and the account."""

    facts: tuple[Fact, ...]
    changes: tuple[Change, ...]

    @property
    def counts(self) -> Counter[str]:
        """How many of each kind; refusals by their reason ("refused: secret")."""
        return Counter(f"{change.kind}: {change.why}" if change.why else change.kind for change in self.changes)


def reconcile(
    facts: Sequence[Fact],
    candidates: Sequence[Candidate],
    messages: Sequence[Message],
    *,
    sessions: Mapping[int, str] | None = None,
    forgotten: Callable[[Candidate], bool] = lambda _: False,
    excluded: frozenset[Category] = frozenset(),
) -> Reconciled:
    """The facts after the proposals. `sessions` names the session of each row `n`; `messages` are the rows the
    proposals speak of; `forgotten` says of a proposal whether it would teach again what was forgotten."""
    rows = {message.n: message for message in messages}
    found: Found = {fact.key: fact for fact in facts}
    changes: list[Change] = []
    spoken = {candidate.n for candidate in candidates if not candidate.ours} & rows.keys()
    grounds = {n: ground_of(rows[n], rows, sessions or {}) for n in spoken}
    candidates = [_with_statement(candidate, grounds) for candidate in candidates]
    for position in sorted(range(len(candidates)), key=lambda at: _order(candidates[at], rows)):
        candidate = candidates[position]
        why = _refusal(candidate, rows, forgotten, excluded) or _invented(candidate, grounds)
        if why:
            changes.append(Change(kind="refused", candidate=position, why=why))
            continue
        seen = _seen(candidate, rows[candidate.n], (sessions or {}).get(candidate.n, ""))
        step = _assert if candidate.op == "assert" else _retract
        kind, why = step(found, candidate, seen)
        key = key_of(candidate.about, candidate.slot, candidate.value)
        changes.append(Change(kind=kind, candidate=position, key=key, why=why))
    russian.forget()
    changes.sort(key=lambda change: change.candidate)
    return Reconciled(facts=_in_order(found), changes=tuple(changes))


def not_ahead(messages: Sequence[Message], now: datetime) -> list[Message]:
    """The rows as they may date facts at `now` (aware), by their number: one that is further ahead than AHEAD counts as
    said now, or when the next row after it was said."""
    dated: list[Message] = []
    latest = now
    for message in sorted(messages, key=lambda row: row.n, reverse=True):
        if message.at > now + AHEAD:
            message = replace(message, at=latest)
        latest = min(latest, message.at)
        dated.append(message)
    return dated[::-1]


def set_by_hand(
    facts: Sequence[Fact], slot: str, value: str, *, about: str = USER, at: datetime, n: int
) -> tuple[Fact, ...]:
    """The facts with one set by a person at `at`, when the owner's head was `n`. Raises `BadInput` for a bad slot, a
    blank or a secret."""
    if not all(isinstance(text, str) for text in (slot, value, about)):
        raise BadInput("Slot, value and whom a fact is about are strings.")
    value = one_line(value, VALUE_CHARS)
    if (
        not is_slot(slot)
        or not value
        or not one_line(about, ABOUT_CHARS)
        or names_secret(slot)
        or holds_secret(f"{slot.replace('.', ' ')} {value}")
    ):
        raise BadInput("A fact needs a slot of dotted words and a value that is not blank and not a secret.")
    statement = f"{re.sub('[._]', ' ', slot)}: {value}"
    candidate = Candidate(slot=slot, value=value, statement=statement, about=about, quote="", seq=-1, n=n)
    seen = Seen(value=value, statement=statement, quote="", first_seen=at, last_seen=at, n=n, latest=(n, 0), hand=True)
    found: Found = {fact.key: fact for fact in facts}
    _assert(found, candidate, seen)
    return _in_order(found)


def retract_by_hand(facts: Sequence[Fact], key: Key, *, at: datetime, n: int) -> tuple[Fact, ...]:
    """The facts with one taken back by a person; it stays as history and older rows do not bring it back."""
    found: Found = {fact.key: fact for fact in facts}
    if key in found:
        found[key] = _taken_back(found[key], (at, n, BY_HAND))
    return _in_order(found)


def _order(candidate: Candidate, rows: Mapping[int, Message]) -> tuple[float, int, bool]:
    """By time and number of the row; within a row what is stated comes before what is taken back, which then meets the
    new value where it speaks of the old.
    """
    row = rows.get(candidate.n)
    return (row.at.timestamp() if row else 0.0), candidate.n, candidate.op == "retract"


def _in_order(found: Found) -> tuple[Fact, ...]:
    return tuple(found[key] for key in sorted(found, key=lambda key: (key[0] != USER, key)))


def _refusal(
    candidate: Candidate,
    rows: Mapping[int, Message],
    forgotten: Callable[[Candidate], bool],
    excluded: frozenset[Category],
) -> Why:
    row = rows.get(candidate.n)
    if row is None or row.seq != candidate.seq:
        return "no_row"
    if not is_slot(candidate.slot):
        return "bad_slot"
    if not one_line(candidate.about, ABOUT_CHARS) or (
        candidate.op == "assert" and not one_line(candidate.value, VALUE_CHARS)
    ):
        return "blank"
    if not supports(candidate.quote, row):
        return "not_said"
    if candidate.op == "retract":
        return ""
    if names_secret(candidate.slot) or any(map(holds_secret, (candidate.value, candidate.statement, candidate.quote))):
        return "secret"
    if category_of(candidate.slot, f"{candidate.value} {candidate.statement}") in excluded:
        return "excluded"
    return "forgotten" if forgotten(candidate) else ""


def _invented(candidate: Candidate, grounds: Mapping[int, Ground]) -> Why:
    if candidate.ours or candidate.op == "retract":
        return ""
    return "" if bears_out(grounds[candidate.n], candidate.value, candidate.slot) else "invented"


def _with_statement(candidate: Candidate, grounds: Mapping[int, Ground]) -> Candidate:
    """The proposal; without its statement where that names what the row does not."""
    ground = grounds.get(candidate.n)
    told = candidate.ours or candidate.statement in ("", candidate.value) or ground is None
    if told or ground is None or not invents(ground, candidate.statement):
        return candidate
    return replace(candidate, statement="")


def _seen(candidate: Candidate, row: Message, session: str) -> Seen:
    value = one_line(candidate.value, VALUE_CHARS)
    return Seen(
        value=value,
        statement=one_line(candidate.statement, STATEMENT_CHARS) or value,
        quote=candidate.quote.strip()[:QUOTE_CHARS],
        first_seen=row.at,
        last_seen=row.at,
        session=session,
        seq=row.seq,
        n=row.n,
        latest=(row.n, _place(candidate, row)),
        rows=(row.n,),
    )


def _place(candidate: Candidate, row: Message) -> int:
    """Where in the row's folded text the value stands, or its quote where the value was put in other words."""
    text, quote = fold(row.text), fold(candidate.quote)
    at = text.find(quote)
    return at + max(0, quote.find(fold(candidate.value)))


def _assert(found: Found, candidate: Candidate, seen: Seen) -> tuple[Kind, Why]:
    about = one_line(candidate.about, ABOUT_CHARS)
    key = key_of(about, candidate.slot, candidate.value)
    old = found.get(key)
    versions = [seen] if old is None else _joined([_version(old), *old.past, seen])
    fact = _fact(versions, slot=candidate.slot, about=about if old is None else old.about)
    if old is not None:
        fact = replace(fact, retracted=old.retracted)
    if fact.live:  # a retraction that newer words have overcome says nothing any more
        fact = replace(fact, retracted=None)
    found[key] = _against_opposites(found, fact)
    return _what_happened(old, found[key], seen), ""


def _what_happened(old: Fact | None, new: Fact, seen: Seen) -> Kind:
    if old == new:
        return "repeated"
    if old is None or (new.live and not old.live):
        return "added"
    return "confirmed" if value_key(old.value) == value_key(seen.value) else "updated"


def _retract(found: Found, candidate: Candidate, seen: Seen) -> tuple[Kind, Why]:
    aimed = [key for key, fact in found.items() if _is_meant(fact, candidate)]
    if not aimed:
        return "refused", "no_such_fact"
    named = bool(candidate.value.strip())
    newer = [key for key in aimed if found[key].when < seen.when or (named and found[key].when == seen.when)]
    for key in newer:
        found[key] = _taken_back(found[key], seen.when)
    return ("retracted", "") if newer else ("refused", "older")


def _is_meant(fact: Fact, candidate: Candidate) -> bool:
    blank = not candidate.value.strip()
    if fact.key[0] != key_of(candidate.about, candidate.slot, "")[0] or fact.slot != candidate.slot:
        return False
    return blank or value_key(fact.value) == value_key(candidate.value)


def _taken_back(fact: Fact, when: When) -> Fact:
    return fact if fact.retracted is not None and fact.retracted >= when else replace(fact, retracted=when)


def _against_opposites(found: Found, fact: Fact) -> Fact:
    """Of liking and disliking one thing only the newer stands, whichever of the two arrives first."""
    head = opposite_of(fact.slot)
    if head is None or not is_many(fact.slot):
        return fact
    for key, other in list(found.items()):
        if key[0] != fact.key[0] or not within(other.slot, head):
            continue
        pair = sorted(
            (other, fact), key=lambda one: one.slot, reverse=True
        )  # at one place of one row, the denial stands
        older, newer = sorted(pair, key=lambda one: one.when)
        if not set(tokens(newer.value)) <= set(tokens(older.value)):
            continue
        if newer is fact and fact.when == other.when == fact.retracted:
            fact = newer = replace(fact, retracted=None)  # the other had taken it back before the row's own denial came
        ended = _taken_back(older, newer.when)
        if older is other:
            found[key] = ended
        else:
            fact = ended
    return fact


def _version(fact: Fact) -> Seen:
    names = (name for name in Seen.__slots__)
    return Seen(**{name: getattr(fact, name) for name in names})


def _joined(versions: Sequence[Seen]) -> list[Seen]:
    """One version a value, newest first."""
    merged: dict[str, Seen] = {}
    for version in versions:
        key = value_key(version.value)
        merged[key] = version if key not in merged else _both(merged[key], version)
    return sorted(merged.values(), key=lambda version: (version.when, value_key(version.value)), reverse=True)


def _both(one: Seen, two: Seen) -> Seen:
    """Two sights of one value: the wording and quote of the earlier, the reach of both."""
    first = min(one, two, key=lambda seen: (seen.first_seen, seen.n, seen.hand, seen.value, seen.quote))
    rows = sorted({*one.rows, *two.rows})
    last_seen, *latest = max(one.when, two.when)
    fresh = _fresh(one, two)
    return replace(
        first,
        first_seen=min(one.first_seen, two.first_seen),
        last_seen=last_seen,
        latest=(latest[0], latest[1]),
        rows=tuple(rows[-ROWS_KEPT:]),
        confirmations=max(one.confirmations, two.confirmations, len(rows)) if not fresh else one.confirmations + fresh,
        hand=one.hand or two.hand,
    )


def _fresh(one: Seen, two: Seen) -> int:
    """How many rows `two` brings that `one` has not counted yet; beyond the rows kept, an older one is taken as
    counted."""
    full = len(one.rows) >= ROWS_KEPT
    return sum(1 for row in two.rows if row not in one.rows and not (full and row < one.rows[0]))


def _fact(versions: Sequence[Seen], *, slot: str, about: str) -> Fact:
    newest, past = versions[0], tuple(versions[1 : PAST_KEPT + 1])
    return Fact(slot=slot, about=about, past=past, **{name: getattr(newest, name) for name in Seen.__slots__})
