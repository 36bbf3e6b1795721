"""A change that `pulumi up` has applied is undone by the documents from before it."""

from collections.abc import Callable
from copy import deepcopy

import pytest

from headwater.model.problems import ProblemCode, errors
from tests.advice.trial import Trial
from tests.advice.trials import CHANGELOG, COUNT, PINNED_TO_8, REPARTITION, set_up

Change = Callable[[Trial], object]
UNPINNED = PINNED_TO_8.replace(", partitions: 8", "")


def _undo(change: Change, text: str = COUNT, mode: str = "manual") -> Trial:
    """Return a stack after a change, with the documents from before it."""
    trial = set_up(text, internal_topics_setup=mode)
    before = deepcopy(trial.documents)
    change(trial)
    trial.up()
    trial.documents = before
    return trial


def _codes(trial: Trial) -> set[ProblemCode]:
    return {each.code for each in errors(trial.plan().problems)}


def _rename_store(trial: Trial) -> None:
    trial.step("count")["count"] = {"materialized": "totals"}


def _rename_sink(trial: Trial) -> None:
    trial.documents["orders"]["topics"] = {"orders-results": {"partitions": 4}}
    trial.step("to")["to"] = "orders-results"


def _rename_application(trial: Trial) -> None:
    mode = trial.settings()["config"]["internal.topics.setup"]
    trial.documents.clear()
    trial.declare(COUNT.replace("id: orders,", "id: sales, renamedFrom: orders,"))
    trial.settings("sales")["config"]["internal.topics.setup"] = mode


def _expand_sources(trial: Trial) -> None:
    trial.cluster.change("orders-in", partitions=8)
    trial.configure(partition_autoscaling_enabled="true")
    trial.switch(allowUnsafeExpansion=True)


@pytest.mark.parametrize("mode", ["automatic", "manual"])
@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda t: t.settings().update(lifecycle="retired"), set()),
        (_rename_store, {"orders-totals-changelog"}),
        (_rename_sink, {"orders-results"}),
        (_expand_sources, set()),
    ],
    ids=["retired", "store", "sink", "expansion"],
)
def test_the_topics_from_before_are_used_again(mode: str, change: Change, left: set[str]) -> None:
    trial = _undo(change, mode=mode)
    ids = {name: trial.cluster.topics[name].topic_id for name in (REPARTITION, CHANGELOG)}
    trial.up()
    assert {name: trial.cluster.topics[name].topic_id for name in ids} == ids
    assert {each.topic for each in trial.drift().findings} == left


def test_a_setting_is_set_as_before_and_stays_if_none_was_declared() -> None:
    trial = _undo(lambda t: t.configure(topic_retention_ms="86400000"), mode="automatic")
    trial.up()
    assert trial.cluster.topics[REPARTITION].config["retention.ms"] == "-1"
    assert trial.cluster.topics[CHANGELOG].config["retention.ms"] == "86400000"
    assert [each.topic for each in trial.drift().findings] == [CHANGELOG]


def test_a_released_application_is_adopted_again() -> None:
    def release(trial: Trial) -> None:
        trial.settings()["lifecycle"] = "released"

    assert not _codes(_undo(release, mode="automatic"))
    trial = _undo(release)
    assert _codes(trial) == {ProblemCode.INTERNAL_TOPICS_ALREADY_SETUP}
    trial.switch(adopt=True)
    trial.up()
    assert not [*trial.drift().findings]


def test_an_application_gets_its_former_id_again() -> None:
    trial = _undo(_rename_application, mode="automatic")
    assert _codes(trial) == {ProblemCode.APPLICATION_REMOVED}
    trial.settings()["renamedFrom"] = "sales"
    assert not _codes(trial)

    trial = _undo(_rename_application)
    trial.settings()["renamedFrom"] = "sales"
    assert _codes(trial) == {ProblemCode.INTERNAL_TOPICS_ALREADY_SETUP}
    trial.switch(adopt=True)
    trial.up()
    assert not trial.unusable()


def test_an_explicit_count_has_to_be_kept() -> None:
    def pin(trial: Trial) -> None:
        trial.step("repartition")["repartition"]["partitions"] = 8
        trial.configure(partition_autoscaling_enabled="true")
        trial.switch(allowUnsafeExpansion=True)

    trial = _undo(pin, UNPINNED)
    ids = {name: trial.cluster.topics[name].topic_id for name in (REPARTITION, CHANGELOG)}
    assert _codes(trial) == {ProblemCode.OVER_PARTITIONED}

    trial.step("repartition")["repartition"]["partitions"] = 8
    trial.up()
    assert {name: trial.cluster.topics[name].topic_id for name in ids} == ids
    assert {trial.cluster.topics[name].partitions for name in ids} == {8}
    assert not [*trial.drift().findings]
