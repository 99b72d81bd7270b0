"""The story of the seed, in its exact words: two harmless messages whose sum is an alert."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from nitka.watch import WatchError, parse, parse_json

ENGLISH = ("Where are your parents now?", "Can you turn on your camera?")
RUSSIAN = ("Где сейчас твои родители?", "Ты можешь включить камеру?")
STORIES = pytest.mark.parametrize("story", [ENGLISH, RUSSIAN], ids=["en", "ru"])


def rules(parsed) -> list[str]:
    return [alert.rule for alert in parsed.result.alerts]


@STORIES
def test_each_message_alone_is_silent(story):
    for text in story:
        assert not parse(text).result.alerts
        assert "abuse" not in parse_json({"content": text, "language": "*"})


@STORIES
def test_the_second_with_the_firsts_memory_raises_the_alert(story):
    first = parse(story[0], settings={"speaker": "a"})
    between = parse("ok", settings={"speaker": "b"}, memory=first.memory)
    second = parse(story[1], settings={"speaker": "a"}, memory=between.memory)
    assert rules(second) == ["G01"]
    (alert,) = second.result.alerts
    assert (alert.severity, alert.speaker) == ("high", "a")
    assert [(e.flag, e.messages_ago) for e in alert.evidence] == [("ask_guardian_whereabouts", 2), ("ask_camera", 0)]


def test_the_alert_explains_itself_in_both_languages():
    for story in (ENGLISH, RUSSIAN):
        memory = parse(story[0]).memory
        memory = parse("ok", memory=memory).memory
        english = parse(story[1], memory=memory).result.explanations
        russian = parse(story[1], memory=memory, settings={"explanation_language": "ru"}).result.explanations
        assert english == ("asked where the parents are, 2 messages ago; now asks for the camera",)
        assert russian == ("спрашивали, где родители, 2 сообщения назад; сейчас просят включить камеру",)


@STORIES
def test_it_works_across_processes(story):
    """Each message is read by a process of its own; only JSON travels."""
    script = (
        "import json, sys; from nitka.watch import parse_json;"
        "print(json.dumps(parse_json(json.loads(sys.stdin.buffer.read()))))"
    )
    memory: Any = None
    abuse: Any = None
    for text in story:
        body = {"language": "*", "content": text, "settings": {"state": True, "memory": memory}}
        run = subprocess.run(
            [sys.executable, "-c", script], input=json.dumps(body).encode(), capture_output=True, check=True
        )
        answer = json.loads(run.stdout)
        memory, abuse = answer["memory"], answer.get("abuse")
        assert not run.stderr
    assert [entry["rule"] for entry in abuse] == ["G01"]


@STORIES
def test_it_works_for_a_client_that_keeps_only_what_the_seed_names(story):
    """`x` stripped between all messages, and no speaker."""
    memory = None
    for text in (story[0], "ok", story[1]):
        parsed = parse(text, memory=memory)
        memory = {key: parsed.memory[key] for key in ("flags", "antecedents", "assign")}
    assert rules(parsed) == ["G01"]


@STORIES
def test_both_sentences_in_one_message(story):
    assert rules(parse(" ".join(story))) == ["G01"]
    assert not rules(parse(" ".join(reversed(story)))), "the order is required"


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_a_pronoun_between(cut):
    """ "she" is the mother of the sentence before, in the same text or in the next message."""
    texts = [
        ["I bet your mum is strict. Is she home? Cool. Now turn the camera on"],
        ["I bet your mum is strict. Is she home?", "Cool. Now turn the camera on"],
        ["I bet your mum is strict", "Is she home?", "Cool. Now turn the camera on"],
    ][cut]
    memory = None
    for text in texts:
        parsed = parse(text, language="en", memory=memory)
        memory = parsed.memory
    assert "G01" in rules(parsed)


def test_her_own_mother_is_not_asked_about():
    first = parse("I bet my mum is strict", settings={"speaker": "a"})
    second = parse("Is she home?", settings={"speaker": "a"}, memory=first.memory)
    assert "ask_guardian_whereabouts" not in second.result.flags


@STORIES
def test_a_flag_taken_out_by_the_caller_silences(story):
    memory = parse(story[0]).memory
    memory["flags"].remove("ask_guardian_whereabouts")
    assert not rules(parse(story[1], memory=memory))


@STORIES
@pytest.mark.parametrize("flag", ["work_or_class_context", "guardian_present"])
def test_a_suppressor_put_in_by_the_caller_silences(story, flag):
    memory = parse(story[0]).memory
    memory["flags"].append(flag)
    assert not rules(parse(story[1], memory=memory))


@STORIES
def test_a_flag_put_in_by_hand_raises_the_alert(story):
    assert rules(parse(story[1], memory={"flags": ["ask_guardian_whereabouts"]})) == ["G01"]


def test_codes_of_another_analyser_are_echoed():
    flags = [{"index": 36, "value": "TRPA"}, "aggressive_crime_scan", {"index": 5, "value": "ORG"}, "something_else"]
    memory = parse("hello", memory={"flags": flags}).memory
    assert sorted(map(json.dumps, memory["flags"])) == sorted(map(json.dumps, flags))


@pytest.mark.parametrize("empty", [None, {}])
def test_absent_null_and_empty_memory_are_the_same(empty):
    assert parse("hello", memory=empty) == parse("hello")
    assert parse("hello", settings={"memory": empty}) == parse("hello")


@pytest.mark.parametrize(
    ("memory", "path"),
    [
        ([], "settings.memory"),
        ({"flags": "ask_camera"}, "settings.memory.flags"),
        ({"flags": [3]}, "settings.memory.flags[0]"),
        ({"antecedents": [1]}, "settings.memory.antecedents[0]"),
        ({"assign": [{"if": {"regex": "(secretword"}}]}, "settings.memory.assign[0].if.regex"),
        ({"assign": [{"if": 3}]}, "settings.memory.assign[0].if"),
        ({"x": {"v": 2, "s": "secretword!"}}, "settings.memory.x.s"),
        ({"x": {"v": 99}}, "settings.memory.x.v"),
        ({"secretword": 1}, "settings.memory"),
    ],
)
def test_a_malformed_memory_is_named_by_its_path_and_never_quoted(memory, path):
    with pytest.raises(WatchError) as caught:
        parse("hello", memory=memory)
    assert caught.value.path == path
    assert "secretword" not in str(caught.value)


def test_a_replay_changes_nothing_and_says_so():
    settings = {"speaker": "a"}
    first = parse(ENGLISH[0], settings=settings | {"message_id": "m1"})
    second = parse(ENGLISH[1], settings=settings | {"message_id": "m2"}, memory=first.memory)
    later = parse("fine", settings={"speaker": "b", "message_id": "m3"}, memory=second.memory)
    for memory in (second.memory, later.memory):
        again = parse(ENGLISH[1], settings=settings | {"message_id": "m2"}, memory=memory)
        assert again.memory == memory
        assert [(a.rule, a.severity, a.replayed) for a in again.result.alerts] == [("G01", "high", True)]


def test_a_word_of_the_callers_own_gets_a_meaning():
    """A code word declared through `assign`, by pattern."""
    code = {"if": {"regex": "(?i)\\bwindow\\b"}, "then": {"hypernym": "camera"}}
    memory = {"flags": ["ask_guardian_whereabouts"], "assign": [code]}
    assert rules(parse("please turn on your window", memory=memory)) == ["G01"]
    assert not rules(parse("please turn on your window", memory={"flags": memory["flags"]}))
    foreign = {"if": {"regex": "a", "family": 123456}, "then": {"family": 99}}
    ignored = parse("a", memory={"assign": [foreign]}).result.ignored_settings
    assert {"memory.assign[0].if.family", "memory.assign[0].then.family"} <= set(ignored)
