"""Random records, including late and out-of-order ones, nulls and deletions."""

import random
from typing import Any

_BEGINNINGS = (100_000, 100_000, 100_000, 0, 0, 5_000, 1_700_000_000_000, 2**62)
_JUMPS = (0, 1, 500, 1000, 1000, 3000, 7000, 25_000)
_EQUAL = (0, 0, 0, 0, 0, 0, 1, 4_000)
_BACK = (0, 0, 0, 0, 1000, 2000, 6000, 15_000, 60_000)
_KEYS = ("a", "b", "c", "a", "b", None)
_PRESENT = (*[1_795_000_000_000] * 6, 1_795_000_000_000, 0, 100_000, 2_000_000_000, 7_258_118_400_000)
_GAPS = (150_000, 86_400_000, 30 * 86_400_000)
_KEY_SETS: tuple[tuple[str | None, ...], ...] = (
    ("a", "b", "c", "a", "b", None),
    ("a", "a", "a", "b"),
    ("a", "b", "c", "d", "e", "f", "ab", "é", None),
)
_EMOJI = "\N{GRINNING FACE}"
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


def present_records(
    chance: random.Random, topics: list[str], count: int, *, months: bool
) -> list[dict[str, Any]]:
    """Return `count` records or advances of the clock, most of them with present timestamps.

    Some data have other ones, gaps, or records that are as much late: a day or, with `months`, a month. In
    some, most records have the timestamp of the record before them.
    """
    gaps = _GAPS if months else _GAPS[:-1]
    time = chance.choice(_PRESENT)
    keys = chance.choice(_KEY_SETS)
    has_gaps = chance.randrange(4) == 0
    jumps = _EQUAL if chance.randrange(5) == 0 else _JUMPS
    made: list[dict[str, Any]] = []
    for number in range(count):
        if chance.randrange(25) == 0:
            made.append({"advance": chance.choice([1, 4_000, 10_000, 35_000])})
            continue
        time += chance.choice(gaps) if has_gaps and chance.randrange(12) == 0 else chance.choice(jumps)
        back = chance.choice(gaps) if has_gaps and chance.randrange(20) == 0 else chance.choice(_BACK)
        made.append(
            {
                "topic": chance.choice(topics),
                "key": "" if chance.randrange(30) == 0 else chance.choice(keys),
                "value": _value(chance, number),
                "timestamp": max(0, time - back),
                "headers": list(chance.choice(_HEADERS)),
            }
        )
    return made


def with_emoji(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record whose value has a character of two surrogates instead of each `c`."""
    value = record.get("value")
    return record if value is None else {**record, "value": value.replace("c", _EMOJI)}


def batches(chance: random.Random, data: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Divide data into batches of one record to all of them; an advance of the clock is a batch."""
    most = chance.choice([1, 3, 8, 20, len(data)])
    made: list[list[dict[str, Any]]] = []
    size = 0
    for each in data:
        if "advance" in each or size == 0 or "advance" in made[-1][0]:
            made.append([each])
            size = chance.randint(1, most) - 1
        else:
            made[-1].append(each)
            size -= 1
    return made


def _value(chance: random.Random, number: int) -> str | None:
    kind = chance.randrange(24)
    if kind < 4:
        return None
    return chance.choice(_ODD) if kind == 4 else f"{chance.choice('abcd')}:{number}"
