"""How much a sighting says: weak, normal, strong; how that bears on severity, and how it travels."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nitka.watch import parse
from nitka.watch.data import default
from nitka.watch.engine import step, who
from nitka.watch.lexicon import load, look
from nitka.watch.memory import Memory
from nitka.watch.normalise import clean
from nitka.watch.strength import settled
from nitka.watch.tokens import tokenise
from nitka.watch.types import Sighting


def severities(*texts: str, memory: Any = None) -> dict[str, str]:
    """The last severity of each rule, everything said by one speaker; the memory goes through JSON in between."""
    found: dict[str, str] = {}
    for text in texts:
        parsed = parse(text, language="en", settings={"speaker": "a"}, memory=memory)
        memory = json.loads(json.dumps(parsed.memory))
        found |= {alert.rule: alert.severity for alert in parsed.result.alerts}
    return found


def strength(text: str, flag: str) -> int:
    noticed = step(default(), text, ("en",), Memory(), who("a"))
    return max((s.strength for s in noticed.sightings if s.flag == flag), default=0)


def test_everyday_words_are_weak_and_the_core_of_a_request_is_not():
    assert strength("let's meet on saturday", "ask_meet") == 1
    assert strength("don't tell your mum", "secrecy_request") == 2
    assert strength("tell me the code from the text message", "ask_code") == 3


def test_two_weak_parts_are_never_loud():
    assert severities("i'll buy you that skin", "let's meet on saturday").get("G07", "low") == "low"


def test_a_weak_part_beside_a_normal_one_is_at_most_medium():
    assert severities("don't tell your mum", "let's meet on saturday")["G02"] == "medium"


def test_a_rule_of_firm_parts_keeps_its_severity():
    assert severities("where are your parents now?", "can you turn on your camera?")["G01"] == "high"


def test_a_memory_of_the_first_version_is_still_read():
    """It has no strengths; its flags are normal."""
    old = {"flags": ["ask_guardian_whereabouts"], "x": {"v": 1, "s": "AAAABQABAA==", "l": "en"}}
    assert severities("can you turn on your camera?", memory=old)["G01"] == "high"


def test_what_somebody_calls_the_reader_tells_what_they_are_to_each_other():
    assert not severities("mum, are you home?", "turn on your camera please")


LEXICON = "@LIGHT\n/ the a your to\n@!ask_photo%\n/ send|show_*_your|holiday|the_*_photo|to\n"


@pytest.mark.parametrize(
    ("text", "concepts"),
    [
        ("send a holiday photo", ["!ask_photo"]),  # three words that tell
        ("send me your photo", ["!ask_photo?"]),  # two
        ("send me the way to", []),  # one
        ("send it. your photo", []),  # over the end of a sentence
    ],
)
def test_a_phrase_of_free_choice_counts_by_the_words_that_tell(text, concepts):
    lexicon = load([("words", LEXICON)], {})
    forms = [token.form for token in tokenise(clean(text))]
    assert [phrase.concept for _, phrase, _ in look(forms, lexicon).phrases] == concepts


THIN = "@LIGHT\n/ to your the\n@!fee_upfront\n/ to_receive_your receive_your_prize to_unlock_the\n"


@pytest.mark.parametrize(
    ("text", "concepts"),
    [
        ("glad to receive your letter", ["!fee_upfront~"]),  # one word that tells
        ("receive your prize", ["!fee_upfront"]),  # two
    ],
)
def test_a_long_phrase_in_which_hardly_a_word_tells_is_thin(text, concepts):
    lexicon = load([("words", THIN)], {})
    forms = [token.form for token in tokenise(clean(text))]
    assert [phrase.concept for _, phrase, _ in look(forms, lexicon).phrases] == concepts


def test_a_thin_sighting_is_weak_until_another_of_its_flag_stands_beside_it():
    thin = Sighting("fee_upfront", 0, 5, 0, 0, 0)
    other = Sighting("fee_upfront", 9, 15, 0, 3, 0)
    weak = Sighting("fee_upfront", 0, 9, 0, 0, 1)
    assert [s.strength for s in settled([thin])] == [1]
    assert [s.strength for s in settled([thin, weak])] == [1, 1]
    assert [s.strength for s in settled([thin, other])] == [2, 2]
    assert max(s.strength for s in settled([thin, weak, weak])) == 2


def test_weak_words_at_three_places_are_as_good_as_one_that_says_it():
    one, two, three = (Sighting("ask_code", at, at + 3, 0, at, 1) for at in (0, 5, 10))
    assert [s.strength for s in settled([one, two])] == [1, 1]
    assert [s.strength for s in settled([one, two, two])] == [1, 1, 1]
    assert [s.strength for s in settled([one, two, three])] == [2, 2, 2]


def test_of_a_flag_that_is_usually_weak_three_places_are_not_enough():
    meets = [Sighting("ask_meet", at, at + 3, 0, at, 1) for at in (0, 5, 10)]
    assert {s.strength for s in settled(meets, usual={"ask_meet": 1})} == {1}


def test_a_strong_phrase_that_nothing_bears_out_is_normal():
    alone, other = Sighting("ask_code", 0, 9, 0, 0, 3), Sighting("ask_code", 4, 9, 0, 1, 1)
    assert [s.strength for s in settled([alone], {"ask_code"})] == [2]
    assert [s.strength for s in settled([alone])] == [3]
    assert [s.strength for s in settled([alone, other], {"ask_code"})] == [3, 1]


def test_a_part_that_rests_on_the_words_of_another_is_no_part_of_its_own():
    """The one form names an office and a number with the same three words."""
    levels = severities("fill out your name and social security number on this form")
    assert levels.get("F02", "low") == "low"


@pytest.mark.parametrize(("answer", "silent"), [("my mom says too much screen time", False), ("ok mom", True)])
def test_the_mention_of_a_parent_silences_nothing_and_their_presence_does(answer, silent):
    memory: Any = None
    rules: set[str] = set()
    for speaker, text in (
        ("a", "you are so mature for your age"),
        ("b", answer),
        ("a", "don't tell your mom what we talk about, this is our secret"),
    ):
        parsed = parse(text, language="en", settings={"speaker": speaker}, memory=memory)
        memory = json.loads(json.dumps(parsed.memory))
        rules |= {alert.rule for alert in parsed.result.alerts}
    assert ("G06" in rules) is not silent
