"""TIME: instants are instants, whatever the host's zone; words like "tomorrow" are of the message's own day."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nitka import BadInput, Limits
from nitka.layers.facts.dates import resolve
from nitka.testing import FakeModel
from tests.acceptance.cases.stage import Stage, beside, fact, facts_shown, known, lay, reader

pytestmark = pytest.mark.anyio

HOSTS = ("UTC", "Asia/Tokyo", "America/Los_Angeles", "Asia/Kolkata", "Pacific/Kiritimati")
NIGHT = datetime(2026, 7, 25, 2, tzinfo=UTC)


@contextmanager
def host(zone: str) -> Iterator[None]:
    """A machine whose clock is set to this zone."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = zone
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
        time.tzset()


async def told(stage: Stage, user: str, zone: str, aware_in: Any) -> list[Any]:
    """All that is read back of one message, its facts and what a question by date finds, on a host in this zone."""
    limits = Limits(window=2, recall_slack=0, recall_wait=30)
    with host(zone):
        async with stage.open(fold_model="offline", limits=limits) as nitka:
            for day in range(-28, 29, 7):
                at = (NIGHT + timedelta(days=day)).astimezone(aware_in)
                text = "The boat was moved." if day else "I live in Leeds. The boat was moved."
                await nitka.record(user, "s", text=text, answer="ok", at=at, zone="Europe/London")
            await nitka.settle()
            (home,) = await nitka.facts(user)
            found = await nitka.recall(user, "Was the boat moved on 25 July 2026?", k=3)
            rows = [record["at"] async for record in nitka.export(user)]
            history = await nitka.history(user, "s")
            assert all(at.tzinfo is UTC for at in (home.first_seen, found[0].at, history[0].at))
            return [home.first_seen, [hit.seq for hit in found], [row.at for row in history], rows]


@pytest.mark.parametrize("zone", HOSTS)
async def test_ti_1_every_host_writes_and_reads_the_same_instants(stage: Stage, zone: str) -> None:
    """At two in the morning UTC, on hosts all round the world: times are UTC instants, and a question that names the
    day finds the message of that day, the same as on a host in UTC.
    """
    wanted = await told(stage, "anna", "UTC", UTC)
    assert wanted[0] == NIGHT and wanted[1][0] == 8, "the message of that day"
    for user, aware_in in (("a", UTC), ("b", ZoneInfo("Asia/Tokyo")), ("c", timezone(timedelta(hours=-7)))):
        assert await told(stage, user, zone, aware_in) == wanted


async def test_ti_1_the_day_shown_is_the_speakers(memory: Stage) -> None:
    """A recalled passage bears the date that the speaker's own calendar showed."""
    async with memory.open(fold_model="offline", limits=Limits(window=2, recall_slack=0, recall_wait=30)) as nitka:
        for zone, day in (("America/Los_Angeles", "2026-07-24"), ("Asia/Tokyo", "2026-07-25"), ("", "2026-07-25")):
            user = f"anna {zone}"
            await nitka.record(user, "s", text="The boat was painted.", answer="ok", at=NIGHT, zone=zone)
            await lay(nitka, user, "s", 2)
            await nitka.settle()
            assert f"{day} #0" in await beside(nitka, "What of the boat?", user=user, session="s")


IMPORTED = datetime(2024, 5, 24, 22, 50, tzinfo=UTC)  # a Friday; at 23:50 in UTC+1, and a Saturday in Riga
RELATIVE = [
    ("My wedding is tomorrow.", "+01:00", "Friday 2024-05-24 23:50", "2024-05-25"),
    ("My wedding is tomorrow.", "Europe/Riga", "Saturday 2024-05-25 01:50", "2024-05-26"),
    ("My wedding is on Friday.", "+01:00", "Friday 2024-05-24 23:50", "2024-05-31"),
    ("My wedding is on Saturday.", "+01:00", "Friday 2024-05-24 23:50", "2024-05-25"),
    ("My wedding is on Saturday.", "Europe/Riga", "Saturday 2024-05-25 01:50", "2024-06-01"),
    ("I went to the lake last week.", "", "Friday 2024-05-24 22:50", ""),
]


@pytest.mark.parametrize(("text", "zone", "shown", "day"), RELATIVE)
async def test_ti_2_an_imported_message_is_read_in_its_own_time(
    stage: Stage, text: str, zone: str, shown: str, day: str
) -> None:
    """Two years later a model is shown the speaker's own day and hour of each row, never the import's; and the offline
    reading of the same words gives the day they meant.
    """
    stage.clock.now = datetime(2026, 9, 1, 12, tzinfo=UTC)
    model = FakeModel()
    async with stage.open(fold_model=model) as nitka:
        await nitka.record("anna", "s", text=text, answer="ok", at=IMPORTED, zone=zone)
        await nitka.settle()
        rows = facts_shown(model.fold_requests["facts"][0])["messages"]
        assert [row["at"] for row in rows] == [shown, shown]
        assert "2026" not in model.fold_requests["facts"][0][-1]["content"]
    if day:
        words = text.removeprefix("My wedding is ").rstrip(".")
        found = resolve(words, date.fromisoformat(shown.split()[1]))
        assert found is not None and found.iso == day


BIRTHDAYS = [
    ("My birthday is tomorrow.", "+01:00", "05-25"),
    ("My birthday is tomorrow.", "Europe/Riga", "05-26"),
    ("My birthday is on Saturday.", "+01:00", "05-25"),
    ("У меня день рождения завтра.", "+01:00", "05-25"),
    ("У меня день рождения завтра.", "Europe/Riga", "05-26"),
    ("У меня день рождения послезавтра.", "+01:00", "05-26"),
]


@pytest.mark.parametrize(("text", "zone", "day"), BIRTHDAYS)
async def test_ti_2_the_rules_resolve_by_the_messages_own_day(stage: Stage, text: str, zone: str, day: str) -> None:
    """Offline, end to end: the date is the speaker's tomorrow, years before the import, on a host in any zone."""
    stage.clock.now = datetime(2026, 9, 1, 12, tzinfo=UTC)
    with host("Pacific/Kiritimati"):
        async with stage.open(fold_model="offline") as nitka:
            await nitka.record("anna", "s", text=text, answer="ok", at=IMPORTED, zone=zone)
            await nitka.settle()
            (value,) = (await known(nitka)).values()
            assert value.endswith(day)


NAIVE = datetime(2026, 1, 5, 9)  # noqa: DTZ001 - this is the point of it


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns"])
async def test_ti_3_a_conflict_ends_the_same_on_every_store_and_host(stage: Stage, zone: str) -> None:
    """Old and new value with times in different zones, handed in out of order and read back from the store: the later
    instant is current, on every store and host. Times without a zone are refused before anything is written.
    """
    kolkata, utc = datetime(2026, 1, 5, 14, tzinfo=ZoneInfo("Asia/Kolkata")), datetime(2026, 1, 5, 8, 45, tzinfo=UTC)
    assert utc > kolkata, "08:45 against 08:30 in UTC, though the digits say otherwise"
    with host(zone):
        async with stage.open(fold_model="offline") as nitka:
            await nitka.record("anna", "s", text="I live in Porto.", answer="ok", at=utc)
            await nitka.settle()
        async with stage.open(fold_model="offline") as nitka:
            await nitka.record("anna", "t", text="I live in Leeds.", answer="ok", at=kolkata)
            await nitka.settle()
            (home,) = await nitka.facts("anna", include_past=True)
            assert (home.value, home.last_seen, home.past[0].value, home.past[0].last_seen) == (
                "Porto",
                utc,
                "Leeds",
                kolkata,
            )
            for call in (
                lambda: nitka.record("anna", "s", text="I live in York.", answer="ok", at=NAIVE),
                lambda: nitka.set_fact("anna", "home.city", "York", at=NAIVE),
                lambda: nitka.retract_fact("anna", home.id, at=NAIVE),
            ):
                with pytest.raises(BadInput):
                    await call()
            await nitka.settle()
            assert (await known(nitka))["user", "home.city"] == "Porto"


@given(
    minutes=st.lists(st.integers(-2_000, 2_000), min_size=2, max_size=6, unique=True),
    offsets=st.lists(st.integers(-12 * 4, 14 * 4), min_size=6, max_size=6),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_ti_3_only_the_instant_decides(minutes: list[int], offsets: list[int]) -> None:
    """However the moments are written, in whatever zones and order, the latest instant's value is current and the past
    is in order of time.
    """
    stage = Stage()
    cities = [f"City{chr(65 + at)}" for at in range(len(minutes))]
    model = reader(*(fact("home.city", city, city) for city in cities))
    async with stage.open(fold_model=model) as nitka:
        for city, minute, quarter in zip(cities, minutes, offsets, strict=False):
            at = (NIGHT + timedelta(minutes=minute)).astimezone(timezone(timedelta(minutes=15 * quarter)))
            await nitka.record("anna", "s", text=f"I am at home in {city}", answer="ok", at=at)
        await nitka.settle()
        (home,) = await nitka.facts("anna", include_past=True)
        order = [city for _, city in sorted(zip(minutes, cities, strict=True), reverse=True)]
        assert [home.value, *(old.value for old in home.past)] == order


def test_the_clock_of_the_host_is_put_back() -> None:
    """The helper leaves the process as it was."""
    before = time.tzname
    with host("Asia/Tokyo"):
        assert time.tzname == ("JST", "JDT") or time.tzname[0] == "JST"
    assert time.tzname == before
