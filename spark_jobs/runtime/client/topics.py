"""Whether an application's topics are as it needs them: before it starts, and while it runs (KIP-698).

The judgement is the planner's. `manual`: what is wrong stops the application. `automatic`: what can be made
or put right is, with a warning.
"""

import time
from collections.abc import Iterator, Mapping, Sequence

import attrs
import structlog

from infra.change import admin_client, change_topics
from infra.compiler import StreamsConfig, compile_document
from infra.compiler.streams_config import SetupMode
from infra.model.cluster import ClusterSnapshot
from infra.model.compiled import CompiledApplication
from infra.model.problems import Problem, ProblemCode, ProblemsError, Severity, errors
from infra.model.record import RecordedTopic, SetupRecord
from infra.model.topology import TopologyDocument
from infra.observe import Connection, KafkaClusterReader, snapshot_request
from infra.planner import ActionKind, Plan, PlanPolicy, TopicAction, plan

_log = structlog.get_logger(__name__)
_MADE = (ActionKind.CREATE, ActionKind.RECREATE)
_NOT_OURS = (
    ProblemCode.GROUP_ACTIVE,
    ProblemCode.INTERNAL_TOPICS_ALREADY_SETUP,
    ProblemCode.APPLICATION_REMOVED,
)


@attrs.frozen
class _Change:
    """`infra.change.TopicChange`."""

    name: str
    create: bool
    partitions: int | None
    replication_factor: int
    config: Mapping[str, str | None]


@attrs.frozen
class Look:
    """What was seen: the compiled application, the cluster, and what is wrong or was put right."""

    compiled: CompiledApplication
    snapshot: ClusterSnapshot
    problems: tuple[Problem, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        return self.snapshot.partitions


class TopicKeeper:
    """Looks after the topics of one document; remembers which topics there were."""

    def __init__(self, document: TopologyDocument, connection: Connection) -> None:
        self._document = document
        self._connection = connection
        self._reader = KafkaClusterReader(connection)
        self._is_manual = StreamsConfig.of(document.application).setup_mode is SetupMode.MANUAL
        self._ids: Mapping[str, str] = {}

    def prepare(self) -> Look:
        """Have everything ready for a start; raises `ProblemsError`."""
        look, made = self._judge(None)
        missing = self._missing(made, look.compiled) if self._is_manual else ()
        wrong = (*errors(look.problems), *missing)
        if wrong:
            raise ProblemsError(wrong)
        if not self._is_manual:
            look = self._put_right(look, made)
        self._remember(look)
        return look

    def look(self) -> Look:
        """Look again while it runs; errors among the problems are reasons to stop. Raises `ProblemsError`."""
        look, made = self._judge(self._record())
        if not self._is_manual and not errors(look.problems):
            look = self._put_right(look, made)
            self._remember(look)
        return look

    def has_changed(self) -> bool:
        """Return cheaply whether a topic came, went or was replaced; raises `ProblemsError`."""
        return self._reader.topic_ids(sorted(self._ids)) != self._ids

    def _judge(self, record: SetupRecord | None) -> tuple[Look, Plan]:
        records = {record.application_id: record} if record is not None else {}
        snapshot = self._reader.read(snapshot_request([self._document], records))
        compiled = compile_document(self._document, snapshot.partitions)
        made = plan([compiled], snapshot, records, PlanPolicy())
        problems = tuple(problem for problem in made.problems if problem.code not in _NOT_OURS)
        return Look(compiled, snapshot, problems), made

    def _record(self) -> SetupRecord:
        """What is known to have been there, in the planner's words."""
        topics = {name: RecordedTopic(name, id_, 0) for name, id_ in self._ids.items()}
        return SetupRecord(self._document.application.id, topics, initial_processors=1)

    def _remember(self, look: Look) -> None:
        wanted = {topic.name for topic in look.compiled.internal_topics} | set(look.compiled.external_sources)
        self._ids = self._reader.topic_ids(sorted(wanted))

    def _missing(self, made: Plan, compiled: CompiledApplication) -> Iterator[Problem]:
        known = {topic.name: topic for topic in compiled.internal_topics}
        for action in made.actions:
            if action.kind in _MADE and action.name in known:
                yield _not_set_up(compiled.application.id, action, known[action.name].node)

    def _put_right(self, look: Look, made: Plan) -> Look:
        changes = [_change(action) for action in made.actions if action.is_change and _is_for_us(action)]
        if not changes:
            return look
        for change in changes:
            _log.warning(
                "internal topic set up" if change.create else "internal topic put right", topic=change.name
            )
        if failed := change_topics(admin_client(self._connection), changes):
            raise ProblemsError([_not_changed(look.compiled.application.id, text) for text in failed])
        return self._awaited([change.name for change in changes], look)

    def _awaited(self, names: Sequence[str], look: Look) -> Look:
        """Look again when every broker's answer has what was made."""
        while len(self._reader.topic_ids(names)) < len(names):
            time.sleep(0.05)
        again, _ = self._judge(None)
        return attrs.evolve(again, problems=look.problems)


def _is_for_us(action: TopicAction) -> bool:
    """Partitions of a topic that exists are added by the agent, which knows when."""
    return action.kind in (*_MADE, ActionKind.RECTIFY)


def _change(action: TopicAction) -> _Change:
    create = action.kind in _MADE
    return _Change(
        name=action.name,
        create=create,
        partitions=action.partitions if create else None,
        replication_factor=action.replication_factor,
        config=action.config if create else {change.key: change.wanted for change in action.changes},
    )


def _not_set_up(application: str, action: TopicAction, node: str) -> Problem:
    return Problem(
        code=ProblemCode.MISSING_INTERNAL_TOPICS,
        summary=f"Internal topic {action.name} does not exist.",
        application=application,
        topic=action.name,
        node=node,
        expected=f"a topic with {action.partitions} partitions",
        found="none",
        why="With `internal.topics.setup: manual` an application never makes its internal topics: one that "
        "is missing may have been lost.",
        fix="Set it up by `pulumi up`, or restore it if it was there. `internal.topics.setup: automatic` "
        "has the application make it.",
    )


def _not_changed(application: str, text: str) -> Problem:
    return Problem(
        code=ProblemCode.MISSING_INTERNAL_TOPICS,
        severity=Severity.ERROR,
        summary="An internal topic could not be set up.",
        application=application,
        expected="leave to create topics and to alter their settings",
        found=text,
        why="The application would lose state or records.",
        fix="Grant what the broker asks for, or set the topics up by `pulumi up`.",
    )
