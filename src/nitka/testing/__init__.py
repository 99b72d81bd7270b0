"""Honest fakes for tests: yours and ours. They pass the same contract suites as the real things.

* `MemoryStore`: a store that lives in memory.
* `FaultyStore`: a store that fails at its n-th call, before or after the call took effect.
* `FakeModel`: a chat model that answers what the test says.
* `FixedClock`: a clock that stands still until it is told to move.
* `memory_ring`: root keys that live in memory.
"""

from nitka.testing.fakes import FakeModel, FixedClock, memory_ring
from nitka.testing.faulty import FaultyStore
from nitka.testing.memory import MemoryStore

__all__ = ["FakeModel", "FaultyStore", "FixedClock", "MemoryStore", "memory_ring"]
