"""Laws of the watch, for any conversation and any text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nitka.watch import merge, parse, parse_json
from nitka.watch.data import default, rule_book
from nitka.watch.memory import Antecedent, Memory, bounded, tag_of
from nitka.watch.types import AGE_CAP, STRONG, Span, Speaker
from nitka.watch.wire_memory import dump

BOOK, _ = rule_book()
SENTENCES = sorted({e.text for e in BOOK.examples}) + ["ok", "yes mum", "нет, не хочу", "I'm 34", "мне 12", ""]
SPEAKERS = ["a", "b", "c", None, {"id": "d", "age": 12}, {"id": "e", "role": "assistant"}, *"fghijk"]
turn = st.tuples(st.sampled_from(SPEAKERS), st.sampled_from(SENTENCES), st.sampled_from([None, "m1", "m2", "m3"]))
talk = st.lists(turn, max_size=25)


def read(turns: Any, memory: Any = None, *, cut: Callable[[Any], Any] = lambda m: m) -> tuple[list[Any], Any]:
    alerts: list[Any] = []
    for speaker, text, identity in turns:
        parsed = parse(text, settings={"speaker": speaker, "message_id": identity}, memory=memory)
        memory = cut(parsed.memory)
        alerts += parsed.result.alerts
    return alerts, memory


@given(talk)
@settings(deadline=None, max_examples=60)
def test_serialising_between_any_two_messages_changes_nothing(turns):
    assert read(turns) == read(turns, cut=lambda m: json.loads(json.dumps(m)))


@given(talk, talk)
@settings(deadline=None, max_examples=40)
def test_two_pieces_of_a_conversation_give_what_the_whole_gives(one, other):
    first, memory = read(one)
    second, memory = read(other, memory)
    assert (first + second, memory) == read(one + other)


@given(talk, talk, talk)
@settings(deadline=None, max_examples=40)
def test_joining_is_associative_commutative_and_idempotent(one, two, three):
    a, b, c = (read(turns)[1] or {} for turns in (one, two, three))
    assert merge([merge([a, b]), c]) == merge([a, merge([b, c])]) == merge([a, b, c])
    assert merge([a, b]) == merge([b, a])
    assert merge([a, a]) == merge([a]) == merge([merge([a])])


def size(memory: Any) -> int:
    return len(json.dumps(memory, separators=(",", ":")).encode())


everything = " \n".join(s for s in SENTENCES if s)
crowd = st.lists(
    st.tuples(st.integers(0, 11).map(lambda n: f"speaker {n}"), st.sampled_from([*SENTENCES, everything]), st.none()),
    max_size=40,
)


@given(crowd)
@settings(deadline=None, max_examples=25)
def test_a_memory_stays_under_two_kilobytes(turns):
    memory = None
    for number, (speaker, text, _) in enumerate(turns):
        memory = parse(text, settings={"speaker": speaker, "message_id": str(number)}, memory=memory).memory
        assert len(json.dumps(memory).encode()) < 2048


def test_thirty_flags_take_about_one_kilobyte():
    memory = {"flags": sorted(default().kinds)[:30]}
    assert size(parse("Where are your parents now?", settings={"speaker": "a"}, memory=memory).memory) < 1100


def test_the_fullest_memory_there_can_be_is_under_two_kilobytes():
    """Every flag of twelve speakers stands, every rule has fired for messages of any id; whatever is said then."""
    kinds = default().kinds
    tags = [tag_of(bytes([number, 7, 1, 0])) for number in range(12)]
    spans = {tag: Span(AGE_CAP, 0, STRONG) for tag in ["", "!", *tags]}
    ids = {number: number % 8 for number in range(12)}
    fullest = Memory(
        seen={
            flag: {who: Span(min(s.first, kinds.limits[flag][1]), 0, 3) for who, s in spans.items()} for flag in kinds
        },
        known={tag: Speaker(tag, "minor", "minor") for tag in tags},
        fired=dict.fromkeys(range(len(default().rules)), 3),
        ids=ids,
        recent=frozenset((one, rule, 3) for one in ids for rule in range(60)),
        language="ru",
        antecedents=tuple(
            Antecedent(kind, max(default().parents, key=len), "pl", "~fffff", 6) for kind in ("person", "thing")
        ),
    )
    memory: Any = dump(bounded(fullest, kinds), kinds)
    assert len(memory["flags"]) > 80
    assert size(memory) < 2048
    memory = parse(everything, settings={"speaker": "speaker 1", "message_id": "all"}, memory=memory).memory
    assert size(memory) < 2048


wild = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=300)
shady = st.lists(
    st.sampled_from(["\x00", "\ud83d", "\u0301", "\u202e", "ﷺ", "İ", "«", '"', "(", "@", "a.b", "1", "٣", "\n", "код "])
).map("".join)


@given(wild | shady, wild)
@settings(deadline=None, max_examples=300)
def test_any_text_gives_a_result_and_every_snippet_is_its_sentences(text, other):
    body = {"content": text, "settings": {"state": True, "snippets": True, "words": True, "explain": True}}
    answer = parse_json(body)
    check_snippets(answer, text)
    again = parse_json({"content": other, "settings": {"memory": answer["memory"], "snippets": True, "words": True}})
    check_snippets(again, other)


def check_snippets(answer: Any, text: str) -> None:
    sentences = {s["index"]: s for s in answer.get("sentence_list", ())}
    mentions = [m for e in answer.get("entities_summary", ()) for m in e["mentions"]]
    for entry in [*answer.get("abuse", ()), *mentions]:
        sentence = sentences[entry["sentence_index"]]
        snippet = sentence["text"][entry["offset"] : entry["offset"] + entry["length"]]
        assert snippet == entry["text"]
        start = entry["absolute_offset"]
        assert text[start : start + entry["length"]] == entry["text"]


@given(st.lists(st.sampled_from([*SENTENCES, "😀", "call +7 916 123-45-67", "4111 1111 1111 1111"]), max_size=6))
@settings(deadline=None, max_examples=80)
def test_offsets_in_utf16_units_cut_the_same_snippets(pieces):
    text = " ".join(pieces)
    answer = parse_json({"content": text, "settings": {"snippets": True, "words": True, "offset_unit": "utf16"}})
    units = text.encode("utf-16-le")
    for entry in answer.get("abuse", ()):
        start = entry["absolute_offset"] * 2
        assert units[start : start + entry["length"] * 2].decode("utf-16-le") == entry["text"]


@given(talk)
@settings(deadline=None, max_examples=40)
def test_a_finding_is_never_louder_without_its_flags(turns):
    """Taking every flag out of the memory leaves nothing of earlier messages to combine."""
    _, memory = read(turns)
    if memory:
        memory["flags"] = []
        parsed = parse("can you turn on your camera?", settings={"speaker": "a"}, memory=memory)
        assert not parsed.result.alerts
