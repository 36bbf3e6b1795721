"""The settings of topics: the request, the values in its answer, and the brokers' defaults that they show."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import attrs
from confluent_kafka import KafkaError
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    ConfigEntry,
    ConfigSource,
)

from headwater.kafka.broker_connection import Message
from headwater.kafka.wire import NO_TAGS, ResponseReader, compact_array, compact_text
from headwater.model.broker_defaults import BROKER_DEFAULTS

TopicConfig = Mapping[str, ConfigEntry]
TopicConfigs = Mapping[str, TopicConfig | KafkaError]
"""Topic name → its settings by name. Topics share equal settings."""

T = TypeVar("T")
DESCRIBE_CONFIGS = Message("DescribeConfigs", 32, 4, 4)
_TOPIC = b"\x02"
_ALL = b"\x00"
_MOST_KNOWN = 8
"""Different settings, of whole topics or single ones, that are compared with the bytes of the next topic."""

# The library annotates the enum and gives its number.
_SET_ON_TOPIC: Any = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
_UNITS = {".hours": 3_600_000, ".minutes": 60_000}
_MILLISECONDS = ".ms"


def describe_topic_configs(names: Iterable[str]) -> bytes:
    """Return the body for all settings of topics, with synonyms, without documentation."""
    topics = compact_array(_TOPIC + compact_text(name) + _ALL + NO_TAGS for name in names)
    return topics + b"\x01" + b"\x00" + NO_TAGS


def topic_configs(names: Collection[str], reader: ResponseReader) -> TopicConfigs:
    """Return the answer to DescribeConfigs for these topics.

    Topics have about 35 settings, and most topics have equal settings. So the bytes of all settings of a
    topic, and then of each setting, are first compared with the settings of the topics before: reading each
    would take hundreds of times as long. Raises `ValueError` if it is no answer, or names other topics: a
    topic that is missing in it would look as if it did not exist.
    """
    reader.skip(4)  # throttle time
    entries = _Entries(reader)
    found: dict[str, TopicConfig | KafkaError] = {}
    count = reader.unsigned_varint() - 1
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
    """Reads the settings of one topic after the other.

    `_topics` is bytes of all settings of a topic → settings, `_known` is position → bytes read there → entry.
    """

    def __init__(self, reader: ResponseReader) -> None:
        self._reader = reader
        self._topics: dict[bytes, TopicConfig] = {}
        self._known: defaultdict[int, dict[bytes, ConfigEntry]] = defaultdict(dict)

    def read(self) -> TopicConfig:
        return self._read_once(self._topics, self._read_topic)

    def _read_topic(self) -> TopicConfig:
        count = self._reader.unsigned_varint() - 1
        entries = (self._read_once(self._known[position], self._read_entry) for position in range(count))
        return {entry.name: entry for entry in entries}

    def _read_once(self, known: dict[bytes, T], read: Callable[[], T]) -> T:
        """Return what is next; `read` reads it, unless its bytes are among the `known` ones."""
        found = self._reader.take_known(known)
        if found is None:
            found, item = self._reader.read_with_bytes(read)
            if len(known) >= _MOST_KNOWN:
                del known[next(iter(known))]
            known[found] = item
        return known[found]

    def _read_entry(self) -> ConfigEntry:
        reader = self._reader
        name, value = reader.compact_text(), reader.compact_nullable_text()
        reader.skip(1)  # whether it is read-only
        source = reader.number(1)
        reader.skip(1)  # whether it is sensitive: then it has no value
        synonyms: dict[str, ConfigEntry] = {}
        for each in reader.compact_array(self._read_synonym):
            synonyms.setdefault(each.name, each)  # the value with priority is first
        reader.skip(1)  # type
        reader.compact_text()  # documentation
        reader.tagged_fields()
        return _config_entry(name, value, source, synonyms)

    def _read_synonym(self) -> ConfigEntry:
        reader = self._reader
        name, value = reader.compact_text(), reader.compact_nullable_text()
        source = reader.number(1)
        reader.tagged_fields()
        return _config_entry(name, value, source, {})


def _config_entry(name: str, value: str | None, source: int, synonyms: dict[str, ConfigEntry]) -> ConfigEntry:
    # The library annotates the enum and gives its number.
    return ConfigEntry(name, value, source=source, synonyms=synonyms)  # type: ignore[arg-type]


@attrs.frozen
class TopicSettings:
    """The settings of topics as brokers answer them: topics' own settings, and the brokers' defaults.

    `own` is topic → settings, `defaults` are the settings of topics that do not set them. `synonyms` are the
    entries of settings that topics set.
    """

    own: dict[str, Mapping[str, str]] = attrs.field(factory=dict)
    defaults: dict[str, str] = attrs.field(factory=dict)
    synonyms: dict[str, ConfigEntry] = attrs.field(factory=dict)

    def add(self, names: Iterable[str], config: Mapping[str, ConfigEntry]) -> None:
        """Add the settings of topics that have the same ones."""
        own = {k: entry.value or "" for k, entry in config.items() if entry.source == _SET_ON_TOPIC}
        self.own.update(dict.fromkeys(names, own))
        self.synonyms.update((k, config[k]) for k in own if k not in self.synonyms)
        if not config.keys() <= self.defaults.keys():
            others = {k: entry.value for k, entry in config.items() if entry.source != _SET_ON_TOPIC}
            self.defaults.update({key: value for key, value in others.items() if value is not None})

    def all_defaults(self, broker: Mapping[str, ConfigEntry]) -> dict[str, str]:
        """Return topic setting → the value of topics that do not set it, as far as it is known.

        `broker` are the settings of a broker, empty if they could not be read. Where every topic sets its own
        value, the synonyms of its entry are the settings of the broker that it overrides. A setting of the
        broker with the same name is not among them: of equal names, only the first synonym is kept, which is
        the topic's own value. Before the first topic exists, only the settings of the broker show defaults
        that harm topics.
        """
        found = dict(self.defaults)
        for key, entry in self.synonyms.items():
            value = next(_broker_values(key, entry, broker), None)
            if value is not None:
                found.setdefault(key, value)
        for key, default in BROKER_DEFAULTS.items():
            if default.broker_key in broker and broker[default.broker_key].value is not None:
                found.setdefault(key, str(broker[default.broker_key].value))
        return found


def _broker_values(key: str, entry: ConfigEntry, broker: Mapping[str, ConfigEntry]) -> Iterator[str]:
    """Yield the values of the broker, the value with priority first."""
    if key in broker and broker[key].value is not None:
        yield str(broker[key].value)
    for name, synonym in (entry.synonyms or {}).items():
        if name != key:
            live = broker.get(name, synonym).value
            value = None if live is None else _convert_value(key, name, str(live))
            if value is not None:
                yield value


def _convert_value(key: str, name: str, value: str) -> str | None:
    """Return the value in the unit of the topic setting; None if it cannot be converted."""
    if not key.endswith(_MILLISECONDS):
        return value
    factor = next((factor for unit, factor in _UNITS.items() if name.endswith(unit)), 1)
    if factor == 1:
        return value
    return str(int(value) * factor) if value.isdecimal() else None
