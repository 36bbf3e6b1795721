"""Checks of broker defaults that internal topics have, because Kafka Streams does not set them."""

from collections.abc import Iterator, Mapping

from headwater.doctor.findings import Check, Finding, Section
from headwater.model.broker_defaults import BROKER_DEFAULTS, BrokerDefault

_CLEANER = "log.cleaner.enable"
_CHECK = Check(Section.CLUSTER, "broker-defaults")
READ_SETTINGS = (*(each.broker_key for each in BROKER_DEFAULTS.values()), _CLEANER)
"""The settings of a broker that `broker_default_findings` reads."""


def broker_default_findings(
    settings: Mapping[str, str] | None, declared: Mapping[str, frozenset[str]]
) -> Iterator[Finding]:
    """Yield a warning for each setting of the brokers that harms internal topics.

    Args:
        settings: settings of one broker; None = not known.
        declared: application → the settings of all internal topics in its document (`topic.`).
    """
    if settings is None:
        yield _CHECK.unknown(
            "It is not known whether defaults of the brokers harm internal topics.",
            fix="Grant this user DescribeConfigs on the cluster.",
        )
        return
    harmful = [
        (default, value)
        for default in BROKER_DEFAULTS.values()
        if (value := settings.get(default.broker_key)) is not None and default.is_harmful(value)
    ]
    warned = False
    for default, value in harmful:
        harmed = sorted(id_ for id_, keys in declared.items() if default.key not in keys)
        if harmed or not declared:
            warned = True
            yield _default_finding(default, value, harmed)
    if settings.get(_CLEANER) == "false":
        warned = True
        yield _CHECK.warning(
            f"The brokers do not compact topics ({_CLEANER}=false).",
            why="Changelog topics keep every update of every key: they fill the disks, and each restore of "
            "a store reads all of it.",
            fix=f"Set {_CLEANER}=true on all brokers, and restart them.",
        )
    if not warned:
        yield _CHECK.ok("no default of the brokers harms internal topics")


def _default_finding(default: BrokerDefault, value: str, harmed: list[str]) -> Finding:
    of = f" of {', '.join(harmed)}" if harmed else ""
    return _CHECK.warning(
        f"Internal topics{of} have the brokers' default {default.key}={value}.",
        why=default.effect,
        fix=f"Declare `topic.{default.key}: {default.harmless}` in the config of each application, or set "
        f"{default.broker_key} of the brokers to {default.harmless}.",
    )
