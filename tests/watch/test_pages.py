"""The pages on the watch keep their word, and the benchmark counts as it says."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from benchmarks import watch_pages, watch_rules
from benchmarks.watch_talks import Fraud, Given, Talk, Turn, first_hit, fraud_talk, loud, right, spliced, widened
from nitka.watch import load, parse, parse_json
from nitka.watch.data import rule_book

ROOT = Path(__file__).resolve().parents[2]
PAGES = [f"docs/{name}{ru}.md" for name in ("watch", "responsible-use", "watch-rules") for ru in ("", ".ru")]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#]+)\)", page(name)):
        assert target.startswith("https://") or (ROOT / "docs" / target).exists(), target


@pytest.mark.parametrize("name", [*PAGES, "README.md", "README.ru.md"])
def test_no_page_promises_too_much(name):
    said = page(name).lower()
    assert not re.search(r"detects? grooming|stops? fraud|prevents? fraud|выявляет|обнаруживает|предотвраща", said)


def test_the_request_of_the_page_raises_the_alert():
    (request, memory) = re.findall(r"```json\n(.*?)```", page("docs/watch.md"), re.DOTALL)
    answer = parse_json(json.loads(request))
    assert [entry["rule"] for entry in answer["abuse"]] == ["G01"]
    assert parse_json({"content": "hello", "settings": {"state": True, "memory": json.loads(memory)}})["memory"][
        "flags"
    ]


@pytest.mark.parametrize("language", watch_rules.PAGES)
def test_the_list_of_rules_is_that_of_the_package(language):
    """Else: `python -m benchmarks.watch_rules`."""
    assert page(f"docs/{watch_rules.PAGES[language]}") == watch_rules.page(language, rule_book()[0])


@pytest.mark.parametrize(
    ("name", "code", "asks", "idiom"),
    [
        ("watch.md", "en", "can you send me a shottie", "wave at me live"),
        ("watch.ru.md", "ru", "скинь мне фотулечку", "покажись мне вживую"),
    ],
)
def test_the_words_of_the_page_can_be_used(tmp_path, name, code, asks, idiom):
    (words,) = re.findall(r"```text\n(.*?)```", page(f"docs/{name}"), re.DOTALL)
    (tmp_path / "languages" / code).mkdir(parents=True)
    (tmp_path / "languages" / code / "forms.txt").write_text(words, encoding="utf-8")
    own = load(tmp_path)
    for text, flag in ((asks, "ask_photo"), (idiom, "ask_camera")):
        assert flag in parse(text, language=code, watch=own).result.flags
        assert flag not in parse(text, language=code).result.flags


def test_the_request_of_the_russian_page_raises_the_alert():
    (request,) = re.findall(r"```json\n(.*?)```", page("docs/watch.ru.md"), re.DOTALL)
    (alert,) = parse_json(json.loads(request))["abuse"]
    assert alert["rule"] == "G01" and "камеру" in alert["explanation"]


def test_both_pages_on_responsible_use_have_the_same_shape():
    def shape(name: str) -> list[str]:
        text = re.sub(r"<!-- measured -->.*<!-- /measured -->", "", page(name), flags=re.DOTALL)
        return [line[:2] for line in text.splitlines() if re.match(r"#|\||\* |\d\. ", line)]

    assert shape("docs/responsible-use.md") == shape("docs/responsible-use.ru.md")


def test_error_rates_are_written_between_the_marks(tmp_path):
    for name in watch_pages.PAGES.values():
        (tmp_path / name).write_text("before\n<!-- measured -->\nold\n<!-- /measured -->\nafter\n", encoding="utf-8")
    measured = watch_pages.Measured()
    measured.written("seed", "en", (9, 10, 1, 20))
    measured.ordinary("ru", "film", 100, (3, 150, 4, 15_000))
    measured.fraud("scam_en_advance_fee", Fraud((3, 0, 20), (30, 30, 30), 1, 100))
    watch_pages.write(tmp_path, measured)
    written = (tmp_path / "responsible-use.md").read_text(encoding="utf-8")
    assert "9 / 10 (90%) | 1 / 20 (5%)" in written and "| 2.0% | 2.67 |" in written and "old" not in written
    assert written.startswith("before") and written.endswith("after\n")


TALKS = [Talk(str(n), "en", "benign", tuple(Turn("XY"[i % 2], f"{n}.{i}") for i in range(7))) for n in range(5)]


def test_splicing_keeps_whole_dialogues_length_and_two_speakers():
    one, two = (list(spliced(TALKS, 20, 3)) for _ in range(2))
    assert one == two and [len(turns) for turns in one] == [20, 20, 20]
    assert {t.speaker for turns in one for t in turns} == {"a", "b"}
    assert [t.text.partition(".")[2] for t in one[0][:7]] == list("0123456")


def test_harmless_messages_are_put_between_and_not_counted():
    wide = widened(TALKS[0].turns, TALKS[1].turns * 10, 5, "seed")
    assert len(wide) == 7 + 6 * 5
    assert [t for t in wide if t.counted] == list(TALKS[0].turns)


def test_a_hit_is_loud_of_its_kind_and_by_the_suspected_side():
    def given(at: int, severity: str, tag: str, author: str) -> Given:
        return Given(at, "F01", severity, (tag,), author)

    wrong = [given(0, "low", "scam", "scam"), given(1, "high", "grooming", "scam"), given(2, "high", "scam", "bait")]
    assert first_hit(wrong, "scam") == 0 and loud(wrong)
    assert first_hit([*wrong, given(4, "medium", "scam", "scam")], "scam") == 5


def test_prefaces_and_what_follows_an_outcome_do_not_count():
    letter = Turn("scam", "Dear friend, " + "I write to you. " * 10)
    talk = Talk("af1", "en", "scam", (Turn("scam", "This is how it went."), letter, Turn("bait", "Tell me more.")))
    assert fraud_talk(talk) == ((letter, Turn("bait", "Tell me more.")), "scam")
    told = Talk(
        "m1", "ru", "scam", (Turn("counterpart", "Привет"), Turn("system", "Всё"), Turn("counterpart", "Плати"))
    )
    assert fraud_talk(told) == ((Turn("counterpart", "Привет"),), "counterpart")


def test_lateness_costs_a_half_at_the_median_length():
    whole = Fraud((31, 31), (31, 31), 0, 10)
    assert whole.f1() == 1.0 and math.isclose(whole.weighted_f1(), 0.5)
    assert Fraud((1, 1), (31, 31), 0, 10).weighted_f1() == 1.0
    assert Fraud((0, 0), (31, 31), 3, 10).weighted_f1() == 0.0


def test_a_positive_needs_its_very_rules_and_a_negative_silence():
    alert = Given(0, "F01", "low", (), "a")
    assert right(Talk("p", "en", "", (), frozenset({"F01"})), [alert])
    assert not right(Talk("p", "en", "", (), frozenset({"F02"})), [alert])
    assert right(Talk("n", "en", "", ()), [alert]) and not right(
        Talk("n", "en", "", ()), [alert._replace(severity="high")]
    )
