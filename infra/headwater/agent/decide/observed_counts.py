"""The partition counts that the agent uses, while brokers learn of changes at different times."""

from collections.abc import Iterable, Mapping

from headwater.agent.state import ObservedCount, TopicCounts, TopicResult


def after_metadata(
    observed: Mapping[str, ObservedCount], counts: TopicCounts, clock_ms: int, lag_ms: int
) -> Mapping[str, ObservedCount]:
    """Return the observed counts after the cluster was read.

    A higher count is used at once: an expansion starts with it. A lower count, or a missing topic, can be the
    answer of a broker that lags behind. It is used when no other count was observed for `lag_ms`.
    """
    updated = {
        name: _updated(observed.get(name), counts.get(name, 0), clock_ms, lag_ms)
        for name in counts.keys() | observed.keys()
    }
    return {name: count for name, count in updated.items() if count.partitions}


def _updated(known: ObservedCount | None, partitions: int, clock_ms: int, lag_ms: int) -> ObservedCount:
    if known is None or partitions >= known.partitions:
        return ObservedCount(partitions)
    if known.lower_since_ms is None:
        return ObservedCount(known.partitions, clock_ms)
    return ObservedCount(partitions) if clock_ms - known.lower_since_ms >= lag_ms else known


def after_attempt(
    observed: Mapping[str, ObservedCount], results: Iterable[TopicResult]
) -> Mapping[str, ObservedCount]:
    """Return the observed counts after an attempt: an answer of the controller counts before the metadata."""
    changed = dict(observed)
    for result in results:
        known = changed.get(result.topic)
        if result.is_success and known is not None and result.partitions > known.partitions:
            changed[result.topic] = ObservedCount(result.partitions)
    return changed


def counts(observed: Mapping[str, ObservedCount]) -> TopicCounts:
    return {name: count.partitions for name, count in observed.items()}


def next_confirmation(observed: Iterable[ObservedCount], lag_ms: int) -> int | None:
    """Return when the first of the lower counts will have been observed for `lag_ms`, if there is one."""
    since = [count.lower_since_ms for count in observed if count.lower_since_ms is not None]
    return min(since) + lag_ms if since else None
