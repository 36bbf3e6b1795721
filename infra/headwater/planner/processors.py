"""The processors of an application's sub-topologies with state, as declared, live and recorded (KIP-287)."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.model.compiled import InternalTopic, SubTopology, TopicKind
from headwater.model.linear_hashing import is_doubled, round_start
from headwater.model.offset_metadata import MovePhase
from headwater.model.problems import AGENT
from headwater.planner.counts import CountedApplication, CountedTopic
from headwater.planner.phrases import count_phrase, seconds_phrase

_RECORDS_PER_SECOND = 80_000
"""How many changelog records an expansion reads, checks and copies per second, next to a loaded application.

The benchmark `processors` measured 80,000 to 130,000: with two cores, 530,000 records took 6.6 s, and 1.4
million took 10.8 s.
"""
_STEP_SECONDS = 10


@attrs.frozen
class ExpansionEstimate:
    """How many changelog records an expansion of processors reads at most, and about how long that takes."""

    records: int

    @property
    def seconds(self) -> int:
        """The duration, rounded up to tens of seconds."""
        return _STEP_SECONDS * max(1, math.ceil(self.records / _RECORDS_PER_SECOND / _STEP_SECONDS))

    @property
    def amount(self) -> str:
        """The number of records, as exact as it is useful."""
        return f"about {count_phrase(_round_number(self.records))} changelog records"

    @property
    def duration(self) -> str:
        return f"about {seconds_phrase(self.seconds)}"


@attrs.frozen
class Processors:
    """The processors of one sub-topology with state whose partition counts are decided.

    `declared` is the number in the document. `live` is the number that the state has: the partition count of
    the changelog topics, unless another one is committed; None = the sub-topology is not set up yet, or its
    state is gone. `initial` is the initial number, also if this run sets it up, or one that it was doubled
    to.
    """

    part: SubTopology
    declared: int
    initial: int
    live: int | None

    @property
    def inputs(self) -> Mapping[str, int]:
        """Input topic → partition count."""
        return self.part.source_partitions

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
            if topic not in self.too_narrow and not is_doubled(count, self.initial)
        )

    @property
    def larger(self) -> int:
        """How many processors have twice as many keys as the others."""
        before = round_start(self.initial, self.declared)
        return 0 if before is None or before == self.declared else 2 * before - self.declared

    @property
    def safe_counts(self) -> Iterator[int]:
        """Yield the partition counts that keep keys with their state, ascending, without end."""
        count = self.initial
        while True:
            if count >= self.declared:
                yield count
            count *= 2


def declared_processors(application: CountedApplication) -> Iterator[Processors]:
    """Yield the processors of each sub-topology with state, if the document declares a number."""
    declared = application.compiled.application.processors
    if declared is None:
        return
    live = live_changelogs(application)
    for part in application.compiled.subtopologies:
        is_decided = bool(part.sources) and part.source_partitions.keys() == set(part.sources)
        if part.processors is not None and is_decided:
            own = [live[name] for name in part.changelog_topics if name in live]
            count = application.present if own and application.present is not None else max(own, default=None)
            yield Processors(
                part, part.processors, _initial_number(application, part, declared, count), count
            )


def _initial_number(
    application: CountedApplication, part: SubTopology, declared: int, live: int | None
) -> int:
    """Return the initial number: as recorded, else of `linear-hash`, else the partition count of the inputs.

    Without state, it is the initial number of the application, unless each partition has a processor of its
    own again.
    """
    recorded = (application.initial[topic] for topic in part.sources if topic in application.initial)
    running, linear = application.compiled.application.initial_processors, application.config.linear_initial
    counts = set(part.source_partitions.values())
    if live is None:
        if linear is not None or counts == {declared}:
            return linear or declared
        return next(iter((*recorded, *application.initial.values(), running or declared)))
    known = next(recorded, None) or running or linear
    if known is not None or application.config.is_statically_partitioned:
        return known or live
    followed = {round_start(count, live) for count in counts if count >= live}
    return followed.pop() or live if len(followed) == 1 else live


def live_changelogs(application: CountedApplication) -> Mapping[str, int]:
    """Return the changelog topics on the cluster with their partition counts."""
    return {
        topic.name: topic.live_partitions
        for topic in application.internal
        if _is_changelog(topic) and topic.live_partitions is not None
    }


def known_numbers(application: CountedApplication) -> frozenset[int]:
    """Return the numbers of processors that the application has had, as cluster and record show."""
    changelogs = filter(_is_changelog, application.internal)
    return frozenset(
        {*application.initial.values(), *live_changelogs(application).values()}
        | ({application.present} if application.present is not None else set())
        | {topic.recorded_partitions for topic in changelogs if topic.recorded_partitions is not None}
    )


def processors_to_expand(application: CountedApplication) -> int | None:
    """Return the present number of processors if the running application can add those that are declared.

    All changelog topics exist and have this number of partitions, as when they were set up, or more if the
    number is committed; and the inputs have enough of them.
    """
    declared = application.compiled.application.processors
    changelogs = [topic for topic in application.internal if _is_changelog(topic)]
    live = {topic.live_partitions for topic in changelogs}
    least = min((count or 0 for count in live), default=0)
    have = least if application.present is None else application.present
    if declared is None or not 0 < have <= least:
        return None
    can_expand = (
        have < declared
        and (application.present is not None or _is_set_up_with(have, changelogs))
        and not application.config.is_statically_partitioned
        and not any(processors.too_narrow for processors in declared_processors(application))
    )
    return have if can_expand else None


def expansion_target(application: CountedApplication) -> int | None:
    """Return the number of processors that an expansion adds up to while it copies; None = there is none."""
    move = application.move
    return move.after if move is not None and move.phase is MovePhase.CATCH_UP else None


def _is_set_up_with(count: int, changelogs: Iterable[CountedTopic]) -> bool:
    """Return whether all changelog topics have `count` partitions, and had them when they were set up."""
    return all(topic.live_partitions == count == (topic.recorded_partitions or count) for topic in changelogs)


def kept_partitions(application: CountedApplication) -> int | None:
    """Return the partition count of changelog topics that have more of them than processors are declared."""
    declared = application.compiled.application.processors or 0
    if application.present is None or application.present > declared or expansion_target(application):
        return None
    widest = max(live_changelogs(application).values(), default=0)
    return widest if widest > declared else None


def estimated_expansion(
    application: CountedApplication, parts: Iterable[SubTopology]
) -> ExpansionEstimate | None:
    """Return what adding processors to these sub-topologies takes; None = not known, or no state yet."""
    records = {topic.name: topic.live_records for topic in application.internal}
    found = [records.get(name) for part in parts for name in part.changelog_topics]
    known = [count for count in found if count is not None]
    return ExpansionEstimate(sum(known)) if len(known) == len(found) and any(known) else None


def processors_in(application: CountedApplication, topic: CountedTopic) -> int | None:
    """Return how many processors the state in a changelog topic has; None = the topic does not exist."""
    have = topic.live_partitions
    return have if have is None or application.present is None else min(have, application.present)


def has_own_count(application: CountedApplication, topic: CountedTopic) -> bool:
    """Return whether `topic` is a changelog whose count is a number of processors.

    The number is declared, recorded or committed. Such a topic is never expanded. With
    `setup.allowUnsafeExpansion` an application returns to `follow`. The agent does not let it return: it does
    not know whether the application has the same document.
    """
    if not _is_changelog(topic):
        return False
    if application.compiled.application.processors is not None:
        return True
    if application.has_undeclared_processors and application.caller == AGENT:
        return True
    is_known = bool(application.initial) or application.has_undeclared_processors
    return is_known and not application.compiled.application.setup.allow_unsafe_expansion


def initial_processors(application: CountedApplication) -> Mapping[str, int]:
    """Return the numbers to record: source topic → initial number of processors.

    Numbers of topics that no sub-topology with state reads any more stay: it may return. Without a declared
    number nothing is recorded, because each partition has its own processor again.
    """
    if application.compiled.application.processors is None:
        return {}
    found = {
        topic: processors.initial
        for processors in declared_processors(application)
        for topic in processors.inputs
    }
    return {**application.initial, **found}


def _round_number(number: int) -> int:
    """Return `number` with its two leading digits."""
    return round(number, 2 - len(str(number)))


def _is_changelog(topic: CountedTopic) -> bool:
    return isinstance(topic.declared, InternalTopic) and topic.declared.kind is TopicKind.CHANGELOG
