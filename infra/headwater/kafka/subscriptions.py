"""Read the subscriptions of members of a classic group from the bytes of their join requests."""

import struct


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """Return the topics of a `ConsumerProtocolSubscription` (Kafka protocol): version, then names.

    Bytes of another protocol yield no topics.
    """
    try:
        (count,) = struct.unpack_from(">i", metadata, 2)
        offset, topics = 6, []
        for _ in range(count):
            (length,) = struct.unpack_from(">h", metadata, offset)
            name = metadata[offset + 2 : offset + 2 + length]
            if length < 0 or len(name) < length:
                return frozenset()
            topics.append(name.decode())
            offset += 2 + length
    except (struct.error, UnicodeDecodeError):
        return frozenset()
    return frozenset(topics)
