"""Checks of broker defaults that internal topics have, because Kafka Streams does not set them."""

from collections.abc import Iterator, Mapping

import attrs

from headwater.doctor.findings import Check, Finding, Section
from headwater.model.broker_defaults import BROKER_DEFAULTS, LARGEST_REQUEST, BrokerDefault

_CLEANER = "log.cleaner.enable"
_CHECK = Check(Section.CLUSTER, "broker-defaults")
READ_SETTINGS = (*(each.broker_key for each in BROKER_DEFAULTS.values()), _CLEANER)
"""The settings of a broker that `broker_default_findings` reads."""


@attrs.frozen(kw_only=True)
class DeclaredSettings:
    """What the document of an application declares about the settings of its internal topics."""

    keys: frozenset[str] = frozenset()
    """Settings that it declares for all of them (`topic.`)."""
    refused: frozenset[str] = frozenset()
    """Settings that its cluster profile refuses."""
    largest_request: int = LARGEST_REQUEST
    """`max.request.size` of its producers."""

    def is_harmed(self, default: BrokerDefault, value: str) -> bool:
        """Return whether the topics have the default `value`, and a declared setting would help."""
        is_free = default.key not in self.keys and default.key not in self.refused
        return is_free and default.is_harmful(value, self.largest_request)


_UNDECLARED = {"": DeclaredSettings()}
"""The application of a user that names no document."""


def broker_default_findings(
    settings: Mapping[str, str] | None, declared: Mapping[str, DeclaredSettings]
) -> Iterator[Finding]:
    """Yield a warning for each setting of the brokers that harms internal topics.

    `settings` are settings of one broker, None = not known; what it does not show is missing or empty.
    `declared` is application → what its document declares.
    """
    if settings is None:
        yield _CHECK.unknown(
            "It is not known whether defaults of the brokers harm internal topics.",
            fix="Grant this user DescribeConfigs on the cluster.",
        )
        return
    warned, hidden = False, []
    for default in BROKER_DEFAULTS.values():
        value = settings.get(default.broker_key)
        if not value:
            hidden.append(default.broker_key)
            continue
        applications = {
            id_: each for id_, each in (declared or _UNDECLARED).items() if each.is_harmed(default, value)
        }
        if applications:
            warned = True
            yield _default_finding(default, value, applications)
    if settings.get(_CLEANER) == "false":
        warned = True
        yield _CHECK.warning(
            f"The brokers do not compact topics ({_CLEANER}=false).",
            why="Changelog topics keep every update of every key: they fill the disks, and each restore of "
            "a store reads all of it.",
            fix=f"Set {_CLEANER}=true on all brokers, and restart them.",
        )
    if hidden:
        yield _CHECK.unknown(
            f"The brokers do not show the values of {', '.join(hidden)}: it is not known whether they harm "
            "internal topics.",
            fix="Ask the operator or the provider of the cluster for these values.",
        )
    elif not warned:
        yield _CHECK.ok("no default of the brokers harms internal topics")


def _default_finding(default: BrokerDefault, value: str, harmed: Mapping[str, DeclaredSettings]) -> Finding:
    of = f" of {', '.join(sorted(harmed))}" if any(harmed) else ""
    harmless = default.harmless_value(max(each.largest_request for each in harmed.values()))
    return _CHECK.warning(
        f"Internal topics{of} have the brokers' default {default.key}={value}.",
        why=default.effect,
        fix=f"Declare `topic.{default.key}: {harmless}` in the config of each application, or set "
        f"{default.broker_key} of the brokers to {harmless}. If the default is intended, declare {value}.",
    )
