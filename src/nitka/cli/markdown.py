"""An export as a person would read it: Markdown from the records of `Nitka.export`. Pure.

A text is quoted line by line, so that no heading, list or rule inside it is taken for one of ours. Times are on the
speaker's own clock where it is known, else in UTC. Records of kinds that are not known here are given as JSON: an
export leaves nothing out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from nitka.cli.texts import Texts
from nitka.door import zone_of

Record = Mapping[str, Any]


def to_markdown(records: Iterable[Record], texts: Texts) -> Iterator[str]:
    """The pieces of the document, each ending in a newline."""
    session: object = None
    for record in records:
        if not record.keys() - {"session", "damaged"}:
            session = None
            yield f"# {texts.session_damaged}\n\n"
            continue
        if "session" in record and record["session"] != session:
            session = record["session"]
            yield f"# {texts.session.format(name=_one_line(str(session)))}\n\n"
        yield _record(record, texts)


def _record(record: Record, texts: Texts) -> str:
    if record.get("damaged") and "seq" in record:
        return f"*({texts.unreadable.format(seq=record['seq'])})*\n\n"
    if "role" in record:
        return _message(record, texts)
    if record.get("damaged"):
        return f"*({texts.unreadable_made})*\n\n"
    if "summary" in record:
        return _summary(record["summary"], texts)
    if "profile" in record:
        return f"**{texts.profile}**\n\n{_quoted(record['profile'])}\n\n"
    if "fact" in record:
        return _fact(record["fact"], texts)
    rest = {name: value for name, value in record.items() if name != "session"}
    body = json.dumps(rest, ensure_ascii=False, indent=1)
    return f"**{texts.other}**\n\n{_indented(body)}\n\n"


def _message(record: Record, texts: Texts) -> str:
    speaker = texts.user if record["role"] == "user" else texts.assistant
    cut = f" *({texts.cut_off})*" if record.get("interrupted") else ""
    when = _when(record["at"], record.get("zone", ""))
    return f"**{speaker}**, {when}{cut}\n\n{_quoted(record['text'])}\n\n"


def _summary(summary: Record, texts: Texts) -> str:
    lines = [line[line.get("form", "full")] for line in summary.get("lines", ())]
    if not lines:
        return ""
    return f"**{texts.summary}**\n\n{_quoted(chr(10).join(lines))}\n\n"


def _fact(fact: Record, texts: Texts) -> str:
    """A fact with where it comes from, and its former values."""
    who = "" if fact["about"] == "user" else f"{_one_line(fact['about'])}: "
    state = "" if fact.get("current") else f" ({texts.taken_back})"
    lines = [f"**{texts.fact}**, {_source(fact, texts)}\n\n{_quoted(who + fact['statement'] + state)}"]
    lines += [_quoted(f"{past['statement']} ({texts.former}, {_source(past, texts)})") for past in fact.get("past", ())]
    quote = f"\n\n{_quoted('«' + fact['quote'] + '»')}" if fact.get("quote") else ""
    return "\n".join(lines) + quote + "\n\n"


def _source(said: Record, texts: Texts) -> str:
    where = f", {_one_line(said['session'])} {said.get('seq', '')}" if said.get("session") else f", {texts.by_hand}"
    return _when(said["last_seen"], "") + where


def _when(at: str, zone: str) -> str:
    moment = datetime.fromisoformat(at).astimezone(zone_of(zone) or UTC if zone else UTC)
    return f"{moment:%Y-%m-%d %H:%M} {zone or 'UTC'}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _one_line(text: str) -> str:
    return " ".join(text.split())
