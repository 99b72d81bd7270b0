"""What must never become a fact: passwords, PINs, one-time and door codes, and full card numbers.

A card number is 13 to 19 digits (spaces and dashes allowed) that pass Luhn's check (ISO/IEC 7812-1). The others are
known by the word that names them with something like a value near it; so "I forgot my password" is no secret, "my
password is plum-47" is. Keys of services are known by their shape.
"""

from __future__ import annotations

import re

_CARD = re.compile(r"(?<![\w-])\d(?:[ -]?\d){12,18}(?![\w-])")
_NAMED = re.compile(
    r"""(?ix) \b(?:
        pass(?:word|wd|code|phrase)s? | pin(?:[ -]?code)? | cvv2? | cvc2? | otp | 2fa
        | (?:one[ -]time | verification | security | alarm | door | gate | safe | entry | access | unlock | confirmation
            | sms | lock(?:er)? | backup | recovery
        )[ ](?:pass)?(?:code|pin|combination|combo|phrase|key|number)s?
        | (?:combination|combo) | seed[ ]phrase
        | парол[ьяюие]\w* | пин(?:[ -]?код\w{0,2})?
        | код\w{0,2}[ ](?:из|от|для|домофон|подтвержд|сейф|двер|замк|безопасн)\w*
        | одноразов\w+[ ]код\w*
        | кодов\w+[ ](?:слов|фраз)\w* | секретн\w+[ ](?:код|слов|фраз|вопрос)\w*
    )\b (?P<rest>[^.!?\n]{0,60})"""
)
_VALUE = re.compile(
    r"""(?ix) ^[^\S\n]*(?:\w+[ ]){0,5}? (?: [=:] | [-–—] | \bis\b | \b(?:now|это)\b | \b(?:to|на)\b )? [\s"'«]*
        (?P<value> (?=[^\s]*\d)[^\s,;]{3,} )"""
)
_PLAIN = re.compile(
    r"""(?ix) ^[^\S\n]*(?:\w+[ ]){0,4}? (?: [=:–—] | \bis\b | [ ]-[ ] ) [\s"'«]* (?P<value>[^\s,;.]{3,})"""
)
_NOT_VALUES = frozenset(
    "wrong right too not the in on my weak strong lost forgotten expired old new hard easy long short asked "
    "required needed stored saved "
    "неверный неправильный забыл забыла не слишком старый новый нужен просит".split()
)
_KEY = re.compile(r"\b(?:sk|pk|rk|ghp|gho|xox[abp]|AKIA|eyJ)[-_A-Za-z0-9]{14,}")


def luhn(number: str) -> bool:
    """Whether the digits of a number pass Luhn's check; separators are ignored."""
    places = [int(char) for char in number if char.isdigit()]
    doubled = (place * 2 - 9 * (place > 4) if at % 2 else place for at, place in enumerate(reversed(places)))
    return bool(places) and sum(doubled) % 10 == 0


def holds_secret(text: str) -> bool:
    """Whether the text gives a secret away."""
    cards = (match.group() for match in _CARD.finditer(text))
    return any(luhn(card) for card in cards) or _KEY.search(text) is not None or any(map(_gives, _NAMED.finditer(text)))


def _gives(named: re.Match[str]) -> bool:
    rest = named["rest"]
    if _VALUE.match(rest):
        return True
    plain = _PLAIN.match(rest)
    return plain is not None and plain["value"].casefold() not in _NOT_VALUES
