"""How much the words of a message say of a flag, from all the ways in which they show it.

One way proves little, whatever it is: in everyday talk, what is seen in one place only is as often nothing as not.
Several ways at several places bear each other out. So the strength that a phrase or a pattern states is only where it
begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from types import MappingProxyType

from nitka.watch.types import NORMAL, STRONG, THIN, WEAK, Sighting

_BORNE = 2  # sightings of one flag in a message beyond which a thin phrase among them counts as any other
_WAYS = 3  # places in a message that show one flag weakly, and are together as good as one that says it
_MANY = 4  # the same of a flag whose words are innocent alone


def settled(
    found: list[Sighting], doings: Set[str] = frozenset(), usual: Mapping[str, int] = MappingProxyType({})
) -> list[Sighting]:
    """Sightings by how many ways the words show their flag. Thin ones become weak, or normal where the message shows
    the flag by another thin phrase or in two more ways; weak ones at three places are as good as one that says it,
    at four if the flag is `usual`ly weak. Of `doings`, what the acting side does, a strong one that nothing else bears
    out is normal.
    """
    if len(found) == 1 and found[0].strength == NORMAL:
        return found
    ways: dict[str, list[Sighting]] = {}
    for one in found:
        ways.setdefault(one.flag, []).append(one)
    return [
        one
        for flag, shown in ways.items()
        for one in _borne_out(shown, lone_strong=flag not in doings, innocent=usual.get(flag) == WEAK)
    ]


def _borne_out(shown: list[Sighting], *, lone_strong: bool, innocent: bool) -> list[Sighting]:
    """The same sightings of one flag, as strong as they are together."""
    best = max(one.strength for one in shown)
    if len(shown) == 1 and best == STRONG and not lone_strong:
        return [shown[0]._replace(strength=NORMAL)]
    if best > WEAK and all(one.strength for one in shown):
        return shown
    thin = {(one.start, one.end) for one in shown if one.strength == THIN}
    borne = len(shown) > _BORNE or len(thin) > 1
    shown = [one if one.strength else one._replace(strength=NORMAL if borne else WEAK) for one in shown]
    if best <= WEAK and len({(one.start, one.end) for one in shown}) >= (_MANY if innocent else _WAYS):
        return [one._replace(strength=NORMAL) for one in shown]
    return shown
