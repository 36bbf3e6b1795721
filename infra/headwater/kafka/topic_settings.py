"""The settings of topics in a snapshot, and the defaults of brokers that follow from them."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    ConfigEntry,
    ConfigSource,
)

# The library annotates the enum and gives its number.
_SET_ON_TOPIC: Any = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
_UNITS = {".hours": 3_600_000, ".minutes": 60_000}
_MILLISECONDS = ".ms"


@attrs.frozen
class TopicSettings:
    """The settings of topics as brokers answer them: topics' own settings, and the brokers' defaults.

    `own` is topic → settings, `defaults` are the settings of topics that do not set them. `synonyms` are the
    entries of settings that topics set.
    """

    own: dict[str, Mapping[str, str]] = attrs.field(factory=dict)
    defaults: dict[str, str] = attrs.field(factory=dict)
    synonyms: dict[str, ConfigEntry] = attrs.field(factory=dict)

    def add(self, name: str, config: Mapping[str, ConfigEntry]) -> None:
        """Add the settings of one topic."""
        self.own[name] = {
            k: entry.value or "" for k, entry in config.items() if entry.source == _SET_ON_TOPIC
        }
        self.synonyms.update((k, config[k]) for k in self.own[name] if k not in self.synonyms)
        if not config.keys() <= self.defaults.keys():
            others = {k: entry.value for k, entry in config.items() if entry.source != _SET_ON_TOPIC}
            self.defaults.update({key: value for key, value in others.items() if value is not None})

    def all_defaults(self, broker: Mapping[str, ConfigEntry]) -> dict[str, str]:
        """Return topic setting → the value of topics that do not set it, as far as it is known.

        `broker` are the settings of a broker, empty if they could not be read. Where every topic sets its own
        value, the synonyms of its entry are the settings of the broker that it overrides. A setting of the
        broker with the same name is not among them: of equal names, only the first synonym is kept, which is
        the topic's own value.
        """
        found = dict(self.defaults)
        for key, entry in self.synonyms.items():
            value = next(_broker_values(key, entry, broker), None)
            if value is not None:
                found.setdefault(key, value)
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
