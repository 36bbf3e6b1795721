"""The request for the settings of topics, and the values of its answer."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from confluent_kafka import KafkaError
from confluent_kafka.admin import ConfigEntry  # type: ignore[attr-defined]  # public in the library

from headwater.kafka.broker_connection import Message
from headwater.kafka.wire import NO_TAGS, ResponseReader, compact_array, compact_text

TopicConfig = Mapping[str, ConfigEntry]
TopicConfigs = Mapping[str, TopicConfig | KafkaError]
"""Topic name → its settings by name. Topics share equal entries."""

DESCRIBE_CONFIGS = Message("DescribeConfigs", 32, 4, 4)
_TOPIC = b"\x02"
_ALL = b"\x00"
_MOST_KNOWN = 8
"""Different values of a setting that are compared with the bytes of the next topic."""


def describe_topic_configs(names: Iterable[str]) -> bytes:
    """Return the body for all settings of topics, with synonyms, without documentation."""
    topics = compact_array(_TOPIC + compact_text(name) + _ALL + NO_TAGS for name in names)
    return topics + b"\x01" + b"\x00" + NO_TAGS


def topic_configs(names: Collection[str], reader: ResponseReader) -> TopicConfigs:
    """Return the answer to DescribeConfigs for these topics.

    Topics have about 35 settings, and most topics have equal settings. So the bytes of a setting are first
    compared with the settings of the topics before: reading each would take fifty times as long.

    Raises:
        ValueError: It is no answer, or names other topics: a topic that is missing in it would look as if it
            did not exist.
    """
    reader.skip(4)  # throttle time
    entries = _Entries(reader)
    found: dict[str, TopicConfig | KafkaError] = {}
    count = reader.unsigned() - 1
    for _ in range(count):
        code, text = reader.number(2), reader.compact_text()
        reader.skip(1)  # type
        name = reader.compact_text()
        config = entries.read()
        reader.tagged_fields()
        found[name] = (KafkaError(code, text) if text else KafkaError(code)) if code else config
    if count != len(found) or found.keys() != set(names):
        raise ValueError("the response is about other topics than the request")
    return found


class _Entries:
    """Reads the settings of one topic after the other; `_known` is position → bytes read there → entry."""

    def __init__(self, reader: ResponseReader) -> None:
        self._reader = reader
        self._known: defaultdict[int, dict[bytes, ConfigEntry]] = defaultdict(dict)

    def read(self) -> TopicConfig:
        reader = self._reader
        config: dict[str, ConfigEntry] = {}
        for position in range(reader.unsigned() - 1):
            known = self._known[position]
            read = reader.take_known(known)
            if read is None:
                read, entry = reader.read_with_bytes(self._entry)
                if len(known) >= _MOST_KNOWN:
                    del known[next(iter(known))]
                known[read] = entry
            else:
                entry = known[read]
            config[entry.name] = entry
        return config

    def _entry(self) -> ConfigEntry:
        reader = self._reader
        name, value = reader.compact_text(), reader.compact_nullable_text()
        reader.skip(1)  # whether it is read-only
        source = reader.number(1)
        reader.skip(1)  # whether it is sensitive: then it has no value
        synonyms: dict[str, ConfigEntry] = {}
        for each in reader.compact_array(self._synonym):
            synonyms.setdefault(each.name, each)  # the value with priority is first
        reader.skip(1)  # type
        reader.compact_text()  # documentation
        reader.tagged_fields()
        return _config_entry(name, value, source, synonyms)

    def _synonym(self) -> ConfigEntry:
        reader = self._reader
        name, value = reader.compact_text(), reader.compact_nullable_text()
        source = reader.number(1)
        reader.tagged_fields()
        return _config_entry(name, value, source, {})


def _config_entry(name: str, value: str | None, source: int, synonyms: dict[str, ConfigEntry]) -> ConfigEntry:
    # The library annotates the enum and gives its number.
    return ConfigEntry(name, value, source=source, synonyms=synonyms)  # type: ignore[arg-type]
