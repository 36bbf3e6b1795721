"""Whether an application's topics are as it needs them: before it starts, and while it runs (KIP-698).

The judgment is the planner's. `manual`: what is wrong stops the application. `automatic`: what can be made
or put right is, with a warning.
"""

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import attrs
import structlog

from infra.change import admin_client, change_topics
from infra.compiler import StreamsConfig, compile_document
from infra.compiler.streams_config import SetupMode
from infra.model.callers import APPLICATION
from infra.model.cluster import ClusterSnapshot
from infra.model.compiled import CompiledApplication
from infra.model.problems import Problem, ProblemCode, ProblemsError, errors
from infra.model.record import RecordedTopic, SetupRecord
from infra.model.topology import TopologyDocument
from infra.observe import Connection, KafkaClusterReader, snapshot_request
from infra.observe.pending_requests import in_background
from infra.planner import Plan, PlanPolicy, plan
from spark_jobs.runtime.driver.topic_changes import (
    Change,
    change_of,
    is_missing,
    not_changed,
    not_set_up,
    not_there,
)

_log = structlog.get_logger(__name__)
_SEEN_SECONDS = 30.0
"""How long a topic that was just made may take to show: brokers take less than a second."""


@attrs.frozen(kw_only=True)
class Look:
    """What was seen: the compiled application, the cluster, what is wrong, what is to be made or altered.

    `ids` is topic → id, of the topics that the application wants and that are there. `gone` are those that
    were remembered and are not there any more, whether or not others have their names.
    """

    compiled: CompiledApplication
    snapshot: ClusterSnapshot
    problems: tuple[Problem, ...]
    changes: tuple[Change, ...]
    ids: Mapping[str, str]
    gone: frozenset[str]

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
        self._counts: Mapping[str, int] = {}

    def prepare(self) -> Look:
        """Have everything ready for a start; raises `ProblemsError`."""
        look = self._look(None)
        if wrong := errors(look.problems):
            raise ProblemsError(wrong)
        look = self.put_right(look)
        self.remember(look)
        return look

    def look(self) -> Look:
        """Look again while it runs; errors among the problems are reasons to stop. Raises `ProblemsError`."""
        topics = {name: RecordedTopic(name, id_, self._counts[name]) for name, id_ in self._ids.items()}
        return self._look(SetupRecord(self._document.application.id, topics))

    def has_changed(self) -> bool:
        """Return cheaply whether a topic came, went or was replaced; raises `ProblemsError`."""
        return self._ids_of(self._ids) != self._ids

    def put_right(self, look: Look) -> Look:
        """Make the changes that `look` asks for, return what is there then.

        Raises `ProblemsError`, also for a topic that is gone again at once: the next look finds it so.
        """
        if not look.changes:
            return look
        reasons = {problem.topic: problem.summary for problem in look.problems}
        for change in look.changes:
            _log.warning(
                "internal topic set up" if change.create else "internal topic put right",
                topic=change.name,
                reason=reasons.get(
                    change.name, "it is missing" if change.create else "it is not as declared"
                ),
            )
        if failed := change_topics(admin_client(self._connection), look.changes):
            raise ProblemsError([not_changed(look.compiled.application.id, text) for text in failed])
        names = {change.name for change in look.changes}
        deadline = time.monotonic() + _SEEN_SECONDS
        while self._ids_of(names).keys() < names and time.monotonic() < deadline:  # until all brokers know
            time.sleep(0.05)
        seen = self._look(None)
        internal = names & {topic.name for topic in seen.compiled.internal_topics}
        if lost := sorted(internal - seen.ids.keys()):
            raise ProblemsError([not_there(look.compiled.application.id, topic) for topic in lost])
        # What was replaced only after `look` keeps its old id: the next look finds it gone and follows.
        late = {name: self._ids[name] for name in seen.gone - look.gone}
        return attrs.evolve(seen, problems=look.problems, gone=look.gone, ids={**seen.ids, **late})

    def remember(self, look: Look) -> None:
        """Take the topics of `look` for those that have to stay."""
        self._ids = look.ids
        self._counts = {name: look.counts.get(name, self._counts.get(name, 0)) for name in look.ids}

    def _look(self, record: SetupRecord | None) -> Look:
        known = self._ids_of(self._ids)  # before the rest: what changes meanwhile shows the next time
        records = {record.application_id: record} if record is not None else {}
        asked = snapshot_request([self._document], records)
        # The group is our own. A coordinator that comes up answers late, and librdkafka (2.16) aborts then.
        with self._asking() as reader:
            snapshot = reader.read(attrs.evolve(asked, groups=(), streams_groups=frozenset()))
        compiled = compile_document(self._document, snapshot.partitions, APPLICATION)
        made = plan([compiled], snapshot, records, PlanPolicy(), caller=APPLICATION)
        wanted = {topic.name for topic in compiled.internal_topics} | set(compiled.external_sources)
        changes = () if self._is_manual else filter(None, map(change_of, made.actions))
        return Look(
            compiled=compiled,
            snapshot=snapshot,
            problems=tuple(self._problems(compiled, made)),
            changes=tuple(changes),
            ids={name: id_ for name, id_ in (self._ids_of(wanted) | known).items() if name in wanted},
            gone=frozenset(name for name, id_ in self._ids.items() if known.get(name) != id_),
        )

    def _problems(self, compiled: CompiledApplication, made: Plan) -> Iterator[Problem]:
        yield from made.problems
        if not self._is_manual:
            return
        reported = {p.topic for p in made.problems if p.code is ProblemCode.MISSING_INTERNAL_TOPICS}
        missing = {topic.name for topic in compiled.internal_topics} - reported
        for action in made.actions:
            if is_missing(action) and action.name in missing:
                yield not_set_up(compiled.application.id, action)

    def _ids_of(self, names: Collection[str]) -> dict[str, str]:
        if not names:
            return {}
        with self._asking() as reader:
            return dict(reader.topic_ids(sorted(names)))

    @contextmanager
    def _asking(self) -> Iterator[KafkaClusterReader]:
        """Yield the reader; after a failure another one: who met a broker that hung may stay unanswered.

        The old one is closed in the background, for that may take as long.
        """
        try:
            yield self._reader
        except ProblemsError:
            old, self._reader = [self._reader], KafkaClusterReader(self._connection)
            in_background(old.clear)
            raise
