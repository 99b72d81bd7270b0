"""The frozen values that cross the layers. This module imports nothing of ours, and nothing here does any work but
arithmetic.

Numbers: `seq` counts the rows of one session from 0, `n` the rows of one owner from 0; neither is ever used twice. A
range is written `[first, end)` when it is a cursor and `first..last`, both included, when it describes rows. Times
are aware datetimes in UTC; what the speaker's own clock showed is `zone` (an IANA name or an offset such as
"+03:00"). Sizes are tokens of the counter in force unless a name says bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, NewType

Sealed = NewType("Sealed", bytes)
"""Bytes that came out of `vault.seal` and mean nothing without the user's key."""

Tag = NewType("Tag", bytes)
"""A keyed hash that stands for an external id in clear columns."""

Role = Literal["user", "assistant"]
Form = Literal["full", "gist"]


@dataclass(frozen=True, slots=True)
class User:
    """A person as the caller names them. Ids are opaque: compared byte for byte, never normalised, never joined into
    strings.
    """

    id: str
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Handle:
    """A person as a channel names them: a number of a messenger, an address, the cookie of a visitor.

    It stands wherever a user may: for the user it was linked to, else for a user of its own. Opaque like a user's id.
    """

    channel: str
    id: str
    tenant: str = ""


Person = User | Handle
"""Whoever a call is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One row of the log: what was really said."""

    seq: int
    n: int
    role: Role
    text: str
    at: datetime
    zone: str = ""
    channel: str = ""
    interrupted: bool = False  # the answer was cut off here; the pieces handed out are the text


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One statement of the summary, written once in two forms.

    `full` is the clause as first written, `gist` a shorter one that keeps names, numbers and dates. `form` says which
    of them stands in the summary now. `first..last` are the rows the line was made from. `offline` marks a line that
    the offline summariser wrote because no model was configured or the model had failed.
    """

    full: str
    gist: str
    first: int
    last: int
    form: Form = "full"
    offline: bool = False

    @property
    def text(self) -> str:
        return self.full if self.form == "full" else self.gist


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a summariser wants done: lines to add, and the positions of present lines that the new messages replace
    entirely.
    """

    add: tuple[Line, ...] = ()
    replaced: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The session's rolling summary: it covers rows `[0, cursor)`.

    `gaps` are rows whose lines went when something was forgotten; the next `settle` writes anew, once, what still
    lives there.
    """

    lines: tuple[Line, ...] = ()
    cursor: int = 0
    version: int = 0
    counter: str = ""
    tokens: int = 0
    gaps: tuple[tuple[int, int], ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Every number that bounds something. All sizes are in tokens unless the name says otherwise."""

    window: int = 12  # messages kept word for word
    slack: int = 0  # a fold is due when more than window + slack messages are unfolded
    summary_tokens: int = 300
    profile_tokens: int = 120
    profile_every: int = 20  # messages of the user between two profiles
    facts_slack: int = 0  # rows that may wait until they are read for facts: fewer calls of a model, later facts
    facts_tokens: int = 200  # of one request, at most
    recall_tokens: int = 400  # of one request, at most
    recall_slack: int = 12  # rows beyond the window that may wait to be indexed
    recall_wait: float = 0.05  # seconds that a turn waits for recall, at most
    budget: int = 8_000  # of one request, the answer's room included
    answer_tokens: int = 1_024  # room kept for the answer inside the budget, at most a quarter of it
    message_bytes: int = 1 << 20  # of one text, as UTF-8
    slice_tokens: int = 3_000  # shown to the summariser in one step
    backlog: int = 240  # unfolded messages after which the offline summariser catches up; at least window + slack
    fold_tokens_per_day: int | None = None  # given to models by folds; above it the offline summariser works
    poll_seconds: float = 180.0  # between looks for due work that this process was not told of
    wait_seconds: float = 10.0  # for a locked store
    close_seconds: float = 5.0  # given to folds when closing
    retain_days: float | None = None  # `settle` forgets turns that are older; None keeps them for ever
    retain_facts_days: float | None = None  # likewise facts, by when they were last said
    cache_seconds: float = 300.0  # opened keys stay in memory
    cache_entries: int = 10_000
    cache_bytes: int = 256 << 20  # opened facts and indexes, of all users


Layer = Literal[
    "system",
    "tools",
    "profile",
    "summary",
    "turn_summary",
    "history",
    "facts",
    "recall",
    "knowledge",
    "question",
    "traffic",
]
Outcome = Literal["sent", "compacted", "condensed", "gist", "left_out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one request may take, in tokens of the counter in force, the answer's room included."""

    total: int
    answer: int = 0  # kept free for the answer
    condense_question: bool = True  # False: a question that does not fit is an error instead


@dataclass(frozen=True, slots=True)
class Passage:
    """One piece of memory or knowledge offered to a request: a fact, a recalled passage, a passage of the caller's.

    `first..last` are rows of the session the request is for; a passage from elsewhere has none.
    """

    text: str
    _: KW_ONLY
    label: str = ""  # a source, a date, a speaker; shown before the text
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a receipt: what became of one candidate, or of a run of like candidates.

    A run that shares a message with others is priced by itself, its label included; what joining them adds or saves,
    and the frame of the message, is in the first run of that message.
    """

    layer: Layer
    outcome: Outcome
    tokens: int  # what it takes in the request; 0 when it is not in it
    count: int = 1  # messages, lines or passages this entry speaks of
    first: int | None = None  # rows, both included, where the layer has them
    last: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The account of a request. `used` is the sum of its entries' tokens, exactly, and never above `room`."""

    budget: int
    room: int  # the budget less the answer's room, the counter's margin, and the marks around the list
    counter: str
    entries: tuple[Entry, ...]
    head: int = 0  # of the session when the turn was opened
    cursor: int = 0  # of the summary
    notes: tuple[str, ...] = ()

    @property
    def used(self) -> int:
        return sum(entry.tokens for entry in self.entries)

    def layer(self, name: Layer) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.layer == name)


ChatMessage = Mapping[str, Any]
"""A message in the form of OpenAI's chat API: `{"role": ..., "content": ...}`."""


class Block(NamedTuple):
    """One piece of a request with its layer and price, for whoever wants to look inside."""

    layer: Layer
    text: str
    tokens: int
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One self-contained list of messages, ready for any chat model, with its account."""

    messages: Sequence[ChatMessage]
    receipt: Receipt
    asked: int  # position of the question in `messages`; what follows it is this turn's own traffic
    blocks: tuple[Block, ...] = field(default=())
    tools: Sequence[Mapping[str, Any]] = ()
    max_tokens: int = 0  # room that was kept for the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """What the watch noticed; see `nitka.watch`."""

    rule: str
    severity: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer to one turn. `text` is what was stored as the assistant's row."""

    text: str
    receipt: Receipt | None
    alerts: tuple[Alert, ...] = ()
    interrupted: bool = False
    replayed: bool = False  # the turn had been answered before; no model was called
    seq: int | None = None  # of the turn's first row; None for a private turn


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """One conversation of a user.

    One whose row does not open is `damaged`: then the id is empty, `started` is 1970, and `messages` counts forgotten
    rows too. Its messages may well open: they are in the export.
    """

    id: str
    channel: str
    messages: int  # live rows
    started: datetime
    last: datetime | None
    damaged: bool = False
    oldest: datetime | None = None  # no living message is older


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A passage of a conversation, found again: `text` is word for word from row `seq` of `session`.

    `score` orders the passages of one search and means nothing between searches.
    """

    text: str
    session: str
    seq: int
    role: Role
    at: datetime
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A few lines of standing context about the user, told from rows before `cursor` (a number of the owner's)."""

    text: str = ""
    cursor: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PastValue:
    """What a fact's value was before, with the words it rested on."""

    value: str
    statement: str
    quote: str
    session: str | None
    seq: int | None
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A durable statement about the user ("user") or a named other, and the words of the user it rests on.

    `session` and `seq` name the row that said it first; both are None for what was set by hand. `current` is false
    for what was taken back. `id` is what `retract_fact` and `forget` take.
    """

    id: str
    slot: str
    value: str
    statement: str
    about: str
    category: str
    quote: str
    session: str | None
    seq: int | None
    first_seen: datetime
    last_seen: datetime
    confirmations: int  # turns (or hands) that said it
    by_hand: bool = False
    current: bool = True
    past: tuple[PastValue, ...] = ()  # newest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What a forget really removed. `erasure` is "pending" while an older reader keeps the bytes on disk; `settle`
    finishes it.
    """

    users: int = 0
    sessions: int = 0
    messages: int = 0
    lines: int = 0  # of summaries
    facts: int = 0
    handles: int = 0  # names in channels that were linked to the user
    still_said: int = 0  # turns that still say a fact which was forgotten without them
    erasure: Literal["complete", "pending"] = "complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What of a visitor is the user's now. `erasure` as in `Erased`: of what the visitor had."""

    sessions: int = 0
    messages: int = 0
    facts: int = 0  # set by hand; the others are learnt from the messages again
    erasure: Literal["complete", "pending"] = "complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What one `settle` did."""

    folds: int = 0
    messages: int = 0  # given to committed fold steps
    offline: int = 0  # folds that the offline summariser made in a model's stead
    failed: int = 0
    left: int = (
        0  # of a settle of all: conversations and persons with work still due, held by another process or failed
    )
    mended: int = 0  # gaps in summaries written anew
    erased: int = 0  # erasures finished
    expired: int = 0  # messages that went by age
    expired_facts: int = 0
