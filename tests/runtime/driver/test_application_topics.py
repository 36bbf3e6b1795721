"""An application that sets up its topics itself, on a broker where another client deletes them."""

from collections.abc import Callable, Sequence
from typing import NoReturn

import attrs
import pytest

from headwater.change import TopicChange, change_topics
from headwater.kafka import Connection
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.spec import load_text
from headwater.spec.policies import load_policies_text
from headwater.toolchain.broker import local
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.topics import application_topics as module
from headwater_spark.driver.topics.application_topics import ApplicationTopics
from headwater_spark.driver.topics.topic_check import topic_vanished
from tests.runtime.spark.kafka_topics import Topics

pytestmark = pytest.mark.broker

_TIMEOUT_SECONDS = 60.0
_DOCUMENT = """
application: {id: APP, config: {internal.topics.setup: automatic}}
topology:
  - stream: {topic: in-APP, serdes: {key: string, value: string}}
  - groupByKey:
  - count: {materialized: counts}
"""


@attrs.frozen
class Application:
    """The topics of an application, its view of them, and its changelog topic."""

    own: ApplicationTopics
    topics: Topics
    changelog: str

    def with_policy(self, text: str) -> ApplicationTopics:
        """Return another view of the application, with a policy."""
        loaded = load_policies_text(f"policies:\n  - {text}\n", "policies.yaml")
        assert not loaded.problems, loaded.problems
        return ApplicationTopics(self.own.document, self.own._connection, loaded.policies)

    def delete_changelog(self) -> None:
        self.topics.delete(self.changelog)
        assert until(lambda: self.changelog not in self.topics.names(), _TIMEOUT_SECONDS)

    def delete_topics_after_creation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "change_topics", self.change_and_delete)
        monkeypatch.setattr(module, "_CREATION_SECONDS", 0.2)  # the topic will not appear

    def change_and_delete(
        self, admin: object, changes: Sequence[TopicChange], *, with_others: bool
    ) -> tuple[str, ...]:
        """Do `change_topics`, then delete the changelog topic."""
        failed = change_topics(admin, changes, with_others=with_others)  # type: ignore[arg-type]  # the module's own client
        assert until(lambda: self.changelog in self.topics.names(), _TIMEOUT_SECONDS)
        self.delete_changelog()
        return failed


@pytest.fixture
def application(kafka: local.LocalBroker, unique: Callable[[str], str]) -> Application:
    id_ = unique("app")
    loaded = load_text(_DOCUMENT.replace("APP", id_), "app.yaml")
    assert not loaded.problems, loaded.problems
    topics = Topics(kafka.bootstrap_servers)
    topics.create({f"in-{id_}": 1})
    connection = Connection(bootstrap_servers=(kafka.bootstrap_servers,))
    return Application(ApplicationTopics(loaded.documents[0], connection), topics, f"{id_}-counts-changelog")


def test_application_does_not_start_if_a_new_topic_is_deleted_at_once(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.delete_topics_after_creation(monkeypatch)
    with pytest.raises(ProblemsError) as raised:
        application.own.prepare()
    (problem,) = raised.value.problems
    assert (problem.code, problem.topic) == (ProblemCode.MISSING_INTERNAL_TOPICS, application.changelog)


def test_clients_that_start_at_the_same_time_set_up_the_same_topics(application: Application) -> None:
    """Both find the topics missing, and one of them creates the topics first."""
    first = application.own
    second = ApplicationTopics(first.document, first._connection)
    found, found_too = first._check(None), second._check(None)
    assert {change.create for change in (*found.changes, *found_too.changes)} == {True}
    created = first.apply_changes(found)
    assert second.apply_changes(found_too).topic_ids == created.topic_ids


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("topicConfig: {forbid: [min.insync.replicas]}", None),
        ("replicationFactor: {min: 3}", ProblemCode.POLICY_VIOLATED),
        ("blastRadius: {createdTopics: 0}", ProblemCode.BLAST_RADIUS),
    ],
)
def test_topics_that_a_policy_forbids_are_not_created(
    application: Application, policy: str, code: ProblemCode | None
) -> None:
    own = application.with_policy(policy)
    if code is None:
        own.prepare()
        return
    with pytest.raises(ProblemsError) as raised:
        own.prepare()
    assert {problem.code for problem in raised.value.problems} == {code}
    assert application.changelog not in application.topics.names()
    # Topics that exist are not affected by a policy: the application creates nothing.
    application.own.prepare()
    own.prepare()


def test_an_expansion_of_processors_that_a_policy_forbids_is_refused(application: Application) -> None:
    application.own.prepare()
    own = application.with_policy("topicPartitions: {max: 2}")
    own.prepare()
    own.check_expansion({application.changelog: 2})
    with pytest.raises(ProblemsError) as raised:
        own.check_expansion({application.changelog: 3})
    [problem] = raised.value.problems
    assert (problem.code, problem.topic) == (ProblemCode.POLICY_VIOLATED, application.changelog)


class _UnansweredReader:
    """A reader that lost its connection when a broker paused, and cannot connect again."""

    def topic_ids_and_counts(self, names: Sequence[str]) -> NoReturn:
        raise ProblemsError([topic_vanished("app", name) for name in names])


def test_reader_is_replaced_after_a_failure(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.own.prepare()
    monkeypatch.setattr(application.own._watching, "client", _UnansweredReader())
    with pytest.raises(ProblemsError):
        application.own.has_changed()
    assert not application.own.has_changed()


def test_added_partitions_are_counted_while_nothing_else_has_changed(application: Application) -> None:
    check = application.own.prepare()
    source = next(iter(check.compiled.external_sources))
    application.topics.expand(source, 3)
    assert until(
        lambda: not application.own.has_changed() and application.own.counts[source] == 3, _TIMEOUT_SECONDS
    )


def test_running_application_finds_a_deleted_topic_at_the_next_check(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.own.prepare()
    application.delete_changelog()
    with monkeypatch.context() as patched:
        application.delete_topics_after_creation(patched)
        with pytest.raises(ProblemsError):
            application.own.apply_changes(application.own.check())
    assert application.own.has_changed()
    check = application.own.check()
    assert check.lost == {application.changelog}
    application.own.remember_topics(application.own.apply_changes(check))
    assert not application.own.has_changed()


def test_topic_that_is_replaced_during_a_check_is_lost_at_the_next(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its new id must not be remembered before the offsets that were committed for the old one are reset."""
    application.own.prepare()
    remembered = dict(application.own._ids)
    application.delete_changelog()
    application.topics.create({application.changelog: 1}, {"cleanup.policy": "delete"})
    with monkeypatch.context() as patched:
        patched.setattr(application.own, "_topic_ids", lambda _: remembered)
        check = application.own.check()
    assert check.changes
    assert not check.lost
    application.own.remember_topics(application.own.apply_changes(check))
    assert application.own.check().lost == {application.changelog}
