"""LANG: memory is in the user's language, names letter for letter, and found in any script."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nitka import Limits
from nitka.testing import FakeModel
from tests.acceptance.cases.stage import Stage, beside, fact, facts_shown, known, lay, reader, tell

pytestmark = pytest.mark.anyio

ZH = "我在青禾茶业做会计，我妹妹叫林小溪。"
RU = "Я веду бухгалтерию в «Ольхе», сестру зовут Мирослава."
TR = "Adım Işıl, İzmir'de yaşıyorum; kardeşimin adı Çağrı."
TOLD = [
    fact("work.employer", "青禾茶业", "我在青禾茶业做会计", statement="在青禾茶业做会计"),
    fact("family.sister", "林小溪", "我妹妹叫林小溪", statement="妹妹叫林小溪"),
    fact("work.employer", "«Ольха»", "бухгалтерию в «Ольхе»", statement="ведёт бухгалтерию в «Ольхе»"),
    fact("family.sister", "Мирослава", "сестру зовут Мирослава", statement="сестру зовут Мирослава"),
    fact("home.city", "İzmir", "İzmir'de yaşıyorum", statement="İzmir'de yaşıyor"),
    fact("family.brother", "Çağrı", "kardeşimin adı Çağrı", statement="kardeşinin adı Çağrı"),
]


@pytest.mark.parametrize("text", [ZH, RU, TR], ids=["zh", "ru", "tr"])
async def test_la_1_facts_stay_in_the_users_language_and_names_are_exact(stage: Stage, text: str) -> None:
    """What a model is shown, what is stored, exported and given to a request has the words and names as they were
    written; and the prompt asks for that.
    """
    model = reader(*TOLD)
    wanted = [one for one in TOLD if one["quote"] in text]
    async with stage.open(fold_model=model) as nitka:
        await tell(nitka, stage.clock, text)
        facts = await nitka.facts("anna")
        assert {(one.value, one.statement, one.quote) for one in facts} == {
            (one["value"], one["statement"], one["quote"]) for one in wanted
        }
        shown = model.fold_requests["facts"][0]
        assert facts_shown(shown)["messages"][0]["text"] == text
        assert "in the user's own language and script" in shown[0]["content"]
        sent = await beside(nitka, text[:12])
        exported = str([record async for record in nitka.export("anna", what="all")])
        for one in wanted:
            assert one["statement"] in sent and one["statement"] in exported


async def test_la_1_the_rules_keep_russian_names(memory: Stage) -> None:
    """Offline too names come out in their own script, in the nominative where the language has one."""
    async with memory.open(fold_model="offline") as nitka:
        await tell(nitka, memory.clock, RU)
        assert set((await known(nitka)).values()) == {"Мирослава", "Ольха"}


TALKS = {
    "pt": "Hoje falei com a Beatriz sobre o barco e decidimos que a viagem fica para o dia {}.",
    "ja": "今日は美咲さんと話して、旅行は{}日にすることにしました。",
    "de": "Heute habe ich mit Jürgen gesprochen, und wir haben die Reise auf den {}. verschoben.",
    "tr": "Bugün Işıl ile konuştum ve yolculuğu ayın {} gününe bıraktık, bu çok iyi oldu.",
    "ru": "Сегодня мы с Мирославой решили, что поездка будет {} числа.",
}


@pytest.mark.parametrize("languages", [["pt"], ["ja"], ["de", "tr"], ["pt", "ja", "ru"]], ids="-".join)
async def test_la_2_no_fold_is_asked_for_english(memory: Stage, languages: list[str]) -> None:
    """Whatever is spoken, summaries and profiles are asked for in the language of the messages folded, the latest, and
    never in English; the instructions say so for names too.
    """
    model = FakeModel()
    limits = Limits(window=2, profile_every=2, recall_wait=30)
    async with memory.open(model=FakeModel(["ok"]), fold_model=model, limits=limits) as nitka:
        for language in languages:
            for at in range(30 // len(languages)):
                await nitka.record("anna", "s", text=TALKS[language].format(at + 1), answer=TALKS[language].format(at))
                await nitka.settle()
            last = model.fold_requests["add"][-1]
            named = json.loads(last[-1]["content"])["language"]
            assert named in (language, "that of the messages")
    assert all('"language": "en"' not in request[-1]["content"] for request in model.fold_requests["add"])
    assert "In the language given as `language`" in last[0]["content"] and "never translated" in last[0]["content"]
    assert model.fold_requests["lines"] and "in the user's language" in model.fold_requests["lines"][0][0]["content"]


@pytest.mark.parametrize("language", TALKS)
async def test_la_2_the_offline_summary_has_the_words_that_were_said(memory: Stage, language: str) -> None:
    """No word of the offline summary is in a language that was not spoken."""
    async with memory.open(fold_model="offline") as nitka:
        for at in range(20):
            await nitka.record("anna", "s", text=TALKS[language].format(at), answer=TALKS[language].format(at + 50))
        await nitka.settle()
        lines = (await nitka.summary("anna", "s")).lines
        spoken = {
            word for at in range(70) for word in TALKS[language].format(at).replace(",", " ").rstrip(".。").split()
        }
        assert lines
        for line in lines:
            words = line.full.replace(",", " ").split()
            assert sum(word.strip(".…:;。") in spoken for word in words) >= len(words) - 2, line.full


SCRIPTS = {
    "cyrillic": ("Пароль меняем раз в квартал", "пароль", "когда меняют пароли?"),
    "hangul": ("배포 점검은 월요일", "배포", "점검이 언제예요?"),
    "accents": ("Le café ouvre à 7 h", "café", "cafe"),
    "greek": ("Το καφενείο ανοίγει στις επτά", "καφενείο", "ΚΑΦΕΝΕΙΟ"),
    "arabic": ("أختي تعيش في القاهرة", "القاهرة", "القَاهِرة"),
    "hebrew": ("הספרייה נסגרת בשמונה", "הספרייה", "הַסִּפְרִיָּיה"),
    "thai": ("ฉันชอบกินข้าวผัด", "ข้าวผัด", "ข้าวผัด"),
    "hindi": ("मेरी बहन दिल्ली में रहती है", "दिल्ली", "दिल्ली में कौन?"),
    "georgian": ("ჩემი ძაღლი ეზოშია", "ძაღლი", "ძაღლი სად არის?"),
    "japanese": ("京都で自転車を買いました", "自転車", "自転車はどこで"),
}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("folded", [True, False], ids=["folded", "fresh"])
async def test_la_3_what_was_said_in_any_script_is_the_first_hit(memory: Stage, script: str, folded: bool) -> None:
    """Among messages in all the other scripts, the one that has the word comes first, in the index or before it."""
    text, *queries = SCRIPTS[script]
    async with memory.open(fold_model="offline", limits=Limits(window=2, recall_slack=0, recall_wait=30)) as nitka:
        for other, _, _ in SCRIPTS.values():
            await nitka.record("anna", "s", text=other, answer="ok")
        await lay(nitka, "anna", "s", 3)
        if folded:
            await nitka.settle()
        for query in queries:
            hits = await nitka.recall("anna", query)
            assert hits and hits[0].text == text, query
            assert text in await beside(nitka, query, session="s")


@pytest.mark.parametrize("script", SCRIPTS)
async def test_la_3_a_fact_in_any_script_is_recalled(memory: Stage, script: str) -> None:
    """Among so many facts that only those that bear on the question are given, it is, and few others are."""
    text, *queries = SCRIPTS[script]
    async with memory.open(fold_model="offline") as nitka:
        for at, (other, _, _) in enumerate(SCRIPTS.values()):
            await nitka.set_fact("anna", f"note.n{at}", other)
        for at in range(40):
            await nitka.set_fact("anna", f"note.box{at}", f"box {at} stands on shelf {at + 100}")
        for query in queries:
            sent = await beside(nitka, query)
            assert text in sent and sum(other in sent for other, _, _ in SCRIPTS.values()) <= 2


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("你好，我叫小禾，住在杭州", "你知道我住在哪里吗"),
        ("我的自行车是绿色的", "我的车是什么颜色？绿色吗"),
        ("京都に住んでいます", "どこに住んでいますか"),
        ("ผมอยู่ที่เชียงใหม่", "คุณรู้ไหมว่าผมอยู่ที่ไหน"),
    ],
    ids=["zh", "zh-2", "ja", "th"],
)
async def test_la_4_a_question_without_spaces_finds_what_it_asks_for(stage: Stage, text: str, query: str) -> None:
    """A natural question shares no word with the text, only pieces of words; it is found, and comes first."""
    fillers = ("今天天气很好", "猫は寝ています", "รถไฟออกตอนเช้า", "我喜欢喝绿茶", "hello there")
    async with stage.open(fold_model="offline", limits=Limits(window=2, recall_slack=0, recall_wait=30)) as nitka:
        await nitka.record("anna", "s", text=text, answer="ok")
        for filler in fillers:
            await nitka.record("anna", "s", text=filler, answer="ok")
        await nitka.settle()
        hits = await nitka.recall("anna", query)
        assert hits and hits[0].text == text
        assert text in await beside(nitka, query, session="s")


FORMS = {
    "composed": "I live in Zürich.",
    "decomposed": "I live in Zu\u0308rich.",
    "full width": "I live in Ｚürich.",
}


@pytest.mark.parametrize("first", FORMS)
@pytest.mark.parametrize("fold", ["offline", "model"])
async def test_la_5_one_word_in_two_unicode_forms_is_one_fact(memory: Stage, first: str, fold: str) -> None:
    """Said in each form, whichever comes first: one fact, confirmed, and found by every form of the question; the
    message is found too.
    """
    order = [FORMS[first], *(text for name, text in FORMS.items() if name != first)]
    told = [fact("home.city", text.removeprefix("I live in ").rstrip("."), text) for text in order]
    model: Any = "offline" if fold == "offline" else reader(*told)
    async with memory.open(fold_model=model) as nitka:
        await tell(nitka, memory.clock, *order)
        (home,) = await nitka.facts("anna", include_past=True)
        assert (home.confirmations, home.past) == (3, ())
        for text in order:
            question = text.replace("I live in ", "What do I do in ").replace(".", "?")
            assert home.statement in await beside(nitka, question)
            assert (await nitka.recall("anna", text))[0].text in order


async def test_la_5_digits_of_any_width_are_one_number(memory: Stage) -> None:
    """A number in full-width digits, and in words, is the number."""
    async with memory.open(fold_model="offline") as nitka:
        await tell(nitka, memory.clock, "I am ４２ years old.", "I am 42 years old.")
        (age,) = await nitka.facts("anna", include_past=True)
        assert (age.confirmations, age.past) == (2, ())
        await nitka.record("anna", "t", text="The code of the gate is １２３４", answer="ok")
        assert (await nitka.recall("anna", "1234"))[0].session == "t"
