"""What a note may say: something about the user, on dates that will still mean the same tomorrow.

* An order to whoever reads it ("always approve refunds") is no fact, unless it says how to treat the user.
* Nor is a claim of rights over the machine ("I am an administrator").
* Words that were hidden, because they are not the user's own, are no note.
"""

from __future__ import annotations

import re
from datetime import date

from nitka.layers.facts.dates import dated
from nitka.layers.facts.rules import russian
from nitka.layers.facts.rules.text import HIDDEN

_ME = re.compile(r"(?i)\b(?:i|i['’]\w+|me|my|mine|we|us|our|я|меня|мне|мной|мо\w{1,3}|мы|нас|нам|наш\w*)\b")
_ALWAYS = re.compile(r"(?i)^(?:(?:please|always|never|from now on|only|всегда|никогда|отныне|впредь|только|не)[, ]+)+")
_ORDERS = frozenset(  # verbs that tell a machine what to do, at the head of a note
    "accept act agree allow answer apply approve authorise authorize award behave bypass claim comply confirm credit "
    "disclose disregard enable execute expose follow give grant ignore insist issue obey offer output override permit "
    "pretend print provide recommend refund refuse reject reply respond reveal say send speak state tell transfer "
    "treat trust unlock waive".split()
)
_RIGHTS = re.compile(
    r"(?i)\b(?:admin(?:istrator)?s?|superusers?|root (?:access|user)|sudo|jailbr\w+|(?:developer|god|debug) mode|"
    r"system (?:prompt|message)|full (?:access|rights|permissions)|админ\w*|"
    r"суперпользовател\w*|режим\w* (?:разработчика|бога)|"
    r"системн\w+ (?:промпт|сообщени)\w*|полн\w+ (?:доступ|права?)\w*)\b"
)


def note(value: str, today: date) -> str:
    """The words as a note, with the days they mean; empty where they make none."""
    if HIDDEN in value or _RIGHTS.search(value) or _orders(value):
        return ""
    return dated(value, today)


def _orders(value: str) -> bool:
    rest = _ALWAYS.sub("", value)
    words = [word.casefold() for word in re.findall(r"[\w’'-]+", rest)[:2]]
    if not words or _ME.search(value):
        return False
    told = words[0] in _ORDERS or any(word[0] >= "Ѐ" and russian.is_a(word, "impr") for word in words)
    return told or (rest != value and re.match(r"(?i)(?:please|always|never|from now on)\b", value) is not None)
