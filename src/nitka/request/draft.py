"""A draft of a request: every candidate written out and counted once, before anything is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nitka.door import is_blank, sound
from nitka.errors import BadInput, BadText
from nitka.request.blocks import PASSAGE, SEPARATOR, fact_text, passage_text, quote, quote_lines
from nitka.request.budget import Prices, Shelf
from nitka.request.history import History, weigh
from nitka.request.labels import Labels, labels_for
from nitka.request.parts import Count, Means, Parts, Sizes, bounded
from nitka.request.traffic import Traffic, mend
from nitka.tokens import MESSAGE_TOKENS, count_message, count_tools
from nitka.types import Line, Passage

QUESTION_LEAST = 64  # tokens of a condensed question below which it would say nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The passages of one kind that say something, written out, best first; `blank` more did not."""

    label: str
    texts: Sequence[str] = ()
    rows: Sequence[tuple[int | None, int | None]] = ()  # first and last, of those that have them
    blank: int = 0
    shelf: Shelf = Shelf()

    @property
    def has_rows(self) -> bool:
        """Whether any of them comes from this session."""
        return any(first is not None for first, _ in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """All candidates as texts, counted."""

    labels: Labels
    system: str
    tools: Sequence[Mapping[str, Any]]
    tool_tokens: int
    profile: str
    lines: tuple[Line, ...]
    summary: str
    cursor: int
    question: str
    traffic: Traffic
    traffic_sizes: Sequence[int]
    history: History
    facts: Row
    recall: Row
    knowledge: Row


def draft(parts: Parts, room: int, *, means: Means, sizes: Sizes | None) -> Draft:
    """Write out and count everything. Raises `BadText` for a blank question, `BadInput` for parts that disagree."""
    check(parts)
    count = bounded(means.counter.count, room)
    labels = labels_for(parts.language, parts.question, *(row.text for row in parts.history[:-3:-1]))
    system = "" if is_blank(parts.system) else sound(parts.system)
    lines = parts.summary.lines if parts.summary else ()
    summary = summary_text(lines, labels)
    profile = quote(parts.profile)
    traffic = mend(parts.traffic, labels) if parts.traffic else Traffic()
    return Draft(
        labels=labels,
        system=system,
        tools=parts.tools,
        tool_tokens=count_tools(means.counter, parts.tools),
        profile=f"{labels.profile}\n{profile}" if profile else "",
        lines=lines,
        summary=summary,
        cursor=parts.cursor,
        question=sound(parts.question),
        traffic=traffic,
        traffic_sizes=[count_message(means.counter, message) for message in traffic.messages],
        history=weigh(parts.history, room, labels=labels, counter=means.counter, sizes=sizes),
        facts=_row(labels.facts, parts.facts, _facts(parts.facts), count=count),
        recall=_row(labels.recall, parts.recalled, _listed(parts.recalled), count=count),
        knowledge=_row(
            labels.knowledge, parts.knowledge, _numbered(parts.knowledge), count=count, left_out=labels.left_out
        ),
    )


def price(draft: Draft, count: Count, label: Count, *, condense: bool) -> Prices:
    """What each part of the draft takes. `label` counts texts of ours, which it may remember."""
    labels = draft.labels
    lead = MESSAGE_TOKENS if draft.system or draft.profile or draft.summary or draft.history.rows else 0
    system = count(draft.system) if draft.system else 0
    question = MESSAGE_TOKENS + count(draft.question)
    data = draft.facts.texts or draft.recall.texts or draft.knowledge.texts
    return Prices(
        fixed=lead + system + draft.tool_tokens + sum(draft.traffic_sizes),
        question=question,
        question_least=min(question, QUESTION_LEAST) if condense else question,
        profile=count(SEPARATOR + draft.profile) if draft.profile else 0,
        summary=count(SEPARATOR + draft.summary) if draft.summary else 0,
        summary_head=label(f"{SEPARATOR}{labels.summary}\n") if draft.summary else 0,
        history=draft.history,
        frame=MESSAGE_TOKENS + label(f"{labels.data}\n{labels.data_end}") if data else 0,
        facts=draft.facts.shelf,
        recall=draft.recall.shelf,
        knowledge=draft.knowledge.shelf,
    )


def check(parts: Parts) -> None:
    """Law 2 starts here: the rows are of `[cursor, head)`, in order, beside a summary of `[0, cursor)`."""
    if is_blank(parts.question):
        raise BadText("The question of a request is blank.")
    if parts.summary is not None and parts.summary.cursor != parts.cursor:
        raise BadInput("The summary of a request was read up to another row than its history begins at.")
    before = parts.cursor - 1
    for row in parts.history:
        if row.seq <= before:
            raise BadInput("The history of a request is not in order, or begins before the summary's cursor.")
        before = row.seq
    if before >= parts.head and parts.history:
        raise BadInput("The history of a request goes beyond the head of its session.")


def summary_text(lines: Sequence[Line], labels: Labels) -> str:
    """The summary under its label; empty when no line says anything."""
    quoted = quote_lines(line.text for line in lines)
    return f"{labels.summary}\n{quoted}" if quoted else ""


def _facts(facts: Sequence[Passage]) -> list[str]:
    return [fact_text(fact) for fact in facts]


def _listed(passages: Sequence[Passage]) -> list[str]:
    return [passage_text(PASSAGE, passage) for passage in passages]


def _numbered(passages: Sequence[Passage]) -> list[str]:
    return [passage_text(f"[{at}]", passage) for at, passage in enumerate(passages, start=1)]


def _row(label: str, passages: Sequence[Passage], texts: Sequence[str], *, count: Count, left_out: str = "") -> Row:
    """Texts that say something, each counted with the line break after it."""
    kept = [at for at, text in enumerate(texts) if text]
    if not kept:
        return Row(label=label, blank=len(texts))
    shelf = Shelf(
        head=count(label + "\n"),
        items=[count(texts[at] + "\n") for at in kept],
        tail=count(left_out.format(count=len(kept)) + "\n") if left_out else 0,
    )
    return Row(
        label=label,
        texts=[texts[at] for at in kept],
        rows=[(passages[at].first, passages[at].last) for at in kept],
        blank=len(texts) - len(kept),
        shelf=shelf,
    )
