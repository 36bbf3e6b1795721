"""PURE. Linear hashing: one more bucket takes keys from one bucket only, and no other key moves (KIP-287)."""

from collections.abc import Iterator


def bucket(number: int, initial: int, count: int) -> int:
    """Return which of `count` buckets `number` (0 or more) falls into; there were `initial` at first.

    A table that has grown from `initial` splits bucket after bucket: round k splits the first
    `initial * 2**k` buckets in order. It never has fewer than `initial` buckets. Raises ValueError for
    counts that cannot be.
    """
    if not 1 <= initial <= count:
        raise ValueError(f"a table of at first {initial} buckets cannot have {count}")
    span = initial
    while span * 2 <= count:
        span *= 2
    place = number % (span * 2)
    return place if place < count else place % span


def split_by(new: int, initial: int) -> int:
    """Return the bucket that the new bucket number `new` takes its keys from."""
    if new < initial:
        raise ValueError(f"bucket {new} is one of the first {initial}")
    return bucket(new, initial, new)


def line(number: int, initial: int) -> Iterator[int]:
    """Yield `number` and the buckets that its keys were in before, back to one of the first `initial`."""
    yield number
    while number >= initial:
        number = split_by(number, initial)
        yield number
