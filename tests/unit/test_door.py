"""What comes in at the door is made safe or refused, and never quoted."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.door import YEARS, as_moment, as_user, as_zone, clean_text, is_blank, zone_of
from nitka.errors import BadInput, BadText
from nitka.types import User
from nitka.vault.codec import micros, moment

LIMIT = 1000
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
# Hypothesis leaves lone surrogates out unless they are asked for.
anything = st.text(
    st.characters(codec=None, exclude_categories=()) | st.sampled_from("\0\ud83d\ude00\u200b \n"), max_size=300
)


@given(anything)
def test_what_passes_can_be_stored_and_sent_and_passes_again_unchanged(text: str) -> None:
    try:
        clean = clean_text(text, limit=LIMIT, what="message")
    except BadText as error:
        assert len(str(error)) < 150
        return
    assert "\0" not in clean
    assert 1 <= len(clean.encode("utf-8")) <= LIMIT
    assert clean_text(clean, limit=LIMIT, what="message") == clean


@given(st.text(min_size=1, max_size=300))
def test_a_sound_text_is_not_changed_at_all(text: str) -> None:
    if "\0" in text or is_blank(text) or len(text.encode()) > LIMIT:
        return
    assert clean_text(text, limit=LIMIT, what="message") == text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\0b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("a\udc00b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
        ("e\u0301", "e\u0301"),
        ("  два  пробела\n", "  два  пробела\n"),
    ],
)
def test_nul_and_lone_surrogates_are_replaced_and_the_rest_stays(text: str, clean: str) -> None:
    assert clean_text(text, limit=LIMIT, what="message") == clean


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u200b\u200d", "\ufeff", "\u00a0\u3000", "\x07"])
def test_a_text_of_which_nothing_is_seen_is_blank(text: str) -> None:
    assert is_blank(text)
    with pytest.raises(BadText, match="blank"):
        clean_text(text, limit=LIMIT, what="message")


@given(st.characters(categories=("L", "N", "P", "S")))
def test_a_single_visible_character_is_a_text(char: str) -> None:
    assert unicodedata.category(char) not in ("Cc", "Cf")
    assert clean_text(char, limit=LIMIT, what="message") == char


def test_the_limit_counts_bytes_and_is_itself_allowed() -> None:
    assert clean_text("я" * 5, limit=10, what="message") == "я" * 5
    with pytest.raises(BadText, match="12 bytes; the limit is 10") as caught:
        clean_text("я" * 6, limit=10, what="message")
    assert "я" not in str(caught.value)


@pytest.mark.parametrize("value", [None, 7, b"bytes", ["text"], User("anna")])
def test_what_is_no_string_is_refused_by_its_type(value: object) -> None:
    with pytest.raises(BadText, match=type(value).__name__):
        clean_text(value, limit=LIMIT, what="message")


def test_a_user_is_a_string_or_a_user() -> None:
    assert as_user("anna") == User("anna")
    assert as_user(User("anna", "shop")) == User("anna", "shop")
    for value in (None, 7, ("anna", "shop"), b"anna"):
        with pytest.raises(BadInput):
            as_user(value)


ZONES = ("UTC", "Europe/Moscow", "America/St_Johns", "Asia/Kathmandu", "Pacific/Kiritimati", "Pacific/Pago_Pago")


@given(st.datetimes(timezones=st.sampled_from(ZONES).map(ZoneInfo)).filter(lambda at: 1971 < at.year < 2200))
def test_a_time_is_kept_as_the_same_moment_in_utc(at: datetime) -> None:
    moment = as_moment(at, NOW)
    assert moment.tzinfo is UTC
    assert moment == at.astimezone(UTC)


def test_no_time_is_now_and_a_time_without_a_zone_is_refused() -> None:
    assert as_moment(None, NOW) == NOW
    with pytest.raises(BadInput, match="zone"):
        as_moment(datetime(2026, 1, 1), NOW)  # noqa: DTZ001  # that is the point


@pytest.mark.parametrize("zone", ["Europe/Moscow", "UTC", "+03:00", "-11:30", "+00:00", "Asia/Kathmandu"])
def test_a_zone_has_a_name_or_an_offset(zone: str) -> None:
    assert as_zone(zone, None) == zone
    assert isinstance(zone_of(zone), timezone | ZoneInfo)


@pytest.mark.parametrize(
    "zone",
    ["Mars/Olympus", "+3", "+25:00", "03:00", "+aa:bb", "../../etc/passwd", "/etc/passwd", "+03:00:00", "-0:-5", "\0"],
)
def test_what_is_no_zone_is_refused_without_being_quoted(zone: str) -> None:
    with pytest.raises(BadInput) as caught:
        as_zone(zone, None)
    assert "such as +03:00." in str(caught.value)
    assert zone not in str(caught.value).replace("+03:00", "")


@given(st.integers(-14 * 60, 14 * 60))
def test_the_zone_of_a_time_is_its_offset(minutes: int) -> None:
    at = NOW.astimezone(timezone(timedelta(minutes=minutes)))
    zone = as_zone("", at)
    if minutes == 0:
        assert zone == ""
        return
    found = zone_of(zone)
    assert found is not None
    assert found.utcoffset(at) == timedelta(minutes=minutes)


def test_no_time_has_no_zone() -> None:
    assert as_zone("", None) == ""


@given(st.datetimes(datetime(YEARS[0], 1, 2), datetime(YEARS[-1], 12, 30), timezones=st.timezones() | st.just(UTC)))  # noqa: DTZ001
def test_every_time_that_is_taken_comes_back_from_its_row(at: datetime) -> None:
    """A row whose time cannot be read would close its whole session."""
    taken = as_moment(at, NOW)
    assert taken == at.astimezone(UTC)  # a local time that a clock skipped equals none; what it stands for counts
    assert moment(micros(taken)) == taken


@pytest.mark.parametrize(("year", "hours"), [(1, 5), (YEARS[0] - 1, 0), (YEARS[-1] + 1, 0), (9999, -5)])
def test_a_time_beyond_the_years_is_refused(year: int, hours: int) -> None:
    """Beside it there must be room for "tomorrow" and "last year"."""
    edge = datetime(year, 1 if year < 2000 else 12, 1 if year < 2000 else 31, 23 if hours < 0 else 0, 30, tzinfo=UTC)
    with pytest.raises(BadInput, match="years"):
        as_moment(edge.replace(tzinfo=timezone(timedelta(hours=hours))), NOW)


@pytest.mark.parametrize("useless", ["2024", 5, 1.5, datetime(2024, 1, 1)])  # noqa: DTZ001
def test_what_is_no_moment_is_refused(useless: object) -> None:
    with pytest.raises(BadInput):
        as_moment(useless, NOW)  # type: ignore[arg-type]
