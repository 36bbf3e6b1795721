"""Random records, including late and out-of-order ones, nulls and deletions."""

import random
from typing import Any

_BEGINNINGS = (100_000, 100_000, 100_000, 0, 0, 5_000, 1_700_000_000_000, 2**62)
_JUMPS = (0, 1, 500, 1000, 1000, 3000, 7000, 25_000)
_BACK = (0, 0, 0, 0, 1000, 2000, 6000, 15_000, 60_000)
_KEYS = ("a", "b", "c", "a", "b", None)
_ODD = ("", ":", "é:1", "no colon", "a:b:c", "€uro:5")
_HEADERS: tuple[tuple[str, ...], ...] = ((), (), ("one",), ("one", "two"), ("two", "two"))


def records(chance: random.Random, topics: list[str], count: int) -> list[dict[str, Any]]:
    """Return `count` records, or advances of the clock (`advance`, in milliseconds)."""
    time = chance.choice(_BEGINNINGS)
    made: list[dict[str, Any]] = []
    for number in range(count):
        if chance.randrange(20) == 0:
            made.append({"advance": chance.choice([1, 4_000, 10_000, 35_000])})
            continue
        time += 150_000 if chance.randrange(60) == 0 else chance.choice(_JUMPS)
        made.append(
            {
                "topic": chance.choice(topics),
                "key": "" if chance.randrange(25) == 0 else chance.choice(_KEYS),
                "value": _value(chance, number),
                "timestamp": max(0, time - chance.choice(_BACK)),
                "headers": list(chance.choice(_HEADERS)),
            }
        )
    return made


def _value(chance: random.Random, number: int) -> str | None:
    kind = chance.randrange(24)
    if kind < 4:
        return None
    return chance.choice(_ODD) if kind == 4 else f"{chance.choice('abcd')}:{number}"
