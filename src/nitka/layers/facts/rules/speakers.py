"""Whose words stand after a label: in a pasted chat ("Alice: I live in Rome") they are somebody else's.

* A label is a speaker's when it can be a person's name or a nickname, and what follows speaks in the first person;
  "Odette: nine" is a list, "Allergies: nuts" a form, "Update: I moved" an announcement.
* The user's own known name, and "me", leave the words the user's.
* In a chat of several labelled lines the lines below a label are its speaker's too, up to the next label or a gap.
* A form ("Name: Olga") is the user's own where nothing stands above it but his own fields, a greeting, or words such
  as "my details", and every field is one that people fill in about themselves.

Russian names are told from common words by the dictionary; in English, whatever is not known to announce something
is taken for a name, because words of another must never be kept as the user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nitka.layers.facts.canon import name_key
from nitka.layers.facts.rules import russian

_LABEL = re.compile(
    r"[ \t>*•–—-]*(?P<clock>\[[^\]\n]{4,40}\],? ?|\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?: ?[ap]m)?[ ,–—-]{1,3})?"
    r"(?P<label>[A-ZА-ЯЁ][\w’'-]*(?: [A-ZА-ЯЁ][\w’'.-]*){0,2}|[a-z]+[_\d]\w*)"
    r"(?P<stamp>,? ?[\[(][^\])\n]{4,30}[\])])?(?P<colon>:(?:\s+|$))?"
)
_FIRST_PERSON = re.compile(
    r"(?i)\b(?:i|i['’]\w+|im|ive|my|me|mine|we|we['’]\w+|our|us|я|мы|мо[йяеёию]\w{0,2}|меня|мне|мной|наш\w*|нас|нам)\b"
)
_DESCRIBED = re.compile(r"(?i)\W*(?:my|our|мо[йяеё]|мои|наш\w?)(?: [\w’'-]+){1,2}\W*(?:$|[,(–—-] ?\w+\W*$)")
_WORD = re.compile("[а-яё-]+", re.I)
_ANNOUNCES = re.compile(
    r"""(?ix) (?: my|our|me|myself|the|this|a|an | i | \w+(?:tion|ment|ness|ing|ies|ences?) | q | a | p\.?s | \d+
        | updates?|edit|notes?|btw|fyi|reminder|facts?|questions?|answers?|also|summary|about|background|context|plus
        | important|urgent|warning|disclaimer|tl|tldr|story|problems?|issues?|goals?|reasons?|diet|allergy|jobs?|work
        | name|age|location|city|town|country|home|address|family|pets?|kids|children|hobby|info|details|status|results?
        | points?|steps?|ideas?|plans?|tasks?|todo|topic|subject|re|tips?|caveat|news|bonus|first|second|third|finally
        | next|last|then|now|here|yes|no|ok|okay|well|so|but|and|because|remember|profile|bio|contact|phone|email|e-mail
        | budget|deadline|schedule|languages?|health|medication|food|drinks?|travel|car|likes|dislikes|favou?rites?
        | today|tomorrow|tonight|yesterday|\w+day|weekdays|weekends?|mornings?|evenings?|january|february|march|july
        | september|october|november|december|hi|hello|hey|thanks|please|sorry|system|assistant|user )
    """
)

_FIELD = re.compile(r"[^\w\n]*(?P<label>[^\W\d_][\w ’'./-]{1,30}?)(?: ?[:—–=] ?| - )\S")
_PERSONAL = re.compile(
    r"""(?ix) (?:(?:my|full|first|given|last|family|middle|home|current|job|marital|postal|phone|mobile|e-?mail)[ ])*
    (?:name|surname|patronymic|age|gender|sex|pronouns|birthday|birth[ ]?date|date[ ]of[ ]birth|d\.?o\.?b\.?|born
      |city|town|location|place[ ]of[ ](?:residence|birth|work)|lives?[ ]in|based[ ]in|country|nationality|address
      |post(?:al)?[ ]?code|zip(?:[ ]code)?|occupation|profession|job|title|position|employer|company|workplace|phone
      |mobile|cell|tel|number|e-?mail|status|height|weight|diet|allerg(?:y|ies)|hobby|hobbies|interests|languages?
      |education|time[ ]?zone|budget|likes|dislikes|question|request|problem)
    | (?:(?:мо[йяёеи]|полное|полных|семейное|контактный|электронная|почтовый)[ ])*
    (?:имя(?:[ ]и[ ]фамилия)?|фамилия|отчество|ф\.?и\.?о\.?|возраст|лет|пол|дата[ ]рождения|день[ ]рождения|город
      |город[ ]проживания|место[ ](?:жительства|рождения|работы)|населённый[ ]пункт|живу|проживаю|страна|адрес|индекс
      |профессия|специальность|должность|род[ ]занятий|работодатель|компания|телефон|моб\.?|тел\.?|номер[ ]телефона
      |почта|эл\.[ ]?почта|e-?mail|мейл|имейл|положение|рост|вес|диета|аллерги[яи]|хобби|увлечения|интересы|языки?
      |образование|часовой[ ]пояс|бюджет|вопрос|просьба|проблема)"""
)
_INTRODUCED = re.compile(
    r"""(?ix) \W*(?:(?:hi|hello|hey|sure|ok|okay|yes|so|привет|здравствуйте|добрый[ ]день|да|вот)\b\W*)*
    (?:[^:\n]{0,30}\b(?:my[ ](?:own[ ])?(?:details|info\w*|data|profile|form|bio|contacts?|application)|about[ ]me
      |мо(?:и|я|й)[ ](?:данные|анкета|профиль|контакты)|(?:обо|про)[ ]мне|меня|о[ ]себе)\b[^:\n]{0,20})?\W*"""
)


@dataclass(frozen=True, slots=True)
class _Label:
    length: int  # of the label with what stands around it
    mine: bool
    speaks: bool  # what follows is somebody's speech for certain
    alone: bool  # it stands above the words


def others(text: str, own: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The stretches of the text that are another speaker's; `own` are the user's known names."""
    lines = [(start, end, _label(text[start:end], own)) for start, end in _lines(text)]
    labels = [label for _, _, label in lines if label is not None and not label.mine]
    speaks = any(label.speaks for label in labels)
    chat = speaks and (len(labels) > 1 or any(label.alone for label in labels))
    inside = False
    for start, end, label in lines:
        if label is not None:
            inside = not label.mine
            if inside and (chat or label.speaks):
                yield start + label.length, end
        elif not text[start:end].strip():
            inside = False
        elif inside and chat:
            yield start, end


def own_form(text: str, at: int) -> bool:
    """Whether the field that stands at this place of the text belongs to a form that the user has filled in of
    himself."""
    for start, end in _lines(text):
        line = text[start:end].strip()
        field = _FIELD.match(line)
        told = _INTRODUCED.fullmatch(line) is not None or (start > at and field is None)
        if line and not told and not (field and _PERSONAL.fullmatch(field["label"])):
            return False
    return True


def _lines(text: str) -> Iterator[tuple[int, int]]:
    return ((match.start(), match.end()) for match in re.finditer(r"[^\n]*(?:\n|$)", text) if match.group())


def _label(line: str, own: Sequence[str]) -> _Label | None:
    """The label at the head of the line, if a speaker's or the user's own."""
    match = _LABEL.match(line)
    if match is None or not (match["colon"] or (match["stamp"] and match.end() == len(line.rstrip()))):
        return None
    said, rest = name_key(match["label"]), line[match.end() :]
    mine = said in ("me", "i", "я") or any(said in (name_key(name), name_key(name.split()[0])) for name in own if name)
    if not mine and not _may_be_name(match["label"]):
        return None
    stamped = match["clock"] is not None or match["stamp"] is not None
    speaks = stamped or (_in_first_person(rest) and not _DESCRIBED.match(rest))
    return _Label(match.end(), mine, speaks, stamped and not rest.strip())


def _may_be_name(label: str) -> bool:
    first = label.split()[0]
    if not _WORD.fullmatch(first):
        return _ANNOUNCES.fullmatch(first) is None
    named = any(russian.is_a(first, mark) for mark in ("Name", "Surn", "Patr"))
    return named or (len(first) > 1 and not russian.is_known(first))


def _in_first_person(text: str) -> bool:
    return _FIRST_PERSON.search(text) is not None or any(
        russian.is_a(word.group(), "1per") for word in _WORD.finditer(text)
    )
