"""Bounds for what Headwater reads back from Kafka: others may have written it.

Records of ownership, lines of the journal and texts of group offsets have the same bounds. A record beyond
them is one value, `UnreadRecord`, and never ends the reading of the others.
"""

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

import attrs

LARGEST_VALUE = 4 * 1024 * 1024
"""Bytes of a record, for about 50,000 topics. Topics of Headwater's records are limited to it, too."""
LARGEST_TEXT = 1_000
"""Characters of a name or an id. Kafka's names of topics have at most 249."""
MOST_ENTRIES = 100_000
"""Topics in one record."""
MOST_KEYS = 100_000
"""Records of one topic that are kept in memory, each with another key."""
MOST_BYTES = 256 * 1024 * 1024
"""Bytes of all values that are kept in memory."""
MOST_UNREAD = 20
"""Unreadable records of one topic that are reported one by one."""


class UnreadReason(Enum):
    """Why the content of a record is not used; the value completes "is …"."""

    TOO_LARGE = "larger than Headwater's records"
    COMPRESSED = "compressed in a way that cannot be read within the limits"
    NOT_OURS = "not in the format of Headwater"
    LATER_FORMAT = "in a format of a later version of Headwater"
    OTHER_KEY = "below the key of another record"


@attrs.frozen(kw_only=True)
class UnreadRecord:
    """A record that is not used. `key` is the stack and the application of an ownership record, if known.

    If a batch of several records is too large, or follows another one, `last_offset` is its last offset.
    """

    topic: str
    partition: int
    offset: int
    last_offset: int
    reason: UnreadReason
    key: tuple[str, str] | None = None

    @property
    def location(self) -> str:
        """Return topic, partition and offset as a phrase."""
        at = f"offset {self.offset}"
        if self.last_offset > self.offset:
            at = f"one of the offsets {self.offset} to {self.last_offset}"
        return f"{self.topic}, partition {self.partition}, {at}"


class LaterFormatError(ValueError):
    """A later version of Headwater has written the value."""


def json_object(value: bytes, latest_format: int, format_key: str) -> Mapping[str, Any]:
    """Return the JSON object of a record whose format is known.

    Raises `LaterFormatError` if its `format_key` is a number beyond `latest_format`, otherwise `ValueError`.
    """
    if len(value) > LARGEST_VALUE:
        raise ValueError("too large")
    try:
        found = json.loads(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    found = check_mapping(found)
    version = check_whole(found.get(format_key))
    if version > latest_format:
        raise LaterFormatError(version)
    if version == 0:
        raise ValueError("no such format")
    return found


def check_whole(value: object, most: int = 2**63 - 1) -> int:
    """Return a whole number from 0 to `most`; raises `ValueError` for another value."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
        return value
    raise ValueError("not a number in the range")


def check_boolean(value: object) -> bool:
    """Return a truth value; raises `ValueError` for another value."""
    if isinstance(value, bool):
        return value
    raise ValueError("neither true nor false")


def check_text(value: object, most: int = LARGEST_TEXT) -> str:
    """Return a text of at most `most` characters; raises `ValueError` for another value."""
    if not isinstance(value, str) or len(value) > most:
        raise ValueError("not a short text")
    return value


def check_name(value: object) -> str:
    """Return a short text that can be printed as it is; raises `ValueError` for another value."""
    found = check_text(value)
    if not found.isprintable():
        raise ValueError("not printable")
    return found


def check_texts(value: object) -> tuple[str, ...]:
    """Return a list of texts; raises `ValueError` for another value."""
    if not isinstance(value, list) or len(value) > MOST_ENTRIES:
        raise ValueError("not a list of texts")
    return tuple(map(check_text, value))


def check_mapping(value: object) -> Mapping[str, Any]:
    """Return an object whose keys are short texts; raises `ValueError` for another value."""
    if not isinstance(value, dict) or len(value) > MOST_ENTRIES:
        raise ValueError("not an object")
    return {check_text(key): each for key, each in value.items()}
