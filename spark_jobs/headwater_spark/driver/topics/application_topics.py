"""The topics of an application on the cluster: check them, set up and reconfigure the internal ones."""

import time
from collections.abc import Collection, Mapping
from functools import partial

import attrs
import structlog
from confluent_kafka import KafkaException

from headwater.change import admin_client, change_topics
from headwater.compiler import StreamsConfig
from headwater.compiler.streams_config import SetupMode
from headwater.kafka import Connection, KafkaClusterReader
from headwater.kafka.pending_requests import RenewedClient
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication
from headwater.model.offset_metadata import announcement_partitions, decode_number
from headwater.model.policies import Policy
from headwater.model.problems import ProblemsError, errors
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.model.topology import TopologyDocument
from headwater.operations.observation import observe_application
from headwater.operations.planning import plan_application
from headwater.planner.policies import expansion_violations
from headwater_spark.driver.failures import client_failed
from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.driver.topics.present_processors import (
    changelog_counts,
    initial_processors,
    input_counts,
    present_processors,
    with_processors,
)
from headwater_spark.driver.topics.topic_check import (
    TopicCheck,
    change_failed,
    own_change,
    topic_problems,
    topic_vanished,
    without_expansion,
)

_log = structlog.get_logger(__name__)
_FAILURES = (ProblemsError, KafkaException)
_WATCH_SECONDS = 10.0
"""After how long brokers that do not answer `has_changed` are reported."""
_CREATION_SECONDS = 30.0
"""How long a new topic may be missing in the brokers' metadata; it usually takes less than a second."""


class ApplicationTopics:
    """Checks and changes the topics of one document; remembers the topics that existed."""

    def __init__(
        self, document: TopologyDocument, connection: Connection, policies: tuple[Policy, ...] = ()
    ) -> None:
        self._document = document
        self._policies = policies
        self._connection = connection
        settle = KafkaClusterReader.settle
        self._reader = RenewedClient(partial(KafkaClusterReader, connection), settle)
        self._watching = RenewedClient(partial(KafkaClusterReader, connection, _WATCH_SECONDS), settle)
        """The reader of `has_changed`, which another thread may call while this one waits for an answer."""
        self._is_manual = StreamsConfig.from_application(document.application).setup_mode is SetupMode.MANUAL
        self._ids: Mapping[str, str] = {}
        self._partition_counts: Mapping[str, int] = {}
        self.counts: Mapping[str, int] = {}
        """Topic → number of partitions, when `has_changed` was last called."""
        self.declared_processors = document.application.processors
        """The number in the document of a user; the state may have another one."""
        self.target_processors: int | None = None
        """The number of partitions that changelog topics may have while processors are added (KIP-287)."""
        self._widest = 0
        """The most partitions that changelog topics may have, if the state has fewer processors."""

    @property
    def document(self) -> TopologyDocument:
        """The document, with the present number of processors."""
        return self._document

    def use_processors(self, processors: int) -> None:
        """Check the topics for this number of processors from now on."""
        self._document = with_processors(self._document, processors)
        self._widest = max(self._widest, processors) if self._widest else 0
        self.target_processors = None

    def prepare(self) -> TopicCheck:
        """Check the topics before the start and make the required changes; raises `ProblemsError`.

        If an expansion has added processors, or does so, the present number is used.
        """
        if self._document.application.processors is not None:
            self._find_processors(self._document.application.processors)
        check = self._check(None)
        if wrong := errors(check.problems):
            raise ProblemsError(wrong)
        check = self.apply_changes(check)
        self.remember_topics(check)
        return check

    def check(self) -> TopicCheck:
        """Check the topics of the running application; errors among the problems are reasons to stop it.

        Raises:
            ProblemsError: The cluster cannot be read.
        """
        counts = self._partition_counts
        topics = {name: RecordedTopic(name, id_, counts[name]) for name, id_ in self._ids.items()}
        return self._check(SetupRecord(self._document.application.id, topics))

    def check_expansion(self, after: Mapping[str, int]) -> None:
        """Check an expansion of topics to these counts against the policies; raises `ProblemsError`."""
        if self._policies:
            check = self.check()
            found = expansion_violations(check.compiled, check.partition_counts, after, self._policies)
            if refused := errors(found):
                raise ProblemsError(refused)

    def has_changed(self) -> bool:
        """Return whether a topic was created, deleted or replaced, by one request; raises `ProblemsError`.

        One thread may call it while another one checks the topics.
        """
        if not self._ids:
            return False
        known = self._ids
        with self._watching.used(*_FAILURES) as reader:
            ids, self.counts = reader.topic_ids_and_counts(sorted(known))
        return ids != known

    def reconnect(self) -> None:
        """Let the next `has_changed` open new connections; the same thread calls both."""
        self._watching.renew()

    def apply_changes(self, check: TopicCheck) -> TopicCheck:
        """Make the changes of `check`; return a check of the topics that exist afterwards.

        Raises:
            ProblemsError: A change failed, or a topic is missing again at once; the next check finds it lost.
        """
        if not check.changes:
            return check
        reasons = {problem.topic: problem.summary for problem in check.problems}
        for change in check.changes:
            _log.warning(
                "internal topic created" if change.create else "internal topic reconfigured",
                topic=change.name,
                reason=reasons.get(
                    change.name, "it is missing" if change.create else "it is not as declared"
                ),
            )
        # Clients of the application that start at the same time find the same topics missing.
        if failed := change_topics(admin_client(self._connection), check.changes, with_others=True):
            raise ProblemsError([change_failed(check.compiled.application.id, text) for text in failed])
        names = {change.name for change in check.changes}
        deadline = time.monotonic() + _CREATION_SECONDS
        while self._topic_ids(names).keys() < names and time.monotonic() < deadline:
            time.sleep(0.05)
        after = self._check(None)
        internal = names & {topic.name for topic in after.compiled.internal_topics}
        if vanished := sorted(internal - after.topic_ids.keys()):
            raise ProblemsError([topic_vanished(check.compiled.application.id, topic) for topic in vanished])
        # A topic that was replaced after `check` keeps its old id: the next check finds it lost.
        lost_later = {name: self._ids[name] for name in after.lost - check.lost}
        ids = {**after.topic_ids, **lost_later}
        return attrs.evolve(after, problems=check.problems, lost=check.lost, topic_ids=ids)

    def remember_topics(self, check: TopicCheck) -> None:
        """Compare later checks with the topics of `check`."""
        before = self._partition_counts
        self._ids = check.topic_ids
        self._partition_counts = {
            name: check.partition_counts.get(name, before.get(name, 0)) for name in check.topic_ids
        }

    def _find_processors(self, declared: int) -> None:
        with self._reader.used(*_FAILURES) as reader:
            observed = observe_application(reader, self._document)
        compiled, counts = observed.compiled[0], observed.snapshot.partitions
        changelogs = changelog_counts(compiled, counts)
        inputs = input_counts(compiled, counts)
        application = self._document.application.id
        offsets = GroupOffsets(self._connection, application)
        try:
            announced = offsets.move_mark(announcement_partitions(changelogs)) if changelogs else None
            partitions = [(topic, each) for topic, count in inputs.items() for each in range(count)]
            texts = offsets.committed_metadata(partitions) if partitions else []
        except KafkaException as error:
            raise ProblemsError([client_failed(application, str(error.args[0]))]) from error
        finally:
            offsets.close()
        present = present_processors(self._document.application, changelogs, inputs, texts, announced)
        if present > declared:
            _log.warning("the state has more processors than declared", processors=present, declared=declared)
        initial = initial_processors(self._document.application, present, changelogs, inputs, texts)
        self._document = with_processors(self._document, present, initial)
        self.target_processors = None if announced is None else announced.after
        widest = max(changelogs.values(), default=0)
        self._widest = 0 if decode_number(texts, widest) is None else widest

    def _with_number(self, snapshot: ClusterSnapshot, compiled: CompiledApplication) -> ClusterSnapshot:
        """Return `snapshot` with the number of processors, if the changelog topics do not show it.

        More partitions than at the start, and than an expansion adds, belong to another client.
        """
        application = self._document.application
        counts = changelog_counts(compiled, snapshot.partitions).values()
        most = max(self._widest, self.target_processors or 0)
        if application.processors is None or not self._widest or max(counts, default=0) > most:
            return snapshot
        return attrs.evolve(snapshot, processors={application.id: application.processors})

    def _check(self, record: SetupRecord | None) -> TopicCheck:
        known = self._topic_ids(self._ids)  # read first: the next check finds what changes meanwhile
        with self._reader.used(*_FAILURES) as reader:
            observed = observe_application(reader, self._document, record)
        compiled = observed.compiled[0]
        snapshot = self._with_number(observed.snapshot, compiled)
        observed = attrs.evolve(observed, snapshot=snapshot)
        planned = plan_application(observed)
        # An application that changes no topic must not stop because a policy is new.
        if self._policies and any(map(own_change, planned.actions)) and not self._is_manual:
            planned = plan_application(observed, self._policies)
        required = {topic.name for topic in compiled.internal_topics} | set(compiled.external_sources)
        changes = () if self._is_manual else filter(None, map(own_change, planned.actions))
        ids = self._topic_ids(required) | known
        return TopicCheck(
            compiled=compiled,
            snapshot=snapshot,
            problems=tuple(
                without_expansion(
                    topic_problems(compiled, planned, is_manual=self._is_manual),
                    compiled,
                    snapshot.partitions,
                    self.target_processors,
                )
            ),
            changes=tuple(changes),
            topic_ids={name: id_ for name, id_ in ids.items() if name in required},
            lost=frozenset(name for name, id_ in self._ids.items() if known.get(name) != id_),
        )

    def _topic_ids(self, names: Collection[str]) -> dict[str, str]:
        if not names:
            return {}
        with self._reader.used(*_FAILURES) as reader:
            return dict(reader.topic_ids(sorted(names)))
