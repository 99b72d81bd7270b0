"""Parts that leave a doubt must belong to each other: by direction, one-sidedness and nearness."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nitka.watch.combine import LOOSE, MORE_WEAK, NEAR, TWO_WEAK, Scene, matches
from nitka.watch.data import default
from nitka.watch.types import NORMAL, STRONG, WEAK, Formula, Rule, Sighting, Span

KINDS = default().kinds
PAIR = Formula((frozenset({"gift_offer"}), frozenset({"ask_photo"})))
TRIPLE = Formula((*PAIR.groups, frozenset({"ask_location"})))
AIMED = Formula((frozenset({"target_refusal"}), frozenset({"ask_photo"})))  # the target's flag and the actor's
Seen = Mapping[str, Mapping[str, Span]]


def severity(formula: Formula, seen: Seen, *, speaker: str = "any") -> str:
    """Of a rule that is extreme by itself, when speaker "a" has just asked for a photo."""
    flags = frozenset().union(*formula.groups)
    rule = Rule("T1", 1, formula, "x", (), "extreme", speaker=speaker, flags=flags, minors=False)
    here = Sighting("ask_photo", 0, 1, 0, 0)
    found = list(matches([rule], Scene(seen, {"ask_photo": (here, here)}, "a", {}, KINDS)))
    return found[0].severity if found else ""


def said(ago: int, strength: int = WEAK) -> Span:
    return Span(ago, ago, strength)


@pytest.mark.parametrize(
    ("ago", "level"), [(NEAR, "medium"), (NEAR + 1, "medium"), (LOOSE, "medium"), (LOOSE + 1, "low")]
)
def test_a_weak_part_belongs_to_a_firm_one_within_some_dozens_of_messages(ago: int, level: str) -> None:
    assert severity(PAIR, {"gift_offer": {"a": said(ago)}, "ask_photo": {"a": said(0, NORMAL)}}) == level


@pytest.mark.parametrize(("ago", "level"), [(MORE_WEAK, "medium"), (MORE_WEAK + 1, "low")])
def test_three_weak_parts_belong_together_within_two_dozen(ago: int, level: str) -> None:
    weak = {flag: {"a": said(ago)} for flag in ("gift_offer", "ask_location")}
    assert severity(TRIPLE, {**weak, "ask_photo": {"a": said(0)}}) == level


@pytest.mark.parametrize(("ago", "beside", "level"), [
    (TWO_WEAK, NORMAL, "medium"),
    (TWO_WEAK + 1, NORMAL, "low"),
    (TWO_WEAK, WEAK, "low"),
])  # fmt: skip
def test_two_weak_parts_are_lifted_by_something_firm_beside_them_and_only_when_near(
    ago: int, beside: int, level: str
) -> None:
    seen = {"gift_offer": {"a": said(ago)}, "ask_photo": {"a": said(0)}}
    crowd = {flag: {"a": said(1, beside)} for flag in ("ask_school", "ask_schedule")}
    assert severity(PAIR, {**seen, **crowd}) == level


def test_a_weak_part_that_both_sides_have_shown_does_not_count() -> None:
    mine = {"gift_offer": {"a": said(3)}, "ask_photo": {"a": said(0, NORMAL)}}
    both = {**mine, "gift_offer": {"a": said(3), "b": said(5)}}

    assert severity(PAIR, mine, speaker="same") == "medium"
    assert severity(PAIR, both, speaker="same") == "low"


@pytest.mark.parametrize("strength", [NORMAL, STRONG])
def test_what_is_firm_counts_though_both_sides_have_shown_it(strength: int) -> None:
    seen = {"gift_offer": {"a": said(3, strength), "b": said(5)}, "ask_photo": {"a": said(0, NORMAL)}}
    assert severity(PAIR, seen, speaker="same") == "extreme"


@pytest.mark.parametrize(("who", "level"), [("b", "medium"), ("", "medium"), ("a", "low")])
def test_a_doubtful_part_of_the_target_must_come_from_the_target(who: str, level: str) -> None:
    assert severity(AIMED, {"target_refusal": {who: said(2)}, "ask_photo": {"a": said(0, NORMAL)}}) == level


def test_distance_and_direction_matter_only_where_words_leave_a_doubt() -> None:
    seen = {"target_refusal": {"a": said(NEAR, NORMAL)}, "ask_photo": {"a": said(0, NORMAL)}}
    assert severity(AIMED, seen) == "extreme"
