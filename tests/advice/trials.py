"""Stacks that tests of fixes begin with."""

from collections.abc import Callable

from headwater.model.records import (
    OWNERSHIP_TOPIC,
    RECORD_TOPIC_SETTINGS,
    OwnershipRecord,
    OwnershipTopic,
    StackIdentity,
)
from headwater.model.untrusted import UnreadReason, UnreadRecord
from tests.advice.trial import Trial

STORE = "KSTREAM-AGGREGATE-STATE-STORE-0000000002"
REPARTITION, CHANGELOG = "orders-by-k-repartition", "orders-counts-changelog"
COUNT = """
application: {id: orders, kafkaStreams: "4.3", config: {}}
topics: {}
topology:
  - stream: orders-in
  - selectKey:
  - groupByKey: {name: by-k}
  - count: {materialized: counts}
  - toStream:
  - to: orders-out
"""
PINNED_TO_8 = COUNT.replace(
    "  - groupByKey: {name: by-k}", "  - repartition: {name: by-k, partitions: 8}\n  - groupByKey:"
)
COPY = """
application: {id: orders, kafkaStreams: "4.3", config: {}}
topology:
  - stream: orders-in
  - selectKey:
  - repartition: {name: by-k}
  - to: orders-out
"""
GENERATED = """
application: {id: orders, kafkaStreams: "4.3", config: {}}
topology:
  - stream: orders-in
  - selectKey:
  - groupByKey:
  - count:
  - toStream:
  - to: orders-out
"""


def begin(text: str = COUNT, **config: str) -> Trial:
    """Return a stack with one document that was not set up yet; its source and sink topics exist."""
    trial = Trial()
    document = trial.declare(text)
    document["application"].setdefault("config", {}).update(
        {name.replace("_", "."): value for name, value in config.items()}
    )
    for name in ("orders-in", "orders-out"):
        trial.cluster.create(name, 4)
        trial.fill(name)
    return trial


def set_up(text: str = COUNT, **config: str) -> Trial:
    """Return a stack that has set up its application, which has written records to each topic."""
    trial = begin(text, **config)
    trial.up()
    trial.fill(*trial.cluster.topics)
    return trial


def manual(make: Callable[..., Trial] = set_up, text: str = COUNT) -> Trial:
    return make(text, internal_topics_setup="manual")


def changed(trial: Trial, change: Callable[[Trial], object]) -> Trial:
    change(trial)
    return trial


def created_elsewhere(trial: Trial, *names: str, partitions: int = 4, is_filled: bool = True) -> Trial:
    """Create internal topics, with the settings of Kafka Streams, that Headwater did not set up."""
    declared = {topic.name: topic for each in trial.compile()[1] for topic in each.internal_topics}
    for name in names:
        trial.cluster.create(name, partitions, declared[name].config)
        if is_filled:
            trial.fill(name)
    return trial


def copy_state(trial: Trial, old: str, new: str) -> None:
    """Copy the records of an internal topic, as `headwater state copy` does: nothing needs the old topic."""
    if new not in trial.cluster.topics:
        created_elsewhere(trial, new)
    trial.fill(new)
    trial.filled.pop(trial.cluster.topics[old].topic_id)


def with_unread_record(
    trial: Trial, reason: UnreadReason, *, stack_id: str = "another id", application: str = "orders"
) -> Trial:
    """Return a stack whose records are on the cluster, and a record that is not readable."""
    trial.stack = StackIdentity("its id", "acme/headwater/production", has_records=True)
    trial.ownership = ()
    trial.up()
    written: tuple[OwnershipRecord, ...] = trial.ownership
    unread = UnreadRecord(
        topic=OWNERSHIP_TOPIC,
        partition=0,
        offset=41,
        last_offset=41,
        reason=reason,
        key=None if reason is UnreadReason.TOO_LARGE else (stack_id, application),
    )
    trial.ownership = tuple(record for record in written if record.key != unread.key)
    trial.ownership_topic = OwnershipTopic(
        {**RECORD_TOPIC_SETTINGS, "min.insync.replicas": "2"}, 3, (unread,)
    )
    return trial


def recorded_elsewhere(
    trial: Trial, stack: str, *, application: str = "orders", sink: str = "", id_: str = "another id"
) -> Trial:
    """Return the stack `acme/headwater/production`, and a record of another stack on the cluster.

    The stack has the id `its id`. The record has it, too, if the state was copied.
    """
    trial.stack = StackIdentity("its id", "acme/headwater/production")
    names = [sink] if sink else [REPARTITION, CHANGELOG]
    topics = {
        name: trial.cluster.topics[name].topic_id if name in trial.cluster.topics else "id" for name in names
    }
    trial.ownership = (
        OwnershipRecord(application_id=application, stack=StackIdentity(id_, stack), topics=topics),
    )
    return trial
