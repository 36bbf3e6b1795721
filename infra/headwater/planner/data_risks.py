"""Find the changes of a plan that can lose data or move keys; reports show them before all others."""

from collections.abc import Iterator
from enum import IntEnum

import attrs

from headwater.planner.phrases import counted, setting_text
from headwater.planner.plans import ActionKind, ConfigChange, Plan, TopicAction

_LONGER_KEEPS_MORE = frozenset(
    {
        "delete.retention.ms",
        "file.delete.delay.ms",
        "local.retention.bytes",
        "local.retention.ms",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "retention.bytes",
        "retention.ms",
    }
)
"""Settings with which brokers keep or confirm less if the number is smaller; -1 is no limit."""
_ANY_CHANGE = frozenset({"cleanup.policy", "max.compaction.lag.ms", "remote.storage.enable"})
_UNCLEAN = "unclean.leader.election.enable"
_UNLIMITED = -1


class RiskKind(IntEnum):
    """What can happen, the worst first."""

    DELETION = 1
    LOSS = 2
    SETTING = 3
    MOVED_KEYS = 4


@attrs.frozen(order=True)
class DataRisk:
    """A change that can lose data or move keys; `text` says what happens to the topic."""

    kind: RiskKind
    application: str
    topic: str
    text: str


def data_risks(plan: Plan) -> tuple[DataRisk, ...]:
    """Return the risks of a plan, the worst first."""
    return tuple(
        sorted(
            DataRisk(kind, application.application_id, action.name, text)
            for application in plan.applications
            for action in application.actions
            for kind, text in _risks_of(action)
        )
    )


def _risks_of(action: TopicAction) -> Iterator[tuple[RiskKind, str]]:
    match action.kind:
        case ActionKind.DELETE:
            yield RiskKind.DELETION, "is deleted"
        case ActionKind.RETIRE:
            yield RiskKind.DELETION, "loses its protection, and a later run deletes it"
        case ActionKind.RECREATE:
            yield RiskKind.LOSS, "was lost, and is created again without its data"
        case _:
            for change in action.changes:
                if _can_lose_data(change):
                    yield (
                        RiskKind.SETTING,
                        f"{change.key}: {setting_text(change.live)} → {setting_text(change.declared)}",
                    )
            if action.live is not None and action.added_partitions > 0:
                partitions = counted(action.partitions, "partition")
                text = f"{action.live.partitions} → {partitions}: keys move to other partitions"
                yield RiskKind.MOVED_KEYS, text


def _can_lose_data(change: ConfigChange) -> bool:
    if change.key in _ANY_CHANGE:
        return True
    if change.key == _UNCLEAN:
        return change.declared == "true"
    if change.key not in _LONGER_KEEPS_MORE:
        return False
    live, declared = _number_of(change.live), _number_of(change.declared)
    if declared == _UNLIMITED:
        return False
    # Without a value, the default of the brokers counts, which may be any.
    return live is None or declared is None or live == _UNLIMITED or declared < live


def _number_of(value: str | None) -> int | None:
    try:
        return None if value is None else int(value)
    except ValueError:
        return None
