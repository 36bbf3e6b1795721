"""The brokers do not have the group protocol of the application."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode
from headwater.model.topology import Protocol
from headwater.planner.application import ActiveApplication


def group_protocol(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-1071: the brokers need `streams` among their protocols, and the feature `streams.version`."""
    if application.compiled.application.protocol is not Protocol.STREAMS:
        return
    snapshot = application.snapshot
    protocols, features = snapshot.group_protocols, snapshot.features
    if protocols is not None and Protocol.STREAMS.value not in protocols:
        yield _missing(
            application,
            "`streams` in the brokers' group.coordinator.rebalance.protocols",
            ", ".join(sorted(protocols)),
        )
    elif features is not None and not features.get(_FEATURE):
        yield _missing(application, f"the feature {_FEATURE} at level 1 or higher", "not enabled")


def _missing(application: ActiveApplication, expected: str, found: str) -> Problem:
    return application.problem(
        ProblemCode.GROUP_PROTOCOL_MISSING,
        f"{application.id} uses the group protocol `streams`, which the brokers do not have.",
        expected=expected,
        found=found,
        why="The brokers reject the application's first heartbeat with UNSUPPORTED_VERSION: it does not "
        "start.",
        fix="Set `group.protocol: classic`. Or, with brokers of Kafka 4.2 or later, add `streams` to "
        "`group.coordinator.rebalance.protocols` and run `kafka-features.sh upgrade --feature "
        f"{_FEATURE}=1`.",
    )


_FEATURE = "streams.version"
