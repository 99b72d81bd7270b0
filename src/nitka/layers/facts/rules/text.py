"""Cutting a message into sentences and clauses, after hiding what is not the user's own statement.

Hidden, with the same length so that positions keep: quotations, pasted passages, quoted lines of mail, code, links,
and instructions that speak to a machine ("SYSTEM: ..."). A short quoted name («Лаймпиксель») stays, because it names
a thing; a single quoted lower-case word does not, because such quotes mark irony.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from nitka.layers.facts.rules import russian, speakers

HIDDEN = "\ufffc"
MESSAGE_CHARS = 4_000
"""Of a longer message only the beginning and the end are read."""
SENTENCE_CHARS = 400

_QUOTED = re.compile(
    r"«[^«»]*»|“[^“”]*”|„[^„“”]*[“”]|\"[^\"]*\"|(?<!\w)‘[^‘’\n]{8,}’(?!\w)|(?<!\w)'[^'\n]+ [^'\n]+'(?!\w)", re.S
)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`|https?://\S+|www\.\S+", re.S)
_MAIL_LINE = re.compile(r"^[ \t]*>.*$", re.M)
_PIECE = re.compile(r"[^.!?\n]+[.!?]?")
_ADDRESSED = re.compile(
    r"(?i)\b(?:system|assistant|developer|admin|система|ассистент|админ) ?(?:prompt|message|note)? ?:[^\n]*"
    r"|\[(?P<tag>INST|SYS|SYSTEM|ADMIN|PROMPT)\].*?(?:\[/(?P=tag)\]|\Z)|<\|?[^<>\n]{1,40}\|?>",
    re.S,
)
_OVERRIDE = re.compile(  # an attempt to talk a machine out of its rules: nothing after it is the user's own word
    r"""(?ix) (?<!\bi[ ])(?<!\bwe[ ])(?<!\bto[ ])(?<!\bwho[ ])(?<!\bthey[ ])(?<!t[ ])\b(?:
        (?:ignore|disregard|forget|override|overrule|bypass|discard|neglect)[ ](?:[\w’']+[ ]){0,4}?
        (?:instructions?|rules|guidelines?|restrictions?|constraints?|polic(?:y|ies)|prompts?|directives?|programming
            |safeguards?|commands?|orders)\b
        | (?:ignore|disregard)[ ](?:[\w’']+[ ]){0,3}?(?:above|previous|prior|earlier|foregoing)\b
        | (?:new|updated)[ ](?:system[ ])?(?:instructions?|rules|prompt)[ ]?:
        | (?:про)?игнориру\w+[ ](?:[\w-]+[ ]){0,4}?
            (?:инструкци|указани|правил|ограничени|команд|промпт|запрет|установк|предыдущ|прежн|прошл|вышеска|выше)
        | (?:забудь|отмени|отбрось|сбрось|обойди|нарушь|не[ ]обращай[ ]внимани[ея][ ]на)(?:те)?[ ](?:про[ ]|о[ ]|об[ ])?
            (?:[\w-]+[ ]){0,4}?(?:инструкци|указани|правил|ограничени|команд|промпт|запрет|установк)
        | новые[ ](?:инструкции|указания|правила)[ ]?:
    )"""
)
_ORDER = re.compile(  # a piece of a sentence that gives orders to a machine
    r"""(?ix) \b(?:ignore|disregard|forget)[ ](?:all[ ]|any[ ])?(?:the[ ]|your[ ])?(?:previous|prior|above|earlier)[ ]\w
    | \b(?:игнорируй|проигнорируй|забудь)[ ](?:все[ ])?(?:предыдущие|прошлые)[ ]\w
    | \b(?:store|save|note|record|remember|memori[sz]e)\b.{0,40}\bthe[ ]user\b
    | \b(?:store|save|note|record|remember|memori[sz]e)\b.{0,20}\buser[ ](?:is|has|can|may|must|should|wants)\b
    | \b(?:запомни|сохрани|запиши|занеси)\w*\b.{0,40}\bпользовател"""
)
_PASTE_AFTER = re.compile(
    r"(?i)\b(?:this|following|below|text|letter|e-?mail|message|minutes|article|notes|draft|вот|текст|письм\w+|сообщени\w+|стать\w+|протокол\w*|"
    r"перевед\w+|провер\w+|сократ\w+|summary|summari[sz]e|translate|proofread|check)\b[^\n]{0,80}:[ \t]*\n"
)
_TASK = re.compile(  # what is to be worked on follows the colon, in the same line
    r"(?i)(?P<task>(?:^|(?<=[.!?\n] )|(?<=\n))\W*(?:please |pls |can you |could you |now "
    r"|пожалуйста,? |можешь |можете |помоги(?:те)? |надо |нужно |привет[,!] )*"
    r"(?:translate|proofread|check|correct|rewrite|rephrase|paraphrase|edit|polish|summari[sz]e|analy[sz]e|fix|spell-?check"
    r"|перев(?:еди|ести|едите)|провер(?:ь|ить|ьте)|исправ(?:ь|ить|ьте)|перепиши\w*|перефразируй\w*|сократи\w*|перескажи\w*"
    r"|отредактируй\w*|разбери\w*|проанализируй\w*)\b[^:\n.!?]{0,60}:)(?:[ \t]*\n)?[^\n]+"
)
_TALE = re.compile(  # what is to be made up, or written for somebody else, up to the end of the line
    r"(?i)(?P<task>(?<!\w)(?:напиши|сочини|придумай|составь|расскажи|написать|сочинить|придумать)(?:те)?(?!\w)[^.!?\n:]{0,40}"
    r" (?:рассказ|истори|сказк|стих|песн|сценк|диалог|роман|повест|фанфик|эссе|сценари|анекдот|поэм|монолог|реч|письм"
    r"|отзыв|пост|биографи|сочинени)\w*[^.!?\n:]{0,60}?"
    r"(?:,? (?:в котор\w+|где|как будто|будто)|,? (?:про то|о том),? как"
    r"| от (?:перв\w+ )?(?:лица|имени))(?!\w))[^\n]+"
)
_SPEAKER = re.compile(  # somebody else's words after the name of a source or of the one who says them
    r"(?im)(?P<task>^\W*(?:wikipedia|quote|lyrics?|headline|title|subject|excerpt|transcript|script|dialogue|poem|song|article"
    r"|forwarded|fwd?|пересылаю|переслано|цитирую|копирую|letter|e-?mail(?!: *\S+@)|post|tweet|comment|review"
    r"|(?:example|sample|test)(?: (?:sentence|phrase|text|message|question|answer|dialogue))?"
    r"|sentence|phrase|цитата|пример(?: (?:предложения|фразы|текста|сообщения))?|предложение"
    r"|фраза|заголовок|википедия|отрывок"
    r"|диалог|письмо|пост|твит|отзыв|стих\w*|песня|текст"
    r"|(?:(?:my |our |the |мой |моя |наш |наша )?(?:colleague|co-?worker|boss|manager|friend|neighbou?r|teacher|mother"
    r"|mum|mom|father|dad|brother|sister|son|daughter|husband|wife|aunt|uncle|grandm\w+|grandp\w+|client|customer|caller"
    r"|patient|character|hero"
    r"|коллега|начальни\w+|босс|шеф|друг|подруга|сосед\w*|учител\w*|мам\w+|пап\w+|отец|мать|брат|сестра|сын|дочь|дочка|муж|жена|т[её]тя"
    r"|дядя|бабушка|дедушка|клиент\w*|покупател\w+|пациент\w*|персонаж|герой|героиня)"
    r"(?: (?-i:[A-ZА-ЯЁ])[\w-]+)?))(?: (?:says|said|writes|wrote|to me|пишет|говорит|сказал[аи]?|мне|нам)){0,2}:)[^\n]+"
)
_UNSAID = re.compile(  # a sentence that the next one, of a word or two, denies
    r"(?i)[^.!?…\n]{1,300}[.!…]{1,9} {1,3}(?:not(?: true| so| really)?|nope|wrong|incorrect|false|untrue|"
    r"нет|неверно|неправда|не так|не правда|это (?:не так|неправда|неверно)|that.?s (?:wrong|not true|false|incorrect))"
    r"(?:[.!…)]+(?=\s|$)|\s*(?:\n|\Z))"
)
_OWN_WORD = re.compile(
    r"(?i)\b(?:i|i['’]\w+|my|me|we|our|я|мы|мой|моя|мо[её]|мои|меня|мне|мной|наш\w*|нас|нам|у меня|у нас)\b"
)
_STOP = re.compile(
    r"(?<=[.!?…])[\"»)\]]*\s+|\n+|(?<=[)(])(?<=\)\)|[:;]\)|[:;]\()\s+|(?<=\w\))\s+(?=[A-ZА-ЯЁ])|\s+(?=[:;]-?[)(])"
)
_SHORT = re.compile(
    r"(?i)\b(?:mr|mrs|ms|dr|st|prof|sr|jr|vs|etc|e\.g|i\.e|approx|no|ул|г|д|кв|им|т\.е|т\.к|т\.д|тыс|руб|стр|др)\.$"
)
_JOINT = re.compile(
    r"(?i)\s*[,;:()]\s*|\s+[-–—]+\s+|[–—]|\s+(?=(?:and|but|so|because|though|although|while|when|since|unless|until|which|who|и|а|но|да|"
    r"потому|поэтому|хотя|когда|если|чтобы|пока|зато|который|которая)\b)"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of a sentence, by positions in the message."""

    start: int
    end: int


@dataclass(frozen=True)
class Sentence:
    """One sentence of the hidden text; `start` is where it begins in the message."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def asks(self) -> bool:
        return self.text.rstrip(" )(\"'»").endswith("?")

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """The clauses, by positions in the sentence; together with their joints they cover it."""
        cuts = [0, *(match.end() for match in _JOINT.finditer(self.text)), len(self.text)]
        pairs = zip(cuts, cuts[1:], strict=False)
        return tuple(Clause(first, last) for first, last in pairs if last > first)

    def clause_at(self, place: int) -> Clause:
        return next((clause for clause in reversed(self.clauses) if clause.start <= place), self.clauses[0])


def hidden(text: str, own: Sequence[str] = ()) -> str:
    """The message with everything hidden that is not the user's own statement; the same length. `own` are the names by
    which the user is known."""
    text = _ends(text)
    for pattern in (_CODE, _MAIL_LINE):
        text = pattern.sub(_blank, text)
    text = _QUOTED.sub(lambda match: match.group() if _is_name(match.group()) else _blank(match), text)
    text = _UNSAID.sub(_blank, _ADDRESSED.sub(_blank, _without_paste(text)))
    for pattern in (_TASK, _TALE, _SPEAKER):
        text = pattern.sub(_without_rest, text)
    for start, end in speakers.others(text, own) if ":" in text or "]" in text else ():
        text = text[:start] + re.sub(r"[^\n]", HIDDEN, text[start:end]) + text[end:]
    override = _OVERRIDE.search(text)
    if override:
        text = text[: override.start()] + HIDDEN * (len(text) - override.start())
    return _PIECE.sub(lambda match: _blank(match) if _ORDER.search(match.group()) else match.group(), text)


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a hidden text. Over-long ones are cut, since nobody says one thing in so many words."""
    start = 0
    for match in [*_STOP.finditer(text), None]:
        end = len(text) if match is None else match.start()
        if match is not None and "\n" not in match.group() and _SHORT.search(text[start:end]):
            continue
        for first in range(start, end, SENTENCE_CHARS):
            piece = text[first : min(end, first + SENTENCE_CHARS)]
            if piece.strip(HIDDEN + " \t\n.,!?"):
                yield Sentence(piece, first)
        start = end if match is None else match.end()


def _ends(text: str) -> str:
    """The beginning and the end of a text that is too long to be the user's own statement throughout."""
    if len(text) <= MESSAGE_CHARS:
        return text
    half = MESSAGE_CHARS // 2
    return text[:half] + HIDDEN * (len(text) - MESSAGE_CHARS) + text[-half:]


def _blank(match: re.Match[str]) -> str:
    return HIDDEN * len(match.group())


def _without_rest(match: re.Match[str]) -> str:
    return match["task"] + HIDDEN * (len(match.group()) - len(match["task"]))


def _is_name(quoted: str) -> bool:
    """Whether a quotation is a short name; what speaks of "me" is somebody's statement."""
    inner = quoted[1:-1].strip()
    if _OWN_WORD.search(inner) or any(russian.is_a(word, "VERB", "1per") for word in inner.split()):
        return False
    short = 0 < len(inner) <= 40 and len(inner.split()) <= 4 and not re.search(r"[.!?,:;\n]", inner)
    return short and (inner[0].isupper() or inner[0].isdigit())


def _without_paste(text: str) -> str:
    """Paragraphs after "... this text:" are somebody's text, up to a short last paragraph, in which the user speaks
    again."""
    lead = _PASTE_AFTER.search(text)
    if lead is None:
        return text
    head, body = text[: lead.end()], text[lead.end() :]
    last = body.rstrip().rfind("\n\n")
    if last < 0:
        cut = len(body) if len(body) > 200 else 0
    else:
        cut = last if len(body) - last <= 240 else len(body)
    return head + HIDDEN * cut + body[cut:]
