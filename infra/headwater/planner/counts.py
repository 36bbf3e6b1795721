"""What rules about partition counts read: the topics of one application, with expected and live counts."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import attrs

from headwater.compiler.streams_config import StreamsConfig
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.offset_metadata import MoveMark
from headwater.model.problems import Caller, Location, Problem, ProblemCode, Severity
from headwater.model.topology import Sink


@attrs.frozen(kw_only=True)
class CountedTopic:
    """One topic that an application declares, with its partition counts."""

    declared: InternalTopic | Sink
    partitions: int
    """The count that it must have."""
    live_partitions: int | None
    """The count on the cluster; None = it does not exist."""
    recorded_partitions: int | None
    """The count that it had when it was set up, or last agreed with its sources; None = not known."""
    live_records: int | None = None
    """How many records it has at most; None = not read (`LiveTopic.records`)."""

    @property
    def name(self) -> str:
        return self.declared.name if isinstance(self.declared, InternalTopic) else self.declared.topic

    @property
    def is_internal(self) -> bool:
        return isinstance(self.declared, InternalTopic)

    @property
    def title(self) -> str:
        """Kind and name of the topic, to begin a sentence with."""
        return f"{'Internal' if self.is_internal else 'Sink'} topic {self.name}"

    @property
    def missing_partitions(self) -> int:
        """How many partitions the live topic has too few; 0 if it does not exist."""
        return max(0, self.partitions - self.live_partitions) if self.live_partitions is not None else 0


_COUNT_CODES = frozenset(
    {
        ProblemCode.OVER_PARTITIONED,
        ProblemCode.UNDER_PARTITIONED,
        ProblemCode.SOURCE_TOPICS_EXPANDED,
        ProblemCode.EXPLICIT_COUNT_CHANGED,
        ProblemCode.UNSAFE_EXPANSION,
    }
)
RESHARDED = (
    "A reshard of {} has begun and is not complete: its state is in old and new partitions. A topic that "
    "you delete or copy now loses a part of it."
)
CONTINUE_RESHARD = (
    "If `headwater reshard` still runs, wait until it ends. Otherwise run `headwater reshard` again, with "
    "the same options: it continues where it was interrupted. Do not start the application, change its "
    "topics or run `pulumi up` before."
)


@attrs.frozen(kw_only=True)
class CountedApplication:
    """One application with the counts of its topics, internal topics first: all that some rules need."""

    compiled: CompiledApplication
    topics: Sequence[CountedTopic]
    caller: Caller
    initial: Mapping[str, int] = attrs.field(factory=dict)
    """Source topic → recorded initial number of processors; empty = none declared, or no record known."""
    present: int | None = None
    """The committed number of processors; None = the partition count of the changelog topics."""
    has_undeclared_processors: bool = False
    """Whether tasks have committed a number of processors, and neither document nor setup record has one."""
    move: MoveMark | None = None
    """The expansion, or the move of the state, that is not complete."""
    is_resharded: bool = False
    """Whether a reshard has begun and is not complete."""
    unread_reshard: Problem | None = None
    """Why it is not known whether a reshard is complete; None = it is known, or need not be."""
    unread_count: Problem | None = None
    """Why the committed number could not be read; None = it was, or need not be."""

    @property
    def id(self) -> str:
        return self.compiled.application.id

    @cached_property
    def config(self) -> StreamsConfig:
        return StreamsConfig.from_application(self.compiled.application)

    @property
    def internal(self) -> Sequence[CountedTopic]:
        return tuple(topic for topic in self.topics if topic.is_internal)

    def has_explicit_count(self, topic: CountedTopic) -> bool:
        """Return whether an explicit count of the document, of this topic or of its sub-topology, decides."""
        declared = topic.declared
        if not isinstance(declared, InternalTopic):
            return False
        return declared.pinned or any(
            other.pinned
            and other.subtopology == declared.subtopology
            and other.partitions == topic.partitions
            for other in self.compiled.internal_topics
            if other.subtopology is not None
        )

    def problem(
        self,
        code: ProblemCode,
        summary: str,
        *,
        topic: CountedTopic | None = None,
        expected: str | None = None,
        found: str | None = None,
        why: str,
        fix: str,
        severity: Severity = Severity.ERROR,
        at: Location | None = None,
    ) -> Problem:
        """Return a problem of this application, located at `at`, the topic's operator or the application.

        While a reshard is not complete, problems of counts say to complete it: each other fix would lose what
        has moved. If that is not known, they say so first.
        """
        if self.is_resharded and code in _COUNT_CODES:
            why, fix = RESHARDED.format(self.id), CONTINUE_RESHARD
        elif self.unread_reshard is not None and code in _COUNT_CODES:
            fix = (
                f"It is not known whether a reshard of {self.id} is complete "
                f"({self.unread_reshard.summary.rstrip('.')}). If one was interrupted, run `headwater "
                f"reshard` again, and do nothing else. Otherwise: {fix}"
            )
        declared = topic.declared if topic else None
        internal = declared if isinstance(declared, InternalTopic) else None
        return Problem(
            code=code,
            summary=summary,
            application=self.id,
            topic=topic.name if topic else None,
            node=internal.node if internal else None,
            expected=expected,
            found=found,
            why=why,
            fix=fix,
            location=at or (internal.at if internal else None) or self.compiled.application.at,
            severity=severity,
        )
