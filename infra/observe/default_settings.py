"""The brokers' defaults of topic settings, where every topic that was read sets its own value."""

from collections.abc import Iterator, Mapping

from confluent_kafka.admin import ConfigEntry  # type: ignore[attr-defined]  # public in the library

_UNITS = {".hours": 3_600_000, ".minutes": 60_000}
_MILLISECONDS = ".ms"


def default_settings(own: Mapping[str, ConfigEntry], broker: Mapping[str, ConfigEntry]) -> dict[str, str]:
    """Return topic setting → the value of topics that do not set it, as far as it is known.

    Args:
        own: topic setting → the entry of a topic that sets it. Its synonyms are the settings of the broker
            that it overrides, with their values. A setting of the broker with the same name is not among
            them: librdkafka has one entry for each name.
        broker: the settings of a broker; empty = they could not be read.
    """
    found: dict[str, str] = {}
    for key, entry in own.items():
        value = next(_values(key, entry, broker), None)
        if value is not None:
            found[key] = value
    return found


def _values(key: str, entry: ConfigEntry, broker: Mapping[str, ConfigEntry]) -> Iterator[str]:
    """Yield the values of the broker, the one that has priority first."""
    if key in broker and broker[key].value is not None:
        yield str(broker[key].value)
    for name, synonym in (entry.synonyms or {}).items():
        if name != key:
            live = broker.get(name, synonym).value
            value = None if live is None else _converted(key, name, str(live))
            if value is not None:
                yield value


def _converted(key: str, name: str, value: str) -> str | None:
    """Return the value in the unit of the topic setting; None if it cannot be converted."""
    if not key.endswith(_MILLISECONDS):
        return value
    factor = next((factor for unit, factor in _UNITS.items() if name.endswith(unit)), 1)
    if factor == 1:
        return value
    return str(int(value) * factor) if value.isdecimal() else None
