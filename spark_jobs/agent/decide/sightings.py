"""Which partition counts are believed, while brokers learn of changes at different times."""

from collections.abc import Iterable, Mapping

from spark_jobs.agent.state import Sighting, TopicCounts, TopicResult


def seen(
    sightings: Mapping[str, Sighting], counts: TopicCounts, clock_ms: int, lag_ms: int
) -> Mapping[str, Sighting]:
    """Return the sightings after a look at the cluster.

    A higher count is news and believed at once: an expansion starts with it. A lower one, or none, may come
    from a broker that lags behind; it is believed when no other count was seen for `lag_ms`.
    """
    looked = {
        name: _seen(sightings.get(name), counts.get(name, 0), clock_ms, lag_ms)
        for name in counts.keys() | sightings.keys()
    }
    return {name: sighting for name, sighting in looked.items() if sighting.partitions}


def _seen(known: Sighting | None, partitions: int, clock_ms: int, lag_ms: int) -> Sighting:
    if known is None or partitions > known.partitions:
        return Sighting(partitions)
    if partitions == known.partitions:
        return known if known.lower_since_ms is None else Sighting(partitions)
    if known.lower_since_ms is None:
        return Sighting(known.partitions, clock_ms)
    return Sighting(partitions) if clock_ms - known.lower_since_ms >= lag_ms else known


def expanded(sightings: Mapping[str, Sighting], results: Iterable[TopicResult]) -> Mapping[str, Sighting]:
    """Return the sightings after an attempt: what the controller answered holds before metadata shows it."""
    changed = dict(sightings)
    for result in results:
        known = changed.get(result.topic)
        if result.is_success and known is not None and result.partitions > known.partitions:
            changed[result.topic] = Sighting(result.partitions)
    return changed


def counts(sightings: Mapping[str, Sighting]) -> TopicCounts:
    return {name: sighting.partitions for name, sighting in sightings.items()}


def doubtful_until(sightings: Iterable[Sighting], lag_ms: int) -> int | None:
    """Return when the first of the lower counts will have been seen for long enough."""
    since = [sighting.lower_since_ms for sighting in sightings if sighting.lower_since_ms is not None]
    return min(since) + lag_ms if since else None
