"""Linear hashing: an added bucket takes keys from one bucket only; no other key moves (KIP-287).

Partitions are assigned to processors by it: partition p of a topic belongs to processor
`bucket_of(p, initial, processors)`.
"""

from collections.abc import Iterator, Sequence


def bucket_of(number: int, initial: int, count: int) -> int:
    """Return the bucket of `number` (0 or more) in a table that has grown from `initial` to `count` buckets.

    A table grows by splitting one bucket after the other: round k splits the first `initial * 2**k` buckets
    in order. It never has fewer than `initial` buckets. Raises `ValueError` if `initial` is less than 1, or
    `count` less than `initial`.
    """
    if not 1 <= initial <= count:
        raise ValueError(f"a table of initially {initial} buckets cannot have {count}")
    before = initial
    while before * 2 <= count:
        before *= 2
    found = number % (before * 2)
    return found if found < count else found % before


def bucket_table(initial: int, count: int) -> Sequence[int]:
    """Return the buckets of many numbers: the bucket of number n is `table[n % len(table)]`.

    Raises `ValueError` as `bucket_of` does.
    """
    size = initial
    while 0 < size < count:
        size *= 2
    return [bucket_of(number, initial, count) for number in range(max(1, size))]


def round_start(size: int, count: int) -> int | None:
    """Return the number of buckets at which the round began that a table of `count` buckets is in.

    `size` is any number of the series `initial`, 2 x `initial`, 4 x `initial`, ...: the initial number, or
    the partition count of a topic whose initial count was doubled. With the result as initial number,
    `bucket_of` returns the same as with `initial`.

    None: `size` is greater than `count`, and no number of at most `count` can be doubled to it.
    """
    while size > count:
        if size % 2:
            return None
        size //= 2
    while size * 2 <= count:
        size *= 2
    return size


def split_by(new: int, initial: int) -> int:
    """Return the bucket from which the added bucket `new` takes keys.

    Raises `ValueError` if it is one of the `initial` buckets.
    """
    if new < initial:
        raise ValueError(f"bucket {new} is one of the first {initial}")
    return bucket_of(new, initial, new)


def earlier_buckets(number: int, initial: int) -> Iterator[int]:
    """Yield `number` and the earlier buckets of its keys, back to one of the first `initial` buckets."""
    yield number
    while number >= initial:
        number = split_by(number, initial)
        yield number


def is_doubled(count: int, initial: int) -> bool:
    """Return whether `count` is `initial`, or `initial` doubled one or more times.

    At these counts Kafka's default partitioner (hash modulo count) is linear hashing: it keeps each key with
    its processor.
    """
    while initial < count:
        initial *= 2
    return count == initial
