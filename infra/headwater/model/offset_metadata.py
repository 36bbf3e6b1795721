"""The metadata of committed offsets: state versions, clocks, read positions, moves of state.

The bytes are as in Kafka Streams' `TopicPartitionMetadata` and `ProcessorMetadata`, so we find the stream
time of a Kafka Streams application. It finds the times of a text only if `GroupClient.commit` has committed
the text: confluent-kafka appends a null byte, which Java's decoder refuses.
"""

import base64
import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

import attrs

from headwater.model.untrusted import UnreadReason


class MovePhase(Enum):
    """What is done next: nothing has moved while entries are copied, everything has when they are cleared.

    CATCH_UP: entries are copied while the application runs. This mark is with the changelog topics, because
    tasks commit the offsets of the input.
    """

    CATCH_UP = "catch-up"
    COPY = "copy"
    CLEAR = "clear"


@attrs.frozen
class MoveMark:
    """The state moves from `before` to `after` processors.

    From COPY on, no client may process records until it has moved.
    """

    phase: MovePhase
    before: int
    after: int

    @property
    def present(self) -> int:
        """The number of processors: the old one until all entries are copied."""
        return self.after if self.phase is MovePhase.CLEAR else self.before


_FORMAT = 2
_COMPRESSED_FORMAT = 3
"""Ours: the same bytes, deflated, where they would exceed the broker's limit."""
MAX_METADATA_BYTES = 4096
"""The broker's default of `offset.metadata.max.bytes`."""
LINEAGE_KEY = "headwater.line"
"""The lineage of a state's versions, a random number: versions of different lineages cannot be compared.

A task gets a new lineage when its offsets were deleted or reset."""
BATCH_ID = "headwater.batch"
"""The id of the last committed batch, a random number."""
DELETING_KEY = "headwater.deleting"
"""Only after processors were added: the state may have entries of keys that have moved (`MovedEntries`)."""
_VERSION_KEY = "headwater.version"
_POSITION_KEY = "headwater.read."
_PROCESSOR_KEY = "headwater.processor"
"""Only for a partition that belongs to a processor with another number (KIP-287)."""
_INITIAL_KEY = "headwater.initial"
"""Only if the number of processors is between two doublings of the initial one (`Processors`)."""
_COUNT_KEY = "headwater.count"
"""Only if the number of processors is not the partition count of the changelog topics: some were removed."""
_DECLARED_KEY = "headwater.processors"
"""The number of processors, of each application that declares one: other clients cannot know it otherwise.

It decides only if all texts have the same number: an application that returned to one processor for each
partition leaves it with partitions of which it has committed nothing since then.
"""
_MOVE_KEY = "headwater.move."
"""Only while the state moves to another number of processors: `from` and, by the phase, `copy` or `clear`."""
_MOVED_FROM = f"{_MOVE_KEY}from"
RESHARD_KEY = "headwater.reshard."
"""The entries of a reshard's journal begin with it."""
_NO_CLOCKS = (_PROCESSOR_KEY, _INITIAL_KEY, _COUNT_KEY, _DECLARED_KEY)
_NO_TIME = -1
_LONGEST_TEXT = 256 * 1024
"""Far more than brokers accept by default (`MAX_METADATA_BYTES`)."""
_LARGEST_BODY = 4 * 1024 * 1024
_MOST_PROCESSORS = 1_000_000
"""More than a topic can have partitions in practice: a number is used to count with."""
_LEAST: Mapping[str, int] = {
    _PROCESSOR_KEY: 0,
    _INITIAL_KEY: 1,
    _COUNT_KEY: 1,
    _DECLARED_KEY: 1,
    **{f"{_MOVE_KEY}{name}": 1 for name in ("from", *(phase.value for phase in MovePhase))},
}
"""Entry → its least number."""
_HEAD = struct.Struct(">bq")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_COUNT = struct.Struct(">i")
_TIME = struct.Struct(">q")
ReadPositions = Mapping[str, int]
"""Writing task → offset after the last of its records that were processed, beyond the committed offset.

Only for partitions of repartition topics with several writers (`interleaving`), while records are held back.
"""
NOTHING_READ: ReadPositions = {}


@attrs.frozen
class StateVersion:
    """Identifies the state of a task: the number of its committed batches, and the id of the last one.

    Two processes can commit a batch with the same number, if neither fences the other: their ids differ.
    """

    number: int = 0
    batch_id: int | None = None


@attrs.frozen
class OffsetMetadata:
    """What a task commits with its offsets.

    `version` is the number of its committed batches; `clocks` are its times by name, in milliseconds.
    """

    version: int = 0
    clocks: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def state_version(self) -> StateVersion:
        return StateVersion(self.version, self.clocks.get(BATCH_ID))

    def encode(
        self,
        partition_time: int,
        positions: ReadPositions = NOTHING_READ,
        processor: int | None = None,
        mark: MoveMark | None = None,
        *,
        initial: int | None = None,
        count: int | None = None,
        declared: int | None = None,
    ) -> str:
        """Return the text to commit with an offset; it may still exceed `MAX_METADATA_BYTES`.

        `partition_time` is the largest timestamp of the partition, -1 = none. `processor` is the owner of the
        partition, None = the one with the same number. `mark` is set while the state moves. `initial` is the
        initial number of processors, None = the present one or any other that was doubled to it. `count` is
        the number of processors, None = as many as the changelog topics have partitions. `declared` is the
        number of processors if the application declares one.
        """
        read = {f"{_POSITION_KEY}{writer}": offset for writer, offset in positions.items()}
        move = (
            {} if mark is None else {_MOVED_FROM: mark.before, f"{_MOVE_KEY}{mark.phase.value}": mark.after}
        )
        given = {
            _PROCESSOR_KEY: processor,
            _INITIAL_KEY: initial,
            _COUNT_KEY: count,
            _DECLARED_KEY: declared,
        }
        numbers = {key: number for key, number in given.items() if number is not None}
        entries = {**self.clocks, _VERSION_KEY: self.version, **read, **numbers, **move}
        body = _COUNT.pack(len(entries)) + b"".join(map(_encode_entry, entries.items()))
        plain = _encode_base64(_HEAD.pack(_FORMAT, partition_time) + body)
        if len(plain) <= MAX_METADATA_BYTES:
            return plain
        return _encode_base64(_HEAD.pack(_COMPRESSED_FORMAT, partition_time) + zlib.compress(body))


def trim_text(text: str) -> str:
    """Return a committed text without what follows its end.

    librdkafka copies texts without a terminating null byte, so confluent-kafka returns them with the bytes
    that happen to follow. The end is known from the content: Kafka Streams and Headwater say how many entries
    there are, or the text of Kafka Streams ends after the time. Any other text is returned as it is.
    """
    if len(text) > _LONGEST_TEXT:
        return text
    found = _BASE64.match(text)
    encoded = "" if found is None else found.group()
    try:
        raw = base64.b64decode(encoded[: len(encoded) // 4 * 4])
        format_, _ = _HEAD.unpack_from(raw)
        body = raw[_HEAD.size :]
        match format_:
            case 1:
                length = 0
            case 2:
                length = _length_of_entries(body) or 0
            case 3:
                decompressor = zlib.decompressobj()
                decompressor.decompress(body, _LARGEST_BODY)
                length = len(body) - len(decompressor.unused_data)
            case _:
                return text
    except (ValueError, struct.error, zlib.error):
        return text
    return encoded[: 4 * -(-(_HEAD.size + length) // 3)]


def _length_of_entries(body: bytes) -> int | None:
    """Return how many bytes the entries have; None if there are none, only bytes that do not belong to it."""
    try:
        (count,) = _COUNT.unpack_from(body)
        at = _COUNT.size
        for _ in range(count):
            (length,) = _COUNT.unpack_from(body, at)
            at += _COUNT.size + length + _TIME.size
            if length < 0 or at > len(body):
                return None
    except struct.error:
        return None
    return at if count >= 0 else None


def decode_metadata(text: str) -> OffsetMetadata | None:
    """Return the metadata in a committed text; None if it is empty or Kafka Streams wrote it."""
    entries = _decode_values(text)
    if _VERSION_KEY not in entries:
        return None
    clocks = {
        name: time
        for name, time in entries.items()
        if not name.startswith((_POSITION_KEY, _MOVE_KEY)) and name not in _NO_CLOCKS
    }
    return OffsetMetadata(clocks.pop(_VERSION_KEY), clocks)


def decode_processor_metadata(text: str) -> Mapping[str, int]:
    """Return the processor metadata in a text that Kafka Streams wrote: key → time.

    Source: `TopicPartitionMetadata` and `ProcessorMetadata` (since Kafka Streams 3.4).
    """
    return _decode_values(text)


def encode_processor_metadata(partition_time: int, times: Mapping[str, int]) -> str:
    """Return a text as Kafka Streams writes it; `partition_time` is the largest timestamp, -1 = none."""
    body = _COUNT.pack(len(times)) + b"".join(map(_encode_entry, times.items())) if times else b""
    return _encode_base64(_HEAD.pack(_FORMAT, partition_time) + body)


def decode_positions(text: str) -> ReadPositions:
    """Return the read positions in the text committed for a partition."""
    return {
        name.removeprefix(_POSITION_KEY): offset
        for name, offset in _decode_values(text).items()
        if name.startswith(_POSITION_KEY)
    }


def decode_processor(text: str, partition: int) -> int | None:
    """Return the processor that committed `text` for a partition; None if no task has."""
    entries = _decode_values(text)
    return entries.get(_PROCESSOR_KEY, partition) if _VERSION_KEY in entries else None


def decode_initial(texts: Iterable[str], processors: int) -> int | None:
    """Return the initial number of processors, or one that it was doubled to; None if no task has committed.

    `processors` is their number, except where a text has the mark of a move.
    """
    found = None
    for text in texts:
        entries = _decode_values(text)
        if _INITIAL_KEY in entries:
            return entries[_INITIAL_KEY]
        if _VERSION_KEY in entries:
            mark = decode_mark(text)
            found = processors if mark is None else mark.present
    return found


def decode_count(texts: Iterable[str]) -> int | None:
    """Return the number of processors; None = as many as the changelog topics have partitions.

    While the state moves, it is the old number until all entries are copied.
    """
    known = tuple(texts)
    if (mark := latest_mark(known)) is not None:
        return mark.present
    return next((each[_COUNT_KEY] for each in map(_decode_values, known) if _COUNT_KEY in each), None)


def decode_number(texts: Iterable[str], partitions: int) -> int | None:
    """Return the number of processors if the partition counts of the changelog topics do not show it.

    Some processors were removed, or another client has added partitions to the changelog topics: `partitions`
    is the largest of these counts. None = there are as many processors as partitions, or it is not known.
    """
    known = tuple(texts)
    if (count := decode_count(known)) is not None:
        return count
    numbers = decode_declared(known)
    number = next(iter(numbers)) if len(numbers) == 1 else None
    return number if number is not None and number < partitions else None


def decode_declared(texts: Iterable[str]) -> frozenset[int | None]:
    """Return the numbers of processors that tasks have committed; None for texts without a number."""
    return frozenset(
        entries.get(_DECLARED_KEY) for entries in map(_decode_values, texts) if _VERSION_KEY in entries
    )


def shows_processors(texts: Iterable[str]) -> bool:
    """Return whether an application that declares a number of processors has committed one of the texts."""
    for text in texts:
        entries = _decode_values(text)
        is_reshard = any(name.startswith(RESHARD_KEY) for name in entries)
        if not entries.keys().isdisjoint(_NO_CLOCKS) or (decode_mark(text) is not None and not is_reshard):
            return True
    return False


def decode_mark(text: str) -> MoveMark | None:
    """Return the mark of a move of the state that is not complete."""
    entries = _decode_values(text)
    for phase in MovePhase:
        after = entries.get(f"{_MOVE_KEY}{phase.value}")
        if after is not None:
            return MoveMark(phase, entries.get(_MOVED_FROM, after), after)
    return None


def has_reshard(texts: Iterable[str]) -> bool:
    """Return whether a reshard is not complete: its journal is committed for the changelog topics."""
    for text in texts:
        mark = decode_mark(text)
        if mark is not None and mark.before != mark.after:  # a copy of state keeps the counts
            return any(name.startswith(RESHARD_KEY) for name in _decode_values(text))
    return False


def latest_mark(texts: Iterable[str]) -> MoveMark | None:
    """Return the mark of the latest phase: the first one, of the changelog topics, stays until the end."""
    phases = tuple(MovePhase)
    marks = (mark for mark in map(decode_mark, texts) if mark is not None)
    return max(marks, key=lambda mark: phases.index(mark.phase), default=None)


def decode_time(text: str) -> int:
    """Return the largest timestamp of the partition, also if Kafka Streams wrote the text; -1 = none."""
    try:
        _, time = _HEAD.unpack_from(base64.b64decode(text, validate=True))
    except (ValueError, struct.error):  # also for characters that are not ASCII
        return _NO_TIME
    return int(time)


def latest_metadata(texts: Iterable[str]) -> OffsetMetadata | None:
    """Return the metadata of the last batch among the texts committed for a task's partitions."""
    decoded = [metadata for metadata in map(decode_metadata, texts) if metadata is not None]
    return max(decoded, key=lambda metadata: metadata.version, default=None)


def unread_reason(text: str) -> UnreadReason | None:
    """Return why a committed text must not be replaced; None if it can be read, or is of another program.

    Everyone who may commit for the group can commit any text. A text of a later version of Headwater is not
    a text of Kafka Streams: a task that ignored it would lose its positions.
    """
    if len(text) > _LONGEST_TEXT:
        return UnreadReason.TOO_LARGE
    try:
        raw = base64.b64decode(text, validate=True)
        format_, _ = _HEAD.unpack_from(raw)
    except (ValueError, struct.error):  # also for characters that are not ASCII
        return None
    if format_ > _COMPRESSED_FORMAT:
        return UnreadReason.LATER_FORMAT
    if format_ == _COMPRESSED_FORMAT and not _decode_values(text):
        return UnreadReason.NOT_OURS
    entries = _read_entries(raw)
    return UnreadReason.NOT_OURS if _VERSION_KEY in entries and not _is_valid(entries) else None


def _decode_values(text: str) -> dict[str, int]:
    if len(text) > _LONGEST_TEXT:
        return {}
    try:
        entries = _read_entries(base64.b64decode(text, validate=True))
    except ValueError:  # no base64, or not ASCII
        return {}
    return entries if _is_valid(entries) else {}


def _read_entries(raw: bytes) -> dict[str, int]:
    try:
        format_, _ = _HEAD.unpack_from(raw)
        body = raw[_HEAD.size :]
        return _decode_entries(_decompress_body(body) if format_ == _COMPRESSED_FORMAT else body)
    except (struct.error, zlib.error, UnicodeDecodeError):
        return {}


def _decompress_body(body: bytes) -> bytes:
    """Return at most as many bytes as a text of Headwater has; more are an error."""
    decompressor = zlib.decompressobj()
    found = decompressor.decompress(body, _LARGEST_BODY)
    if not decompressor.eof:
        raise zlib.error("too large, or incomplete")
    return found


def _is_valid(entries: Mapping[str, int]) -> bool:
    """Return whether the numbers of Headwater's own entries are in their ranges."""
    return all(
        _LEAST[name] <= number <= _MOST_PROCESSORS
        if name in _LEAST
        else number >= 0 or not name.startswith((_VERSION_KEY, _POSITION_KEY))
        for name, number in entries.items()
    )


def _encode_entry(entry: tuple[str, int]) -> bytes:
    name = entry[0].encode()
    return _COUNT.pack(len(name)) + name + _TIME.pack(entry[1])


def _decode_entries(body: bytes) -> dict[str, int]:
    (count,) = _COUNT.unpack_from(body)
    at, entries = _COUNT.size, {}
    for _ in range(count):
        (length,) = _COUNT.unpack_from(body, at)
        if length < 0:  # of another program: it could be read again and again
            raise struct.error
        at += _COUNT.size
        name = body[at : at + length].decode()
        (entries[name],) = _TIME.unpack_from(body, at + length)
        at += length + _TIME.size
    return entries


def _encode_base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def announcement_partitions(changelogs: Iterable[str]) -> Sequence[tuple[str, int]]:
    """Return the topic partitions whose offset metadata announce a move of these changelog topics."""
    return [(topic, 0) for topic in sorted(set(changelogs))]
