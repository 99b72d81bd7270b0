"""What the user has no more, in English: told without naming the fact, so that only what is known says what it takes
back.

"I don't have a dog" takes back every dog, with what is kept under its name; "sold the Volvo" that car; "got fired" the
employer and the role; "we split up" whoever is husband, wife or partner. What names nothing that is known takes back
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from nitka.layers.facts.canon import tokens
from nitka.layers.facts.model import USER, Candidate
from nitka.layers.facts.rules import engine
from nitka.layers.facts.rules.engine import Scene
from nitka.layers.facts.rules.modality import senses
from nitka.layers.facts.slots import within

_THING = (
    r"(?P<v>[\w’'-]+(?: (?!(?:any|no|at|to|and|but|for|last|this|yesterday|so|because|right|now|here|yet|either|in|on"
    r"|or|since)\b)[\w’'-]+){0,2})"
)
_WE = r"\b(?:i|we)(?:.?ve| have)?(?: (?:just|finally|recently|already|actually|now|also|sadly))*"
_NONE = re.compile(
    rf"(?i){_WE} (?:(?:don.?t|do not|no longer)(?: actually| even)?(?: have| own)(?: got)?|haven.?t got|have not got)"
    rf" (?:(?:an?|any|my|our|the|that) )?{_THING}"
    rf"|{_WE}(?: have| got| own)? no (?:more )?(?P<w>(?!idea|time|need|problem)[\w’'-]+)"
)
_SOLD = re.compile(
    rf"(?i)(?:{_WE} |^\W*|\b(?:and|then) )"
    r"(?:sold|scrapped|crashed|totalled|got rid of|gave away|traded in|returned|rehomed|gave up)"
    rf" (?:my |the |our |that |both )?{_THING}"
)
_FIRED = re.compile(
    r"(?i)\bi(?:.?ve| have|.?m| was| am| got| just)*(?: (?:been|got|just|recently|officially))* "
    r"(?:fired|sacked|laid off|made redundant|let go|unemployed|jobless|out of (?:a job|work))\b(?! up| from the gun)"
    r"|\bi(?:.?ve| have)?(?: just| recently)? (?:lost|quit|left|resigned from) my job\b"
    r"|\bi(?:.?ve| have)?(?: just| recently)? (?:resigned|quit)(?=[.,!]|$)"
)
_SPLIT = re.compile(
    r"(?i)\b(?:we|(?:\w+ and i|me and \w+))(?:.?ve| have|.?re| are| just| recently| finally)*(?: got)? "
    r"(?:divorced|split up|broke up|broken up|separated|split(?=[.,!]|$))(?!\w)"
    r"|\bi(?:.?ve| have|.?m| am| just| recently)*(?: got)? (?:divorced|single(?: again| now)?|not married|unmarried)"
    r"(?=[.,!]|$| any| now)"
    r"|\bi(?:.?ve| have)?(?: just| recently)? (?:divorced|left|split up with|broke up with|dumped) "
    r"my (?:husband|wife|partner|girlfriend|boyfriend)\b"
)
_FOOD = r"(?!(?:out|in|well|it|this|that|less|more)\b)[\w-]+(?:(?:, and |, | and )[\w-]+){0,4}"
_EATS = re.compile(
    rf"(?i)\b(?:i|we)(?:.?m|.?re| am| are|.?ve| have)?(?: now| also| started| gone| went| back| to| do)* eat(?:ing)? "
    rf"(?P<v>{_FOOD})(?=[^.!?]{{0,16}}\b(?:again|now|these days)\b)"
    rf"|\b(?:i|we) now eat (?P<w>{_FOOD})|\bnow (?:i|we) (?:do )?eat (?P<x>{_FOOD})"
    rf"|\b(?:back to|started|resumed) eating (?P<y>{_FOOD})"
)
_STOPPED = re.compile(
    rf"(?i){_WE} (?:stopped|quit|gave up|given up) "
    r"(?:(?:playing|learning|studying|doing|practi[sc]ing|collecting|going to) )?"
    rf"(?:the |my )?{_THING}"
    r"|\b(?:i|we) (?:don.?t|do not|no longer) (?:play|learn|study|do|practi[sc]e|collect|go to) (?:the |my )?"
    r"(?P<w>[\w’-]+)(?= any ?more|[.,!]|$)"
)
_LEFT = re.compile(
    r"(?i)\b(?:i|we)(?:.?ve| have)?(?: just| finally)? (?:moved (?:out of|away from)|left) (?P<v>(?-i:[A-Z])[\w’-]+)"
    r"(?=[.,!;]|$| for good| and moved| last (?:year|month|spring|summer|autumn|winter))"
)
_THERE = re.compile(r"(?i)\bi (?:don.?t|do not|no longer) work there\b")
_THERE_NOW = re.compile(r"(?i)\b(?:i|we) (?:don.?t|do not|no longer) live there\b")
_GONE = re.compile(
    r"(?i)\b(?:the|my|our) (?P<v>[\w’-]+) (?:is|has been|was|.s)(?: now| finally)? (?:gone|sold|scrapped|stolen)\b"
)
_WITHOUT = {
    "vegan": "meat fish chicken beef pork cheese dairy eggs everything",
    "vegetarian": "meat fish chicken beef pork everything",
    "veggie": "meat fish chicken beef pork everything",
    "pescatarian": "meat chicken beef pork everything",
    "pescetarian": "meat chicken beef pork everything",
}
_HEADS = ("pet", "vehicle", "device", "home.has", "allergy", "family", "person")
_GIVEN_UP = ("pet", "vehicle", "device", "home.has")
_CARS = re.compile(r"(?i)(?:bike|bicycle|scooter|motor|boat|van|truck|camper)")
_BLOCKING = engine.BLOCKING - {"temporary"}


def lost(scene: Scene, facts: Sequence[Candidate]) -> Iterator[Candidate]:
    """Retractions of the known facts that the sentence says are over."""
    for match, wanted in _said(scene):
        if senses(scene.reaches, match.start()) & _BLOCKING:
            continue
        quote = engine.quoted(scene, match.start(), match.end())
        for fact in facts:
            if fact.about == USER and fact.n != scene.message.n and _is_over(fact, match, wanted, facts):
                yield replace(fact, op="retract", statement="", quote=quote, seq=scene.message.seq, n=scene.message.n)


def _said(scene: Scene) -> Iterator[tuple[re.Match[str], tuple[str, ...]]]:
    table = (
        (_NONE, _HEADS),
        (_SOLD, _GIVEN_UP),
        (_FIRED, ("work.employer", "work.role")),
        (_SPLIT, ("family.husband", "family.wife", "family.partner", "family.status")),
        (_EATS, ("diet",)),
        (_STOPPED, ("hobby", "language.learning")),
        (_LEFT, ("home.city",)),
        (_THERE, ("work.employer",)),
        (_THERE_NOW, ("home.city",)),
        (_GONE, ("vehicle", "device")),
    )
    for pattern, heads in table:
        yield from ((match, heads) for match in pattern.finditer(scene.sentence.text))


def _is_over(fact: Candidate, match: re.Match[str], heads: tuple[str, ...], facts: Sequence[Candidate]) -> bool:
    if not any(within(fact.slot, head) for head in heads):
        return False
    groups = match.groupdict()
    if not groups:
        return fact.slot != "family.status" or fact.value.casefold() in ("married", "engaged")
    named = next((group for group in groups.values() if group), "")
    words = set(tokens(named))
    if heads == ("diet",):
        return _eaten(fact, words)
    if within(fact.slot, "pet"):  # "a dog bed" is no dog
        words = set(tokens(named)[-1:])
    if words & _words(fact):
        return True
    if "car" in words and within(fact.slot, "vehicle"):
        return _CARS.search(fact.value) is None
    return within(fact.slot, "pet") and any(words & _words(other) for other in facts if _same_pet(fact, other))


def _eaten(fact: Candidate, words: set[str]) -> bool:
    """Whether what is eaten now is what the diet forbids, or what was avoided."""
    if fact.slot == "diet":
        return bool(words & set(tokens(_WITHOUT.get(fact.value.casefold().split()[-1], ""))))
    return within(fact.slot, "diet.avoids") and bool(words & set(tokens(fact.value)))


def _words(fact: Candidate) -> set[str]:
    return set(tokens(f"{fact.value} {fact.statement} {fact.slot.replace('.', ' ')}"))


def _same_pet(one: Candidate, other: Candidate) -> bool:
    """Whether two facts speak of one animal: its naming, and what is kept under its name."""
    names = [fact.slot.split(".")[1] if "." in fact.slot else fact.value.casefold() for fact in (one, other)]
    return within(other.slot, "pet") and names[0] == names[1]
