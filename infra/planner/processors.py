"""The processors of an application's sub-topologies with state, as declared, live and recorded (KIP-287)."""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from infra.model.compiled import InternalTopic, SubTopology, TopicKind
from infra.model.linear_hashing import is_doubled
from infra.planner.counts import CountedApplication, CountedTopic


@attrs.frozen
class Processors:
    """The processors of one sub-topology with state whose partition counts are decided.

    `declared` is the number in the document. `live` is the partition count of the changelog topics, `initial`
    the recorded number, else the live one; None = the sub-topology is not set up yet, or its state is gone.
    """

    part: SubTopology
    declared: int
    initial: int | None
    live: int | None

    @property
    def inputs(self) -> Mapping[str, int]:
        """Input topic → partition count."""
        return self.part.source_partitions

    @property
    def starts_with(self) -> int:
        """The initial number of processors, also if this run sets it up."""
        return self.declared if self.initial is None else self.initial

    @property
    def too_narrow(self) -> Sequence[str]:
        """The inputs with fewer partitions than processors."""
        return tuple(topic for topic, count in self.inputs.items() if count < self.declared)

    @property
    def misplaced(self) -> Sequence[str]:
        """The inputs with a count at which the default partitioner sends keys to other processors."""
        return tuple(
            topic
            for topic, count in self.inputs.items()
            if topic not in self.too_narrow and not is_doubled(count, self.starts_with)
        )


def declared_processors(application: CountedApplication) -> Iterator[Processors]:
    """Yield the processors of each sub-topology with state, if the document declares a number."""
    if application.compiled.application.processors is None:
        return
    live = live_changelogs(application)
    for part in application.compiled.subtopologies:
        is_decided = bool(part.sources) and part.source_partitions.keys() == set(part.sources)
        if part.processors is not None and is_decided:
            own = [live[name] for name in part.changelog_topics if name in live]
            recorded = (application.initial[topic] for topic in part.sources if topic in application.initial)
            count = max(own, default=None)
            initial = next(recorded, count) if own else None
            yield Processors(part, part.processors, initial, count)


def live_changelogs(application: CountedApplication) -> Mapping[str, int]:
    """Return the changelog topics on the cluster with their partition counts."""
    return {
        topic.name: topic.live_partitions
        for topic in application.internal
        if _is_changelog(topic) and topic.live_partitions is not None
    }


def has_own_count(application: CountedApplication, topic: CountedTopic) -> bool:
    """Return whether `topic` is a changelog whose count is a number of processors, declared or recorded.

    Such a topic is never expanded. With `setup.allowUnsafeExpansion` an application returns to `follow`.
    """
    if not _is_changelog(topic):
        return False
    if application.compiled.application.processors is not None:
        return True
    return bool(application.initial) and not application.compiled.application.setup.allow_unsafe_expansion


def initial_processors(application: CountedApplication) -> Mapping[str, int]:
    """Return the numbers to record: source topic → initial number of processors.

    Numbers of topics that no sub-topology with state reads any more stay: it may return. Without a declared
    number nothing is recorded, because each partition has its own processor again.
    """
    if application.compiled.application.processors is None:
        return {}
    found = {
        topic: processors.starts_with
        for processors in declared_processors(application)
        for topic in processors.inputs
    }
    return {**application.initial, **found}


def _is_changelog(topic: CountedTopic) -> bool:
    return isinstance(topic.declared, InternalTopic) and topic.declared.kind is TopicKind.CHANGELOG
