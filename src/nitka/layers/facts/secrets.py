"""What must never become a fact: passwords, PINs, one-time and door codes, seed phrases, full card numbers, numbers
of identity papers, and the answers that a bank asks for.

A card number is 13 to 19 digits that pass Luhn's check (ISO/IEC 7812-1), in figures or spelt out, with spaces and
dashes between. The others are known by the word that names them with something like a value near it; so "I forgot my
password" is no secret, "my password is plum-47" is. Keys of services are known by their shape. In a slot the word
alone is enough: whatever is filed under "wifi.password" is a password. What opens, lets in or identifies is known also
by the verb ("disarmed with 7788", "what the bank texted"): the name of the secret need not be said.
"""

from __future__ import annotations

import re

from nitka.layers.facts.numbers import NUMBER_WORD, value_of

_DIGITS = rf"(?:\d+|oh|{NUMBER_WORD})"
_RUN = re.compile(rf"(?i)(?<![\w-])(?<!\d[.,:]){_DIGITS}(?:[ ,.-]{{1,2}}{_DIGITS})*(?![\w-])(?![.,:]\d)")
_TIMES = {"double": 2, "triple": 3}
_CARD_WORD = re.compile(r"(?i)\b(?:card|карт[аыуео]\w?|visa|mastercard|мир)\b")

_NAMED = re.compile(
    r"""(?ix) \b(?:
        pass(?:word|wd|code|phrase)s? | pwd | pin(?:[ -]?code)? | cvv2? | cvc2? | otp | 2fa
        | (?:one[ -]time | verification | security | alarm | door | gate | safe | entry | access | unlock | confirmation
            | sms | lock(?:er)? | backup | recovery | authentication | authenticator | login
            | intercom | keypad | key[ ]box
        )[ ](?:pass)?(?:code|pin|combination|combo|phrase|key|number)s?
        | (?:combination|combo) | (?:seed|mnemonic)[ ](?:phrase|words?) | (?:private|api|secret)[ _-]?keys?
        | парол[ьяюие]\w* | пин(?:[ -]?код\w{0,2})? | пин-?код\w{0,2}
        | код\w{0,2}[ ](?:из|от|для|домофон|подтвержд|сейф|двер|замк|безопасн|доступ|авториз|подъезд|калитк|ворот)\w*
        | код[ -]?парол\w+ | одноразов\w+[ ]код\w* | проверочн\w+[ ]код\w*
        | кодов\w+[ ](?:слов|фраз)\w* | секретн\w+[ ](?:код|слов|фраз|вопрос|ключ)\w*
        | (?:сид|seed)[ -]?фраз\w+ | мнемоник\w* | мнемоническ\w+[ ]фраз\w+ | приватн\w+[ ]ключ\w*
    )\b (?P<rest>[^!?\n]{0,80})"""
)
_CODE = re.compile(
    r"(?i)(?:\b(?P<kind>[\w-]+)[ -])?\b(?:code|код)\b"
    r"(?! (?:товар|город|стран|регион|заказ|ошибк|купон|валют|of conduct))(?P<rest>[^!?\n]{0,60})"
)
_PUBLIC = frozenset(
    "zip post postal qr area promo dress error coupon source voucher country product tax item sort order state booking "
    "dialling dialing tracking reference discount colour color referral course module bar почтовый телефонный".split()
)
_CODE_ALONE = re.compile(r"(?i)^\s*(?:(?:now|still|just|теперь|сейчас|такой|вот)[ ])*(?:is|was|to|—|–|-|:|=|это)?\s*")
_LOCK = re.compile(  # a thing that digits open; a number that counts, measures or dates something opens nothing
    r"""(?ix) \b(?: (?:pad|combination[ ])?lock | safe | keypad | intercom | (?:burglar|house|home)[ ]alarm
        | (?:front|garage|back|building|main|street|side|office)[ ]door
        | подъезд\w{0,2} | калитк\w{1,2} | шлагбаум\w{0,2}
        | зам(?:ок|ка|ке|ком|очек|очке|ку) | сейф\w{0,2} | домофон\w{0,2} | камер\w[ ]хранения | сигнализаци\w+
    )\b (?P<rest>(?:[ ]\w+){0,5}?[ ]*[:=—–-]?[ ]*)"""
)
_UNIT = re.compile(
    r"(?ix)\s*(?:[%$€£₽°]|(?:percent|euros?|dollars?|pounds?|bucks|usd|eur|rub|kg|km|cm|mm|m|lbs?|hours?|minutes?|days?|"
    r"weeks?|months?|years?|times?|am|pm|people|items?|characters?|letters?|symbols?|digits?|lines?|files?|"
    r"руб\w*|р|евро|доллар\w*|кг|км|см|мм|м|час\w*|минут\w*|д(?:ень|ня|ней)|недел\w*|месяц\w*|год\w*|лет|раз\w*|символ\w*|"
    r"знак\w*|цифр\w*|человек|штук\w*|строк\w*|файл\w*)\b)"
)
_VALUE = re.compile(
    r"""(?ix) ^[^\S\n]*(?:\w+[ ]){0,5}? (?: [=:] | [-–—] | \bis\b | \b(?:now|это)\b | \b(?:to|на)\b )? [\s"'«]*
        (?P<value> (?=[^\s]*\d)[^\s,;]{3,} )"""
)
_PLAIN = re.compile(
    r"""(?ix) ^[^\S\n]*(?:[\w-]+[ ]?){0,6}? (?: [=:–—] | \bis\b | \bbe\b | \bэто\b | [ ]-[ ] ) [\s"'«“]*
        (?P<value>[^\s,;.]{3,})"""
)
_BARE = re.compile(  # nothing but the name of the secret, what it opens, and one word
    r"""(?ix) ^[ ](?:(?:for|to|of|on|from|от|для|к|на)[ ](?:the[ ]|my[ ]|our[ ])?[\w-]+[ ])? ["'«“]?
        (?P<value>[\w-]{3,})["'»”]?[\s.]*$"""
)
_PHRASE = re.compile(r"(?i)(?:seed|recovery|backup|mnemonic|сид|мнемо\w*)[ -](?:phrase|words?|фраз\w+)$")
_NOT_VALUES = frozenset(
    "wrong right too not the in on my our his her their "
    "weak strong lost forgotten expired old new hard easy long short asked "
    "required needed stored saved safe same different important changed reset missing secret unknown "
    "manager managers policy policies reset resets generator generators hint hints protection protected field fields "
    "change changes recovery rules requirements prompt screen strength security number numbers again please yesterday "
    "today please issue issues problem problems help "
    "неверный неправильный забыл забыла забыли потерял потеряла не слишком старый новый нужен просит сменил сменила "
    "сброшен сбросить поменял поменяла сложный простой опять снова помню знаю хранит хранить подходит "
    "устарел истек".split()
)
_MIXED = r"(?=[^\s,;.]*\d)[^\s,;.]{3,}"  # a token with digits in it, such as no word is
_PAPERS = re.compile(  # numbers of a person, by the name of the paper
    r"""(?ix) \b(?: ssn | social[ ]security(?:[ ](?:no|number))?
        | national[ ](?:id|insurance|identity)(?:[ ]\w+)? | nino
        | tax(?:payer)?[ ](?:id|identification)(?:[ ]number)? | passport | id[ ](?:card|number) | identity[ ]card | itin
        | driv(?:er['’]?s?|ing)[ ]licen[cs]e | aadhaar | снилс\w{0,2} | инн | паспорт\w{0,3} | загран\w{0,12}
        | водительск\w+[ ](?:удостоверени|прав)\w* | удостоверени\w+[ ]личности | полис\w{0,2}
        | (?:card|account)[ ]number | номер\w{0,2}[ ](?:\w+[ ])?(?:карт\w+|сч[её]та)
    )\b (?P<rest>[^!?\n]{0,60})"""
)
_PAPER_SHAPE = re.compile(r"(?<![\w-])(?:\d{3}-\d{2}-\d{4}|\d{3}-\d{3}-\d{3}[ -]\d{2})(?![\w-])")
_DATE = re.compile(r"(?<!\d)\d{1,2}[./-]\d{1,2}[./-](?:19|20)?\d\d(?!\d)|(?<!\d)(?:19|20)\d\d-\d\d-\d\d(?!\d)")
_SCALE = re.compile(r"(?i) (?:тысяч\w?|сотен|thousand|hundred)(?!\w)")
_PAPER_NUMBER = re.compile(r"(?<![\w-])(?=[A-Z0-9]*\d[A-Z0-9]*\d[A-Z0-9]*\d)[A-Z0-9]{6,}(?![\w-])")
_ENTERED = re.compile(  # what lets somebody in, by the verb
    rf"""(?ix) \b(?: (?:log|sign|get|am|gets|lets?)(?:ged|ging|ning|s)?[ ](?:\w+[ ])?(?:in|into|on)\b
        | un-?lock\w* | disarm\w*
        | opens? | opened | deactivat\w+ | logins? | вход\w* | вхожу | вхожим | захожу | заходить | войти
        | логин\w{{0,2}}
        | открыва\w+ | отпира\w+ | разблокир\w+ | отключа\w+ | снима\w+[ ]с[ ](?:охраны|сигнализации)
    )\b (?:[ ][\w'’-]+){{0,5}}? [ ](?:with|using|by|via|typing|entering|по|через|под|кодом|словом|набор\w+|на|цифрами)
    (?:[ ](?:the|my|code|word|number|digits|слову?|коду?|фразе|цифры|цифрам))* [ ]["«“]? (?P<value>{_MIXED})"""
)
_SENT = re.compile(  # digits that came by text or from a bank are a one-time code
    r"""(?ix) \b(?: texted | sms['’]?(?:ed|d)
        | (?:bank|app|google|paypal|telegram|whatsapp|apple|amazon)\b
            (?:[ ]\w+){0,2}?[ ](?:sent|gave)
        | (?:банк\w*|сбер\w*|госуслуг\w*|тинькофф|озон|приложени\w+|телеграм\w*)
            (?:[ ]\w+){0,2}?[ ](?:прислал|выслал|отправил|скинул)[аио]?
        | (?:прислал|выслал|скинул)[аио]?[ ](?:\w+[ ])?(?:банк|сбер\w*|госуслуги)
        | (?:приш[её]?л|прислал)[аио]?[ ](?:\w+[ ]){0,2}?(?:смс\w*|sms)
        | (?:смс\w*|sms)[ ](?:\w+[ ]){0,2}?(?:приш[её]?л|прислал)[аио]?
    )\b"""
)
_ANSWER = re.compile(  # words that prove who somebody is
    r"""(?ix) \b(?: (?:secret|security|code|memorable|safe|magic)[ ](?:word|answer|name|place)s?
        | (?:security|secret)[ ]question(?:[ ]answer)? | (?:mother|mum|mom)['’]?s[ ]maiden[ ]name
        | maiden[ ]name[ ]of[ ]my[ ]m\w+
        | (?:кодов|секретн|контрольн)\w+[ ](?:слов|фраз|ответ)\w* | ответ\w*[ ]на[ ](?:секретн|контрольн)\w+[ ]вопрос\w*
        | девич\w+[ ]фамили\w+[ ](?:мо\w+[ ])?(?:матери|мамы) | (?:мамин|матерн|материнск)\w*[ ]девич\w+[ ]фамили\w+
        | (?:у[ ])?(?:мамы|матери)[ ]девич\w+[ ]фамили\w+
    )\b (?:[ ](?:в|у|для|от|на|in|at|for|of|with|to)[ ](?:(?:the|my|our|мо\w+|наш\w+)[ ])?[\w'’-]+)?
    (?P<link>,?[ ]*(?:\bis\b|\bwas\b|[:=—–]|-[ ]|\bэто\b))? [ ]*["«“]?(?P<value>[\w-]{3,})"""
)
_SEED = re.compile(
    r"(?i)\b(?:seed|mnemonic|сид|сидка|recovery|wallet)\b(?: words?)?(?: \w+){0,3}?"
    r"(?: is| are|:| =| —| –| -) (?P<words>[^.!?\n]+)"
)
_KEY = re.compile(r"\b(?:sk|pk|rk|ghp|gho|xox[abp]|AKIA|eyJ)[-_A-Za-z0-9]{14,}")
_SLOT_WORDS = frozenset(
    "ssn snils снилс инн "
    "password passwords passwd passphrase passcode pwd pin pins pincode secret secrets otp cvv cvv2 cvc cvc2 "
    "token tokens "
    "credential credentials apikey api_key mnemonic seed seedphrase privatekey "
    "пароль пароли парол пин пинкод пин-код секрет секреты токен".split()
)
_SLOT_PAIRS = frozenset(
    (opened, key)
    for key in ("code", "codes", "key", "phrase", "combination", "combo", "number", "код")
    for opened in "door gate safe alarm entry access unlock lock locker security verification confirmation sms backup "
    "recovery seed api private secret intercom card credit debit домофон сейф замок дверь".split()
    if (opened, key) not in (("access", "number"), ("locker", "number"), ("door", "number"), ("gate", "number"))
) | {
    ("passport", "number"),
    ("id", "number"),
    ("maiden", "name"),
    ("secret", "word"),
    ("security", "answer"),
}


def luhn(number: str) -> bool:
    """Whether the digits of a number pass Luhn's check; separators are ignored."""
    places = [int(char) for char in number if char.isdigit()]
    doubled = (place * 2 - 9 * (place > 4) if at % 2 else place for at, place in enumerate(reversed(places)))
    return bool(places) and sum(doubled) % 10 == 0


def names_secret(slot: str) -> bool:
    """Whether a slot is named for something secret ("wifi.password"), so that no value of it may be kept."""
    parts = [part for part in re.split(r"[._ ]", slot.casefold()) if part]
    pairs = {pair for one in parts for two in parts if one != two for pair in ((one, two),)}
    return bool(_SLOT_WORDS.intersection((*parts, slot.casefold())) or _SLOT_PAIRS & pairs)


def holds_secret(text: str) -> bool:
    """Whether the text gives a secret away."""
    return (
        _KEY.search(text) is not None
        or _PAPER_SHAPE.search(text) is not None
        or any(map(_numbers, _PAPERS.finditer(text)))
        or any(map(_lets_in, _ENTERED.finditer(text)))
        or (_SENT.search(text) is not None and _digits_in(text, least=4, most=8))
        or any(map(_answers, _ANSWER.finditer(text)))
        or any(len(re.findall(r"[^\W\d_]{3,}", seed["words"])) > 5 for seed in _SEED.finditer(text))
        or _holds_card(text)
        or any(map(_gives, _NAMED.finditer(text)))
        or any(map(_codes, _CODE.finditer(text)))
        or any(_opens(match, text) for match in _LOCK.finditer(text))
    )


def _holds_card(text: str) -> bool:
    said = [_figures(match.group()) for match in _RUN.finditer(text)]
    named = _CARD_WORD.search(text) is not None
    return any(13 <= len(run) <= 19 and (luhn(run) or (named and len(run) > 14)) for run in said)


def _figures(run: str) -> str:
    """The digits of a run of figures and of numbers in words; a ten and a unit after it are one number."""
    out: list[str] = []
    room = 1  # what is less than this completes the number before it
    for word in re.split(r"[ ,.-]+", run.casefold()):
        value = 0 if word == "oh" else value_of(word)
        if word.isdigit() or value is None:
            out.append(word if word.isdigit() else "")
            room = 1
            continue
        out.append(str(int(out.pop()) + value) if 0 < value < room else str(value))
        room = 100 if value >= 100 else 10 if value >= 20 and value % 10 == 0 else 1
    return "".join(out)


def _gives(named: re.Match[str]) -> bool:
    rest = named["rest"]
    sentence = re.split(r"\.\s", rest, maxsplit=1)[0]
    if _VALUE.match(sentence) or _digits_in(sentence, least=3):
        return True
    if _PHRASE.search(named.group()[: -len(rest) or None]) and len(re.findall(r"\w{3,}", sentence)) > 3:
        return True
    return any(_is_value(match) for match in (_PLAIN.match(sentence), _BARE.match(sentence)))


def _numbers(paper: re.Match[str]) -> bool:
    """Whether the number of a paper is told; when it was given or runs out is none."""
    rest = _SCALE.sub("", _DATE.sub(" ", paper["rest"]))
    return _PAPER_NUMBER.search(rest) is not None or _digits_in(rest, least=4)


def _lets_in(entered: re.Match[str]) -> bool:
    value = entered["value"].strip("\"'«»“”!?)")
    digits = sum(map(str.isdigit, value))
    bare = value.isdigit()
    return (3 <= digits <= 8 if bare else bool(digits)) and not (
        _UNIT.match(entered.string, entered.end()) or _is_year(value) or re.fullmatch(r"\d{1,2}[:.]\d\d", value)
    )


def _answers(told: re.Match[str]) -> bool:
    """Whether the word itself is told: after "is", or as a name right after what it is called."""
    return (told["link"] is not None or told["value"][0].isupper()) and _is_value(told)


def _codes(code: re.Match[str]) -> bool:
    """Whether "the code" of nothing in particular is told; many kinds of codes are public."""
    public = (code["kind"] or "").casefold() in _PUBLIC
    return not public and _digits_in(code["rest"], least=2, after=_CODE_ALONE)


def _is_value(match: re.Match[str] | None) -> bool:
    return match is not None and match["value"].casefold() not in _NOT_VALUES


def _digits_in(text: str, *, least: int, most: int = 99, after: re.Pattern[str] | None = None) -> bool:
    """Whether the text holds a run of digits that measures nothing; `after`: only right after these words."""
    first = after.match(text) if after else None
    for run in _RUN.finditer(text):
        if first is not None and run.start() != first.end():
            return False
        if (
            least <= len(_figures(run.group())) <= most
            and not _UNIT.match(text, run.end())
            and not _is_year(_figures(run.group()))
        ):
            return True
    return False


def _is_year(run: str) -> bool:
    return re.fullmatch(r"(?:19|20)\d\d", run) is not None


def _opens(lock: re.Match[str], text: str) -> bool:
    """Whether three to eight digits stand right after a lock, or digits with a letter between."""
    if re.match(r"[\"«]?\d{1,5}[A-Za-zА-Яа-я#*]\d{2,6}\b", text[lock.end() :]):
        return True
    run = _RUN.match(text, lock.end()) or next(_RUN.finditer(text, lock.end(), lock.end() + 40), None)
    if run is None or re.search(r"[.!?,;]", text[lock.end() : run.start()]):
        return False
    before = text[lock.start() : run.start()]
    counted = re.search(
        r"(?i)\b(?:at|in|for|from|since|until|в|за|с|до|около|about|around|costs?|стоит|model|модель)\s*$", before
    )
    return 3 <= len(_figures(run.group())) <= 8 and not (counted or _UNIT.match(text[run.end() :]))
