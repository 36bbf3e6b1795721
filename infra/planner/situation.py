"""What the rules look at: one application, its topics as wanted, live and recorded."""

from functools import cached_property

import attrs

from infra.compiler.renumbering import renumbering_problems
from infra.compiler.streams_config import SetupMode, StreamsConfig
from infra.model.cluster import ClusterSnapshot, LiveTopic
from infra.model.compiled import CompiledApplication, InternalTopic
from infra.model.problems import Problem, ProblemCode, Severity, errors
from infra.model.record import RecordedTopic, SetupRecord
from infra.model.topology import Sink


@attrs.frozen
class TopicState:
    """One topic that the topology wants: `partitions` of it, what is `live` and what was `recorded`."""

    wanted: InternalTopic | Sink
    partitions: int
    live: LiveTopic | None
    recorded: RecordedTopic | None
    is_ours: bool
    """Whether an earlier run set it up, be it that it could not finish."""

    @property
    def name(self) -> str:
        return self.wanted.name if isinstance(self.wanted, InternalTopic) else self.wanted.topic

    @property
    def is_internal(self) -> bool:
        return isinstance(self.wanted, InternalTopic)

    @property
    def title(self) -> str:
        """The topic's name with what it is, to begin a sentence with."""
        return f"{'Internal' if self.is_internal else 'Sink'} topic {self.name}"

    @property
    def is_lost(self) -> bool:
        """Set up once and gone from the cluster."""
        return self.live is None and self.recorded is not None and bool(self.recorded.topic_id)

    @property
    def is_replaced(self) -> bool:
        """A topic of this name exists, but it is not the one that was set up."""
        if self.live is None or self.recorded is None:
            return False
        is_known = bool(self.live.topic_id and self.recorded.topic_id)
        return is_known and self.live.topic_id != self.recorded.topic_id

    @property
    def is_emptied(self) -> bool:
        """Replaced by a topic that holds nothing; one of which that is not known counts as such."""
        return self.live is not None and self.is_replaced and self.live.is_empty is not False

    @property
    def lacking(self) -> int:
        """Partitions that the live topic has too few of."""
        return max(0, self.partitions - self.live.partitions) if self.live else 0


@attrs.frozen
class Situation:
    """One active application before a run."""

    compiled: CompiledApplication
    snapshot: ClusterSnapshot
    record: SetupRecord | None
    predecessor: SetupRecord | None = None
    """The record of the id that the application had before (`renamedFrom`)."""
    elapsed_ms: int = 0

    @property
    def id(self) -> str:
        return self.compiled.application.id

    @cached_property
    def config(self) -> StreamsConfig:
        return StreamsConfig.of(self.compiled.application)

    @property
    def is_manual(self) -> bool:
        return self.config.setup_mode is SetupMode.MANUAL

    @property
    def is_decided(self) -> bool:
        """Whether all topics of the topology and their counts are known."""
        return not errors(self.compiled.problems) and not self.compiled.missing_sources

    @cached_property
    def renumberings(self) -> tuple[Problem, ...]:
        """A problem for each topic that goes on under another generated name."""
        if self.record is None:
            return ()
        recorded = {name: self.record.origins.get(name, "") for name in self.record.generated}
        return renumbering_problems(recorded, self.compiled)

    @cached_property
    def is_lossy(self) -> bool:
        """Whether something that was set up is gone, or would be."""
        return bool(self.renumberings) or any(state.is_lost or state.is_emptied for state in self.internal)

    @cached_property
    def topics(self) -> tuple[TopicState, ...]:
        """Every topic that the topology wants, internal ones first."""
        internal = [
            self._state(topic, topic.name, topic.partitions) for topic in self.compiled.internal_topics
        ]
        sinks = [
            self._state(sink, sink.topic, sink.partitions) for sink in self.compiled.sinks if sink.partitions
        ]
        return (*internal, *sinks)

    @cached_property
    def internal(self) -> tuple[TopicState, ...]:
        return tuple(state for state in self.topics if state.is_internal)

    def _state(self, wanted: InternalTopic | Sink, name: str, partitions: int) -> TopicState:
        recorded = self.record.topics.get(name) if self.record else None
        is_ours = recorded is not None or (self.record is not None and self.record.unfinished)
        return TopicState(wanted, partitions, self.snapshot.topics.get(name), recorded, is_ours)

    def problem(
        self,
        code: ProblemCode,
        summary: str,
        *,
        about: TopicState | None = None,
        expected: str | None = None,
        found: str | None = None,
        why: str,
        fix: str,
        severity: Severity = Severity.ERROR,
    ) -> Problem:
        """Return a problem of this application, located at the topic's operator or at the application."""
        wanted = about.wanted if about else None
        internal = wanted if isinstance(wanted, InternalTopic) else None
        return Problem(
            code=code,
            summary=summary,
            application=self.id,
            topic=about.name if about else None,
            node=internal.node if internal else None,
            expected=expected,
            found=found,
            why=why,
            fix=fix,
            location=(internal.at if internal else None) or self.compiled.application.at,
            severity=severity,
        )
