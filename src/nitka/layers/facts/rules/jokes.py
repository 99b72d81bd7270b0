"""What is called a joke afterwards: in the next sentence, or in a message of its own.

"Just kidding" or "delete that" as a whole message takes back what the user's message just before it taught, and brings
back what that message had replaced or taken back. Words that also answer a question ("not really", "I wish") do so only
within one message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from nitka.layers.facts.canon import name_key, value_key
from nitka.layers.facts.model import Candidate, Fact
from nitka.layers.facts.slots import is_many
from nitka.types import Message

_LEAD = (
    r"(?i)^\W*(?:(?:ну|да|ладно|ха\w*|хех|лол|haha\w*|lol|ok|nah|just|only|no|i|i[’']?m|i was|we were|that was|it was|"
    r"я|это|всё это|был[аио]?|просто|an?|all|конечно|разумеется|же|там|sorry|прости\w*|извини\w*|relax)[,.!)]*\s+)*"
)
_JOKE = (
    r"kidding|joking|joke|jk|j/k|made (?:that|it)(?: all)? up|(?:a )?lie|lying|шуч[уи]\w*|шутка|шутк[иу]|пошутил[аи]?|"
    r"прикалываюсь|прикол|розыгрыш|сарказм|вру|соврал[аи]?|выдумал[аи]?|наврал[аи]?"
)
_UNDO = (
    r"(?:please )?(?:ignore|disregard|delete|erase|scratch|strike) "
    r"(?:that|this|my (?:last|previous) (?:message|sentence)|what i (?:just )?(?:said|wrote))|"
    r"(?:удали|сотри|не учитывай|не считай)(?:те)? (?:это|то, что я (?:сказал|написал)а?|"
    r"(?:мо[её] |последнее |предыдущее )+сообщение)"
)
_NOT_SO = r"если бы|размечтал\w+|неправда|not really|not true|i wish"
_REST = (
    r"(?:,? (?:about that|there|of course|конечно|был[аио]?|про это|насч[её]т этого|же|всё|я|sorry|прости\w*|"
    r"извини\w*))*\W*$"
)
_ALONE = re.compile(rf"{_LEAD}(?:{_JOKE}|{_NOT_SO}){_REST}")
_CALLED_OFF = re.compile(rf"{_LEAD}(?:{_JOKE}|{_UNDO}){_REST}")


def called_joke(text: str) -> bool:
    """Whether the sentence does nothing but say that what stands before it is not so."""
    return _ALONE.match(text) is not None


def unsaid(
    message: Message, before: Sequence[Candidate], now: Sequence[Candidate], known: Sequence[Fact], said: int
) -> Iterator[Candidate]:
    """What the message undoes of the one before it, which is row `said`: `before` are the facts as they were before
    that row, `now` those after it, `known` those that were given with their past."""
    if _CALLED_OFF.match(message.text) is None:
        return
    quote = message.text.strip()
    taught = [fact for fact in now if fact.n == said and not _among(fact, [old for old in before if old.n != said])]
    for fact in taught:
        yield replace(fact, op="retract", statement="", quote=quote, seq=message.seq, n=message.n)
    former = [fact for fact in before if fact.n != said and not _among(fact, now)]
    former += [old for fact in known if fact.n == said and not is_many(fact.slot) for old in _past(fact)]
    for old in former:
        yield replace(old, quote=quote, seq=message.seq, n=message.n)


def _past(fact: Fact) -> list[Candidate]:
    return [
        Candidate(slot=fact.slot, value=old.value, statement=old.statement, about=fact.about, quote="", seq=-1, n=-1)
        for old in fact.past[:1]
    ]


def _among(fact: Candidate, facts: Sequence[Candidate]) -> bool:
    return any(_same(fact) == _same(other) for other in facts)


def _same(fact: Candidate) -> tuple[str, str, str]:
    return fact.slot, value_key(fact.value), name_key(fact.about)
