"""Speech acts: who is to do what a verb says.

    ask     the reader is to do it          "send it", "can you send", "I need you to send", «скинешь», «надо прислать»
    tell    the reader does it              "you send it on"
    invite  whether the reader wants to     "wanna see", «хочешь покажу»
    want    the speaker wants to            "let me see", "can I see", «хочу посмотреть»
    offer   the speaker will                "I'll send", «закину»
    joint   both will                       "let's meet", «встретимся»
    do1 did1 do2 did2 q2                    what speaker or reader does, did; a question about the reader
    third pass                              somebody else does; it is done
    forbid noneed refuse cond               not to do; need not; will not; only if

English reads acts off the words before a verb, Russian mostly off its ending; both go through the same functions,
since a lexicon's forms say which kind of evidence a word carries.
"""

from __future__ import annotations

from collections.abc import Sequence

from nitka.watch.clauses import Clause, Reading
from nitka.watch.tokens import MARK, WORD

ACTS = tuple("ask tell invite want offer joint do1 did1 do2 did2 q2 third pass forbid noneed refuse cond none".split())
AFTER = "after"  # not an act: `after:flag` says that the other side has just shown that flag
FIRST = "first"  # not an act: `first:bank` says that a clause opens with it and pauses, as callers introduce themselves
_BACK = 8
_SUBJECT = frozenset({"I", "YOU", "WE", "HE", "SHE", "THEY", "SOMEBODY"})
_NEGATED = {
    "ask": "forbid",
    "tell": "forbid",
    "offer": "refuse",
    "want": "refuse",
    "joint": "refuse",
    "do1": "refuse",
    "invite": "none",
    "did1": "none",
    "did2": "none",
    "do2": "none",
    "pass": "none",
    "third": "none",
    "none": "none",
    "cond": "none",
}


def act_of(reading: Reading, clause: Clause, place: int, form: str, before: str) -> str:
    """The act of the verb at token `place` in form `form`; `before` is the act of the verb before it, for "and"
    without a subject.
    """
    if form in ("base", "ing", "past", "pastp") and reading.forms[place].isascii():
        return _english(reading, clause, place, form, before)
    return _inflected(reading, clause, place, form, before)


# Words before the verb decide.


def _english(reading: Reading, clause: Clause, place: int, form: str, before: str) -> str:
    chain = _chain(reading, clause, place)
    words = frozenset().union(*chain) if chain else frozenset()
    if clause.subordinate == "IF":
        return "cond"
    if form == "ing":
        return _ing(chain, words, clause)
    if form in ("past", "pastp"):
        return _past(words, chain)
    act = _base(reading, clause, place, chain, before)
    if "NONEED" in words:
        return "noneed"
    if "NOT" not in words:
        return act
    if "WHY" in words or (clause.question and act == "ask"):
        return "ask"
    if "HAVE" in words or "NEED" in words or "MUST" in words and "HAVE" in words:
        return "noneed"
    return _NEGATED.get(act, act)


def _chain(reading: Reading, clause: Clause, place: int) -> list[frozenset[str]]:
    """Grammar of the tokens before the verb, nearest first, back to a pause or another verb."""
    chain: list[frozenset[str]] = []
    for index in range(place - 1, max(clause.start - 1, place - 1 - _BACK), -1):
        if reading.tokens[index].kind == MARK:
            break
        found = reading.grammar[index]
        if not found and reading.verb[index] and any(hit.form for hit in reading.at[index]):
            break
        chain.append(found)
    return chain


def _ing(chain: Sequence[frozenset[str]], words: frozenset[str], clause: Clause) -> str:
    if "MIND" in words or "HOWABOUT" in words:
        return "ask"
    if "YOU" in words:
        return "q2" if clause.question else "do2"
    if "NOT" in words:
        return "none"
    return "do1" if "I" in words and "BE" in words else "third" if words & _SUBJECT else "none"


def _past(words: frozenset[str], chain: Sequence[frozenset[str]]) -> str:
    if "NOT" in words:
        return "none"
    if chain and "BE" in chain[0] and "I" not in chain[0]:
        return "pass"
    if "YOU" in words:
        return "did2"
    return "third" if words & {"HE", "SHE", "THEY", "SOMEBODY", "PERSON"} else "did1"


def _base(reading: Reading, clause: Clause, place: int, chain: Sequence[frozenset[str]], before: str) -> str:
    subject = next((i for i, found in enumerate(chain) if found & _SUBJECT), -1)
    words = frozenset().union(*chain) if chain else frozenset()
    if "LETS" in words:
        return "joint"
    if "LET" in words:
        return "want"
    if subject < 0:
        return _bare(reading, clause, place, chain, before)
    nearer = frozenset().union(*chain[:subject], chain[subject])
    farther = frozenset().union(*chain[subject + 1 :]) if subject + 1 < len(chain) else frozenset()
    if "YOU" in chain[subject]:
        return _of_reader(nearer, farther)
    if "I" in chain[subject]:
        return _of_speaker(nearer, farther)
    if "WE" in chain[subject]:
        return "joint"
    return "third"


def _of_reader(nearer: frozenset[str], farther: frozenset[str]) -> str:
    if "WANT" in nearer:
        return "invite"
    if nearer & {"MUST", "NEED", "CAN", "WILL"}:
        return "ask"
    if farther & {"CAN", "WILL", "WANT", "NEED", "LETME", "ASKING"}:
        return "ask"
    return "q2" if farther & {"DO", "BE", "HAVE", "WH"} else "tell"


def _of_speaker(nearer: frozenset[str], farther: frozenset[str]) -> str:
    if farther & {"CAN", "MAY"}:
        return "want"
    if "WANT" in nearer:
        return "want"
    if nearer & {"MUST", "NEED"}:
        return "do1"
    return "offer" if nearer & {"WILL", "CAN", "TRY"} else "do1"


def _bare(reading: Reading, clause: Clause, place: int, chain: Sequence[frozenset[str]], before: str) -> str:
    """A base form without a subject: an order, unless something makes it an infinitive or gives it another subject."""
    words = frozenset().union(*chain) if chain else frozenset()
    if "WANT" in words:
        return "invite" if clause.question else "want"
    if words & {"MUST", "NEED"}:
        return "ask" if "I" not in words else "do1"
    if words & {"CAN", "WILL", "MIND", "HOWABOUT", "TRY"}:
        return "third" if words & {"ANY", "PERSON"} or _named(chain) else "ask"
    if chain and "TO" in chain[0]:
        return (
            before if before in ("ask", "forbid") and clause.coordinated else "ask" if words & {"REMEMBER"} else "none"
        )
    if clause.coordinated and before in (
        "offer",
        "want",
        "joint",
        "invite",
        "tell",
        "forbid",
        "refuse",
        "cond",
        "third",
        "do1",
    ):
        return before
    return "ask" if _opens(reading, clause, place) else "third"


def _named(chain: Sequence[frozenset[str]]) -> bool:
    """Whether a word that could be the subject stands right before the modal: "your family will see"."""
    modal = next((i for i, found in enumerate(chain) if found & {"CAN", "WILL"}), len(chain))
    return modal + 1 < len(chain) and not chain[modal + 1]


def _opens(reading: Reading, clause: Clause, place: int) -> bool:
    """Whether nothing that could be a subject stands before the verb: fillers, politeness, one unknown word at most."""
    strange = 0
    for index in range(place - 1, clause.start - 1, -1):
        token, found = reading.tokens[index], reading.grammar[index]
        if token.kind == MARK:
            return True
        if found & {"FILLER", "PLEASE", "AND", "NOT", "DO", "NEVER", "THAT"}:
            continue
        if found & {"MY", "YOUR", "HIS", "ARTICLE", "BE", "PERSON", "IT"} or reading.forms[index].endswith("s"):
            return False
        strange += token.kind == WORD
    return strange <= 1


# The ending decides.


def _inflected(reading: Reading, clause: Clause, place: int, form: str, before: str) -> str:
    negated = _denied(reading, clause, place)
    if form == "inf":
        return _infinitive(reading, clause, place, before, negated)
    act = _ending(reading, clause, form)
    if form == "imp" and _is_past(reading, clause, place):
        return "third"
    if clause.subordinate == "IF" and act in ("ask", "q2", "tell", "do2", "did2"):
        return "cond"
    if not negated:
        return act
    if form in ("2", "2i") and clause.question:
        return "ask" if form == "2" else "q2"  # «не скинешь?» is a polite request
    return _NEGATED.get(act, act)


def _is_past(reading: Reading, clause: Clause, place: int) -> bool:
    """Whether what looks like an order is a past tense with its subject: «когда они пришли», «мы пришли»."""
    here = _in_clause(reading, clause)
    return bool(here & {"THEY", "WE"}) and any(hit.form == "pastp" for hit in reading.at[place])


def _ending(reading: Reading, clause: Clause, form: str) -> str:
    if form in ("past", "pastp"):
        return _inflected_past(reading, clause, form)
    if form == "2i":
        return "q2" if clause.question else "tell"
    if form in ("1", "1i"):
        return "offer" if form == "1" else "do1"
    return {"imp": "ask", "2": "ask", "1p": "joint", "pass": "pass", "base": "ask", "ing": "none", "x": "none"}.get(
        form, "third"
    )


def _inflected_past(reading: Reading, clause: Clause, form: str) -> str:
    here = _in_clause(reading, clause)
    if "YOU" in here and "I" not in here:
        return "ask" if "SOTHAT" in here else "did2"
    if here & {"HE", "SHE", "THEY", "SOMEBODY"} or (form == "pastp" and "WE" not in here):
        return "third"
    if clause.question and "I" not in here:
        return "did2"  # «целовался когда-нибудь?»: who asks without a subject asks about the reader
    return "did1"


def _in_clause(reading: Reading, clause: Clause) -> frozenset[str]:
    return frozenset().union(*reading.grammar[clause.start : clause.end])


def _denied(reading: Reading, clause: Clause, place: int) -> bool:
    for index in range(place - 1, max(clause.start, place - 3) - 1, -1):
        found = reading.grammar[index]
        if "NOT" in found:
            return True
        if not found & {"FILLER", "PLEASE", "WHETHER"}:
            return False
    return False


def _infinitive(reading: Reading, clause: Clause, place: int, before: str, negated: bool) -> str:
    """An infinitive takes its act from the nearest governing word of the clause, on either side."""
    governor = _governor(reading, clause, place)
    if governor is None:
        return before if clause.coordinated else "forbid" if negated else "none"
    index, hit_form, concept = governor
    act = _governed(concept, hit_form, _in_clause(reading, clause), clause)
    denied = negated or _denied(reading, clause, index)
    if concept == "NONEED" or (denied and concept in ("MUST", "NEED")):
        return "noneed" if concept == "NONEED" or act == "ask" else "none"
    if denied and act == "ask" and clause.question:
        return "ask"
    return _NEGATED.get(act, act) if denied else act


_GOVERNORS = ("CAN", "MUST", "NEED", "WANT", "WILL", "LET", "LETS", "TRY", "NONEED", "FORBIDDEN", "ASKING", "GIVEME")
_NEAR = 24  # tokens looked at for the governing word


def _governor(reading: Reading, clause: Clause, place: int) -> tuple[int, str, str] | None:
    around = range(max(clause.start, place - _NEAR), min(clause.end, place + _NEAR + 1))
    near = sorted(around, key=lambda i: (abs(i - place), i > place))
    for index in near[:_NEAR]:
        for hit in reading.at[index]:
            if hit.concept in _GOVERNORS:
                return index, hit.form, hit.concept
    return None


def _governed(concept: str, form: str, here: frozenset[str], clause: Clause) -> str:
    if concept == "FORBIDDEN":
        return "forbid"
    if concept in ("MUST", "NEED"):
        return "do1" if "I" in here and "YOU" not in here else "ask"
    if concept in ("CAN", "TRY", "WILL", "ASKING", "NONEED"):
        return _by_person(form, here, clause)
    if concept == "WANT":
        return "invite" if form in ("2", "2i") else "third" if form in ("3", "3p") else "want"
    if concept == "GIVEME":
        return "want"  # «дай посмотреть»
    return "joint"


def _by_person(form: str, here: frozenset[str], clause: Clause) -> str:
    if form in ("2", "2i", "imp"):
        return "ask"
    if form in ("1", "1i"):
        return "offer"
    if form == "x":
        return "ask" if "YOU" in here else "want"
    return "joint" if form == "1p" else "third"
