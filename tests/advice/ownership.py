"""Fixes about stacks, conflicts between applications, the group protocol and versions."""

from collections.abc import Callable

import attrs

from headwater.model.records import OwnershipTopic
from headwater.model.untrusted import UnreadReason
from tests.advice.trial import Advice, Trial, steps
from tests.advice.trials import (
    CHANGELOG,
    COUNT,
    begin,
    changed,
    recorded_elsewhere,
    set_up,
    with_unread_record,
)

STAGING, SAME = "acme/headwater/staging", "acme/headwater/production"
SINK = COUNT.replace("topics: {}", "topics: {orders-out: {partitions: 4}}")
SALES = SINK.replace("id: orders,", "id: sales,")
SUMS = SINK.replace("id: orders,", "id: orders-sums,").replace(
    "topics: {orders-out: {partitions: 4}}", "topics: {}"
)


def _taken(trial: Trial) -> None:
    trial.switch(takeOver=True)


def _released_there(trial: Trial) -> None:
    trial.ownership = ()


def _moved() -> Trial:
    return recorded_elsewhere(set_up(), STAGING)


def _copied() -> Trial:
    return recorded_elsewhere(set_up(), STAGING, id_="its id")


def _sink_elsewhere() -> Trial:
    return recorded_elsewhere(set_up(SINK), "acme/sales/production", application="sales", sink="orders-out")


def _release_here(trial: Trial) -> None:
    trial.settings()["lifecycle"] = "released"


def _remove_sink(trial: Trial, id_: str = "orders") -> None:
    trial.documents[id_]["topics"] = {}


def _two_sinks() -> Trial:
    return changed(begin(SINK), lambda t: t.declare(SALES))


def _own_internal_topic(trial: Trial) -> None:
    trial.documents["orders"]["topics"] = {CHANGELOG: {"partitions": 4}}


def _streams(trial: Trial, protocols: set[str], features: dict[str, int]) -> Trial:
    trial.configure(group_protocol="streams")
    trial.cluster.group_protocols = frozenset(protocols)
    trial.cluster.features = features
    return trial


def _upgrade_brokers(trial: Trial) -> None:
    trial.cluster.group_protocols = frozenset({"classic", "consumer", "streams"})
    trial.cluster.features = {"streams.version": 1}


def _unnamed() -> Trial:
    trial = begin(COUNT.replace('"4.3"', '"3.9"'))
    trial.up()
    trial.settings().pop("kafkaStreams")
    trial.fill(*trial.cluster.topics)
    return trial


def _unread(
    reason: UnreadReason, stack_id: str = "another id", application: str = "orders"
) -> Callable[[], Trial]:
    return lambda: with_unread_record(set_up(), reason, stack_id=stack_id, application=application)


def _delete_records(trial: Trial) -> None:
    trial.ownership, trial.ownership_topic = (), OwnershipTopic()


def _use_later_version(trial: Trial) -> None:
    """A later version reads its own record."""
    trial.ownership_topic = attrs.evolve(trial.ownership_topic, unread=())
    trial.up()


def _uncompacted() -> Trial:
    trial = with_unread_record(set_up(), UnreadReason.NOT_OURS)
    trial.ownership_topic = OwnershipTopic({"cleanup.policy": "delete", "min.insync.replicas": "1"}, 3)
    return trial


def _refused_settings() -> Trial:
    """Return a stack whose topic of records was created without the settings that the brokers refuse."""
    trial = _uncompacted()
    settings = {**trial.ownership_topic.settings, "cleanup.policy": "compact"}
    trial.ownership_topic = OwnershipTopic(settings, 3)
    trial.refuses_record_settings = True
    return trial


def _only_acls(trial: Trial) -> None:
    trial.configures_records = False


def _without_record() -> Trial:
    trial = with_unread_record(set_up(), UnreadReason.NOT_OURS)
    trial.ownership, trial.ownership_topic = (), OwnershipTopic()
    return trial


OWNERSHIP = (
    Advice(
        says="Find out who writes to headwater-ownership, and remove the permission. Then delete the topic: "
        "the next `pulumi up` of each stack creates it and writes its records again",
        make=_unread(UnreadReason.TOO_LARGE),
        follow=_delete_records,
        leaves=("RecordsNotSafe",),
    ),
    Advice(
        says="Then delete the topic",
        make=_unread(UnreadReason.NOT_OURS),
        follow=_delete_records,
        leaves=("RecordsNotSafe",),
    ),
    Advice(
        says="If no other stack manages orders, set `setup.takeOver: true` for one `pulumi up`",
        make=_unread(UnreadReason.OTHER_KEY),
        follow=_taken,
    ),
    Advice(
        says="Use the version of Headwater that has written the record, or a later one",
        make=_unread(UnreadReason.LATER_FORMAT, "its id"),
        follow=_use_later_version,
    ),
    Advice(
        says="The next `pulumi up` writes the record of this stack again",
        make=_unread(UnreadReason.NOT_OURS, "its id"),
    ),
    Advice(says="The next `pulumi up` writes it again", make=_without_record),
    Advice(says="The next `pulumi up` changes the settings", make=_uncompacted),
    Advice(
        says="If the brokers refuse them, grant Write on headwater-ownership to users of `pulumi up` only, "
        "and set `headwater:ownership: acls`",
        make=_refused_settings,
        follow=_only_acls,
    ),
    Advice(
        says="in stack acme/headwater/staging first",
        make=lambda: recorded_elsewhere(begin(), STAGING),
        follow=_released_there,
    ),
    Advice(
        says="Declare it in one stack only",
        make=lambda: recorded_elsewhere(begin(), STAGING),
        follow=lambda t: t.documents.clear(),
    ),
    Advice(
        says="If that stack or its state no longer exists, set `setup.takeOver: true` for one `pulumi up`",
        make=lambda: recorded_elsewhere(begin(), STAGING),
        follow=_taken,
    ),
    Advice(
        says="If the state of this stack was lost, or restored from elsewhere, set `setup.takeOver: true`",
        make=lambda: recorded_elsewhere(begin(), SAME),
        follow=_taken,
    ),
    Advice(
        says="Otherwise another backend has a stack with this name: release the application there first",
        make=lambda: recorded_elsewhere(begin(), SAME),
        follow=_released_there,
    ),
    Advice(
        says="set `lifecycle: released` here: its topics stay",
        make=_moved,
        follow=_release_here,
    ),
    Advice(says="To take it back, set `setup.takeOver: true`", make=_moved, follow=_taken),
    Advice(says="was renamed to this one, set `setup.takeOver: true`", make=_copied, follow=_taken),
    Advice(
        says="If this state is a copy of its state, set `lifecycle: released` here: the topics stay",
        make=_copied,
        follow=_release_here,
    ),
    Advice(
        says="Declare it in one document only; the other application may still write to it",
        make=_sink_elsewhere,
        follow=_remove_sink,
        leaves=("orphaned",),
    ),
    Advice(
        says="To move it here, remove it from application sales, and set `setup.takeOver: true`",
        make=_sink_elsewhere,
        follow=_taken,
    ),
    Advice(
        says="In the other stack, if it still exists, set `lifecycle: released`",
        make=lambda: changed(_moved(), lambda t: t.switch(takeOver=True)),
        follow=steps(_released_there, lambda t: t.settings().pop("setup")),
    ),
    Advice(
        says="or remove the topic from the document. Then remove `setup.takeOver`",
        make=lambda: changed(_sink_elsewhere(), lambda t: t.switch(takeOver=True)),
        follow=steps(_released_there, lambda t: t.settings().pop("setup")),
    ),
    Advice(
        says="Remove `setup.takeOver` from the document",
        make=lambda: changed(_moved(), steps(lambda t: t.switch(takeOver=True), _released_there)),
        follow=lambda t: t.settings().pop("setup"),
    ),
    Advice(
        says="Declare the topic in the document of one of them",
        make=_two_sinks,
        follow=lambda t: _remove_sink(t, "sales"),
    ),
    Advice(
        says="Remove the topic from the section `topics` of the document",
        make=lambda: changed(begin(), _own_internal_topic),
        follow=_remove_sink,
    ),
    Advice(
        says="Set `group.protocol: classic`",
        make=lambda: _streams(begin(), {"classic", "consumer"}, {}),
        follow=lambda t: t.configure(group_protocol="classic"),
    ),
    Advice(
        says="add `streams` to `group.coordinator.rebalance.protocols` and run `kafka-features.sh "
        "--bootstrap-server BROKER upgrade",
        make=lambda: _streams(begin(), {"classic", "consumer"}, {}),
        follow=_upgrade_brokers,
    ),
    Advice(
        says="Set `application.kafkaStreams` in the document",
        make=_unnamed,
        follow=lambda t: t.settings().update(kafkaStreams="3.9"),
    ),
)
