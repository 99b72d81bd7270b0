"""Which present lines a few new claims replace entirely."""

from __future__ import annotations

from collections.abc import Sequence

from nitka.models.extract.judge import Claim
from nitka.types import Line, Message


def replaced_lines(lines: Sequence[Line], new: Sequence[Claim], messages: Sequence[Message]) -> set[int]:
    """Positions of lines whose every statement the new claims replace."""
    return set()
