"""The result of checking an application's topics: problems, and the changes it makes itself (KIP-698).

The planner decides. With `internal.topics.setup: manual` every error stops the application. With `automatic`
it creates and reconfigures internal topics itself, with a warning.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.compiler import StreamsConfig
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.problems import Problem, ProblemCode
from headwater.planner import ActionKind, Plan, TopicAction

_CREATES = (ActionKind.CREATE, ActionKind.RECREATE)


@attrs.frozen
class InternalTopicChange:
    """A change that the application makes to an internal topic (`headwater.change.TopicChange`)."""

    name: str
    create: bool
    partitions: int | None
    replication_factor: int
    config: Mapping[str, str | None]


@attrs.frozen(kw_only=True)
class TopicCheck:
    """One check of the topics: the compiled application, the cluster, problems and required changes.

    `topic_ids` is topic → id of the required topics that exist. `lost` are topics that were known by an id
    that no longer exists, whether or not another topic has their name.
    """

    compiled: CompiledApplication
    snapshot: ClusterSnapshot
    problems: tuple[Problem, ...]
    changes: tuple[InternalTopicChange, ...]
    topic_ids: Mapping[str, str]
    lost: frozenset[str]

    @property
    def partition_counts(self) -> Mapping[str, int]:
        return self.snapshot.partitions


@attrs.define
class UnevenExpansion:
    """Tolerates different partition counts of joined topics for a while, with autoscaling (KIP-878).

    Also with a number of processors: then the inputs are expanded while the application runs.

    Two topics cannot be expanded at the same moment, so a check in between must not stop the application. The
    time limit is the limit of an expansion.
    """

    _max_seconds: float
    _since: float | None = attrs.field(default=None, init=False)

    @classmethod
    def from_config(cls, config: StreamsConfig, processors: int | None = None) -> "UnevenExpansion":
        is_tolerant = config.autoscaling or processors is not None
        return cls(config.autoscaling_timeout_ms / 1000 if is_tolerant else 0.0)

    def is_tolerated(self, errors: Sequence[Problem], now: float) -> bool:
        """Return whether the errors of a check are tolerated; call it after each check.

        `now` is seconds of a monotonic clock.
        """
        if {problem.code for problem in errors} != {ProblemCode.NOT_COPARTITIONED}:
            self._since = None
            return False
        self._since = now if self._since is None else self._since
        return now - self._since < self._max_seconds


def own_change(action: TopicAction) -> InternalTopicChange | None:
    """Return the change that an application makes itself for a planned action; None = no change.

    The agent adds partitions to existing topics, because it knows the right moment.
    """
    create = action.kind in _CREATES
    settings = {change.key: change.declared for change in action.changes}
    if not create and not (settings and isinstance(action.topic, InternalTopic)):
        return None
    return InternalTopicChange(
        name=action.name,
        create=create,
        partitions=action.partitions if create else None,
        replication_factor=action.replication_factor,
        config=action.config if create else settings,
    )


def topic_problems(compiled: CompiledApplication, plan: Plan, *, is_manual: bool) -> Iterator[Problem]:
    """Yield the plan's problems; with manual setup also one for each internal topic that is missing."""
    yield from plan.problems
    if not is_manual:
        return
    reported = {
        problem.topic for problem in plan.problems if problem.code is ProblemCode.MISSING_INTERNAL_TOPICS
    }
    missing = {topic.name for topic in compiled.internal_topics} - reported
    for action in plan.actions:
        if action.kind in _CREATES and action.name in missing:
            yield _not_set_up(compiled.application.id, action)


def without_expansion(
    problems: Iterable[Problem],
    compiled: CompiledApplication,
    counts: Mapping[str, int],
    target: int | None,
) -> Iterator[Problem]:
    """Yield `problems` without problems of changelog topics that an expansion of processors has expanded.

    `target` is its number of processors; None = there is no expansion. `counts` is topic → partition count.
    """
    changelogs = {topic for part in compiled.subtopologies for topic in part.changelog_topics}
    for problem in problems:
        is_expanded = problem.topic in changelogs and counts.get(problem.topic) == target
        if problem.code is not ProblemCode.PROCESSOR_COUNT or target is None or not is_expanded:
            yield problem


def change_failed(application: str, text: str) -> Problem:
    """Return the problem that the brokers refused a change."""
    return Problem(
        code=ProblemCode.MISSING_INTERNAL_TOPICS,
        summary="An internal topic could not be set up.",
        application=application,
        expected="permission to create topics and to alter their settings",
        found=text,
        why="The application would lose state or records.",
        fix="Grant the permission that the broker requires, or set the topics up by `pulumi up`.",
    )


def topic_vanished(application: str, topic: str) -> Problem:
    """Return the problem that a topic disappeared right after it was set up."""
    return Problem(
        code=ProblemCode.MISSING_INTERNAL_TOPICS,
        summary=f"Internal topic {topic} was set up but does not exist.",
        application=application,
        topic=topic,
        expected="a topic that is not deleted",
        found="none",
        why="A client deletes it, or the brokers' metadata is inconsistent. A running application sets it "
        "up again.",
        fix="Find the client that deletes topics of this application.",
    )


def _not_set_up(application: str, action: TopicAction) -> Problem:
    topic = action.topic
    return Problem(
        code=ProblemCode.MISSING_INTERNAL_TOPICS,
        summary=f"Internal topic {action.name} does not exist.",
        application=application,
        topic=action.name,
        node=topic.node if isinstance(topic, InternalTopic) else None,
        expected=f"a topic with {action.partitions} partitions",
        found="none",
        why="With `internal.topics.setup: manual` an application never creates its internal topics: a "
        "missing one may have been lost.",
        fix="Set it up by `pulumi up`, or restore it if it existed before. With `internal.topics.setup: "
        "automatic` the application creates it.",
    )
