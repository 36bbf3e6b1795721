"""An application that sets its topics up by itself, on a broker where somebody deletes them."""

from collections.abc import Callable, Mapping, Sequence

import attrs
import pytest

from infra.change import TopicChange, change_topics
from infra.model.problems import ProblemCode, ProblemsError
from infra.observe import Connection
from infra.spec import load_text
from spark_jobs.runtime.driver import topic_check as module
from spark_jobs.runtime.driver.topic_changes import not_there
from spark_jobs.runtime.driver.topic_check import TopicKeeper
from tests.runtime.spark.kafka_topics import Topics
from toolchain.broker import local
from toolchain.broker.readiness import until

pytestmark = pytest.mark.broker

_PATIENCE_SECONDS = 60.0
_DOCUMENT = """
application: {id: APP, config: {internal.topics.setup: automatic}}
topology:
  - stream: {topic: in-APP, serdes: {key: string, value: string}}
  - groupByKey:
  - count: {materialized: counts}
"""


@attrs.frozen
class Kept:
    keeper: TopicKeeper
    topics: Topics
    changelog: str

    def delete(self) -> None:
        self.topics.delete(self.changelog)
        assert until(lambda: self.changelog not in self.topics.names(), _PATIENCE_SECONDS)

    def loses_what_it_makes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "change_topics", self.change_and_delete)
        monkeypatch.setattr(module, "_SEEN_SECONDS", 0.2)  # nobody waits for what will not come

    def change_and_delete(self, admin: object, changes: Sequence[TopicChange]) -> tuple[str, ...]:
        """As `change_topics`, but what it makes is not there for long."""
        failed = change_topics(admin, changes)  # type: ignore[arg-type]  # the module's own client
        assert until(lambda: self.changelog in self.topics.names(), _PATIENCE_SECONDS)
        self.delete()
        return failed


@pytest.fixture
def kept(kafka: local.LocalBroker, unique: Callable[[str], str]) -> Kept:
    id_ = unique("kept")
    loaded = load_text(_DOCUMENT.replace("APP", id_), "kept.yaml")
    assert not loaded.problems, loaded.problems
    topics = Topics(kafka.bootstrap_servers)
    topics.create({f"in-{id_}": 1})
    connection = Connection(bootstrap_servers=(kafka.bootstrap_servers,))
    return Kept(TopicKeeper(loaded.documents[0], connection), topics, f"{id_}-counts-changelog")


def test_a_topic_that_is_deleted_at_once_keeps_an_application_from_starting(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.loses_what_it_makes(monkeypatch)
    with pytest.raises(ProblemsError) as raised:
        kept.keeper.prepare()
    (problem,) = raised.value.problems
    assert (problem.code, problem.topic) == (ProblemCode.MISSING_INTERNAL_TOPICS, kept.changelog)


class _Unanswered:
    """A reader that a broker's pause has left without a connection, and that finds no way back."""

    def topic_ids(self, names: Sequence[str]) -> Mapping[str, str]:
        raise ProblemsError([not_there("app", name) for name in names])


def test_a_reader_that_is_never_answered_again_is_replaced(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.keeper.prepare()
    monkeypatch.setattr(kept.keeper, "_reader", _Unanswered())
    with pytest.raises(ProblemsError):
        kept.keeper.has_changed()
    assert not kept.keeper.has_changed()


def test_a_running_application_finds_it_gone_at_the_next_look(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.keeper.prepare()
    kept.delete()
    with monkeypatch.context() as patched:
        kept.loses_what_it_makes(patched)
        with pytest.raises(ProblemsError):
            kept.keeper.put_right(kept.keeper.look())
    assert kept.keeper.has_changed()
    look = kept.keeper.look()
    assert look.gone == {kept.changelog}
    kept.keeper.remember(kept.keeper.put_right(look))
    assert not kept.keeper.has_changed()


def test_a_topic_that_is_replaced_during_a_look_is_found_gone_at_the_next(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its new id must not be remembered before what was committed for the old one is forgotten."""
    kept.keeper.prepare()
    remembered = dict(kept.keeper._ids)
    kept.delete()
    kept.topics.create({kept.changelog: 1}, {"cleanup.policy": "delete"})
    with monkeypatch.context() as patched:
        patched.setattr(kept.keeper, "_ids_of", lambda _: remembered)
        look = kept.keeper.look()
    assert look.changes
    assert not look.gone
    kept.keeper.remember(kept.keeper.put_right(look))
    assert kept.keeper.look().gone == {kept.changelog}
