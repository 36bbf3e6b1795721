"""Join requests of classic groups, as members send them."""

import struct

import pytest

from headwater.kafka.group_messages import subscribed_topics


def encoded(*topics: str, version: int = 3, rest: bytes = b"\xff\xff\xff\xff") -> bytes:
    names = b"".join(struct.pack(">h", len(name.encode())) + name.encode() for name in topics)
    return struct.pack(">hi", version, len(topics)) + names + rest


@pytest.mark.parametrize("version", [0, 1, 3])
def test_topics_are_read_and_following_bytes_ignored(version: int) -> None:
    assert subscribed_topics(encoded("in", "app-by-x-repartition", version=version)) == {
        "in",
        "app-by-x-repartition",
    }
    assert subscribed_topics(encoded("in", rest=b"")) == {"in"}


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\x00",
        encoded(),
        encoded("in")[:8],
        b"\x00\x03\x7f\xff\xff\xff",
        b"\x00\x00\x00\x00\x00\x01\xff\xff",
        b"\x00\x03\x00\x00\x00\x01\x00\x01\xff",
    ],
)
def test_bytes_of_other_formats_have_no_topics(metadata: bytes) -> None:
    assert subscribed_topics(metadata) == frozenset()
