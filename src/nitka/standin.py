"""A model, or the offline rules where it may not or cannot be asked. One rule for all folds.

A failure that may pass is raised, so that the step is tried again, up to the last attempt; then, for a failure that
will not pass, and above the day's ceiling, the rules do the step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from nitka.errors import ModelError

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

Afford = Callable[[int], Awaitable[bool]]
"""Whether models may still be given so many tokens today; if so they are counted."""


async def model_or_rules(
    model: Asked | None,
    rules: Asked,
    ask: Callable[[Asked], Awaitable[Answer]],
    *,
    tokens: int,
    afford: Afford,
    attempts: int,
    last_attempt: int,
) -> tuple[Answer, bool]:
    """The answer, and whether the rules stood in for a model that there is. `model` is None where there is none,
    `attempts` is how often the step has failed before. Raises `ModelError` where the step has to be tried again.
    """
    if model is not None and attempts <= last_attempt and await afford(tokens):
        try:
            return await ask(model), False
        except ModelError as error:
            if error.retryable and attempts < last_attempt:
                raise
    return await ask(rules), model is not None
