"""Read what members of a classic group subscribe to and are assigned, from the bytes that they exchange."""

from collections.abc import Iterator

from headwater.kafka.wire import ResponseReader


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """Return the topics of a `ConsumerProtocolSubscription` (Kafka protocol): version, then names.

    Bytes of another protocol yield no topics.
    """
    return _topics(metadata, with_partitions=False)


def assigned_topics(assignment: bytes) -> frozenset[str]:
    """Return the topics of a `ConsumerProtocolAssignment`: version, then names with partitions.

    Bytes of another protocol yield no topics.
    """
    return _topics(assignment, with_partitions=True)


def _topics(data: bytes, *, with_partitions: bool) -> frozenset[str]:
    try:
        return frozenset(_names(ResponseReader(data), with_partitions=with_partitions))
    except ValueError:
        return frozenset()


def _names(reader: ResponseReader, *, with_partitions: bool) -> Iterator[str]:
    reader.skip(2)  # version
    for _ in range(reader.number(4)):
        yield reader.take(reader.number(2)).decode()
        if with_partitions:
            reader.skip(4 * max(0, reader.number(4)))
