"""Whether a sentence speaks of somebody the user has not named as anything of theirs: "Steve has", "у Игната".

What is said of such a person is nobody's fact here; above all it is not the user's, whose words it would be taken for
where a rule finds no subject.
"""

from __future__ import annotations

import re

from nitka.layers.facts.rules import russian
from nitka.layers.facts.rules.macros import expanded

_ENGLISH = re.compile(
    r"^\W*(?:(?:and|but|so|then|because|also|btw|well|yes|no|oh),? )*"
    r"(?!(?:These|Those|Some|All|Most|Many|Every|Each|Other|Another|Here|There|What|When|Where|Who|How|Why|Now|Then)\b)"
    + r"(?:{NAME}(?:['’]s)?".replace("{NAME}", expanded("{NAME}", "en"))
    + r"|(?i:the|that|this|some|a) (?:[\w’-]+ ){0,2}(?:guy|man|woman|lady|girl|boy|kid|bloke|person|colleague|student)"
    r"(?: [\w’-]+){0,4}?)(?: \w+ly| also| just| still| now| already| only)*"
    r"(?:['’]s| is| was| has| had| can| could| will| would| does| did| used| got| (?!days|times)\w{2,}s)"
    r"(?:n['’]t)?(?![\w’])"
)
_RUSSIAN = re.compile(r"^\W*(?i:(?:а|и|но|ещё|вот|кстати|у|к|зато) ){0,3}(?P<name>[А-ЯЁ][а-яё]+)(?![\w,—-])")
_OWN = re.compile(r"(?i)\b(?:i|i['’]\w+|we|we['’]\w+|my|our|me|us|я|мы|мне|нам|меня|нас|мо[йяеи]\w{0,2}|наш\w*)\b")


def strangers(before: str, rest: str = "") -> bool:
    """Whether these words, the beginning of a sentence that goes on with `rest`, have a stranger as their subject."""
    if _OWN.search(f"{before} {rest}"):
        return False
    named = _RUSSIAN.match(before)
    return _ENGLISH.match(before) is not None or (named is not None and russian.is_a(named["name"], "Name"))
