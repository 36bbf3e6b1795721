"""Fixes about partition counts, and processors."""

from headwater.compiler.streams_config import LIBRARY_PARTITIONER, LIBRARY_SUPPLIER
from headwater.model.problems import Problem, ProblemCode
from tests.advice.trial import Advice, Follow, Trial, steps
from tests.advice.trials import (
    CHANGELOG,
    COPY,
    COUNT,
    PINNED_TO_8,
    REPARTITION,
    begin,
    changed,
    created_elsewhere,
    manual,
    set_up,
)

STATIC = {"static_partitioner_class": "tenants:ByTenant"}
PINNED = COUNT.replace(
    "  - groupByKey: {name: by-k}", "  - repartition: {name: by-k, partitions: 4}\n  - groupByKey:"
)
PARTITIONED = COUNT.replace(
    "  - groupByKey: {name: by-k}",
    "  - repartition: {name: by-k, partitioner: 'tenants:ByTenant'}\n  - groupByKey:",
)


def _expand(name: str, partitions: int) -> Follow:
    return lambda trial: trial.cluster.change(name, partitions=partitions)


def _source_expanded(trial: Trial, count: int = 8) -> Trial:
    trial.cluster.change("orders-in", partitions=count)
    return trial


def _with_autoscaling(trial: Trial) -> None:
    trial.configure(partition_autoscaling_enabled="true")


def _static(trial: Trial) -> None:
    trial.configure(**STATIC, partition_autoscaling_enabled="true")


def _with_library(trial: Trial) -> None:
    """Let the application on the JVM, and the producers of its sources, partition statically."""
    trial.configure(
        producer_partitioner_class=LIBRARY_PARTITIONER,
        producer_static_partitioner_class="initial-hash",
        producer_static_partitioner_initial_partitions="4",
        partition_autoscaling_enabled="true",
    )


def _with_library_alone(trial: Trial) -> None:
    trial.configure(default_client_supplier=LIBRARY_SUPPLIER)


def _processors(trial: Trial) -> None:
    _with_autoscaling(trial)
    trial.configure(processing_guarantee="exactly_once_v2")
    trial.settings()["processors"] = 4


def _resharded(trial: Trial) -> None:
    """Add the missing partitions, and move each key with its state, as `headwater reshard` does."""
    for application in trial.compile()[1]:
        for topic in application.internal_topics:
            trial.cluster.change(topic.name, partitions=topic.partitions)
            trial.fill(topic.name)


def _interrupted_reshard(trial: Trial) -> Trial:
    """Let a reshard expand a changelog topic, and stop before the entries of all topics have moved."""
    trial.cluster.change(CHANGELOG, partitions=6)
    trial.cluster.resharded = frozenset({"orders"})
    return trial


def _unread_reshard(trial: Trial) -> Trial:
    """Let the user of the plan not read the offsets of the group."""
    trial.cluster.resharded = frozenset()
    trial.cluster.unread_reshards["orders"] = Problem(
        code=ProblemCode.NOT_AUTHORIZED,
        summary="The Kafka brokers do not let this user read the offsets of group orders.",
        fix="Grant the user Describe on group orders.",
    )
    return trial


def _complete_reshard(trial: Trial) -> None:
    trial.cluster.unread_reshards.clear()
    trial.cluster.change("orders-in", partitions=6)
    _resharded(trial)
    trial.cluster.resharded = frozenset()


def _unsafe(trial: Trial) -> None:
    _with_autoscaling(trial)
    trial.switch(allowUnsafeExpansion=True)


def _auto_created(*, is_filled: bool, text: str = COPY) -> Trial:
    return created_elsewhere(begin(text), REPARTITION, partitions=1, is_filled=is_filled)


def _by_hand(trial: Trial, *names: str, count: int = 13) -> Trial:
    for name in names:
        trial.cluster.change(name, partitions=count)
    return trial


def _emptied(trial: Trial, name: str) -> Trial:
    trial.empty(name)
    return trial


def restore_changelog(trial: Trial) -> None:
    """Copy the records, delete the topic, let the run create it, write the copies."""
    trial.delete(CHANGELOG)
    old = next(id_ for id_ in trial.filled if id_ not in {t.topic_id for t in trial.cluster.topics.values()})
    trial.filled.pop(old)
    trial.up()
    trial.fill(CHANGELOG)


def _drain_and_delete(trial: Trial) -> None:
    """The application has processed all records, so nothing is lost."""
    trial.empty(REPARTITION)
    trial.delete(REPARTITION)


def _pin(trial: Trial, count: int) -> Trial:
    trial.step("repartition")["repartition"]["partitions"] = count
    return trial


def _shrunk_source() -> Trial:
    trial = set_up()
    trial.delete("orders-in")
    trial.filled = {id_: n for id_, n in trial.filled.items() if id_ in _ids(trial)}
    trial.cluster.create("orders-in", 2)
    return trial


def _ids(trial: Trial) -> set[str]:
    return {topic.topic_id for topic in trial.cluster.topics.values()}


SINK = COUNT.replace("topics: {}", "topics: {orders-out: {partitions: 4}}")


JOIN_PINNED_TO_8 = """
application: {id: orders, kafkaStreams: "4.3", config: {}}
topology:
  - stream: {topic: orders-in, as: in}
  - repartition: {name: left, partitions: 8, as: left}
  - repartition: {name: right, from: in, as: right}
  - join: {from: left, with: right, window: {difference: 1m}}
  - to: orders-out
"""


def _count_removed(text: str = PINNED_TO_8) -> Trial:
    """Return a stack whose document no longer has the explicit count with which it was set up."""
    trial = set_up(text)
    trial.step("repartition")["repartition"].pop("partitions")
    return trial


COUNTS = (
    Advice(
        says="If the document declared 8 partitions for orders-by-k-repartition before",
        make=_count_removed,
        follow=lambda t: t.step("repartition")["repartition"].update(partitions=8),
    ),
    Advice(
        says="declared 8 partitions for orders-left-repartition or orders-right-repartition before",
        make=lambda: _count_removed(JOIN_PINNED_TO_8),
        follow=lambda t: t.step("repartition")["repartition"].update(partitions=8),
    ),
    # a source topic was expanded
    Advice(
        says="To keep the state, stop the application and run `headwater reshard`",
        make=lambda: _source_expanded(set_up(), 6),
        follow=_resharded,
    ),
    Advice(
        says="To keep the state, stop the application and run `headwater reshard`",
        make=lambda: changed(_source_expanded(set_up(), 6), _with_autoscaling),
        follow=_resharded,
    ),
    Advice(
        says="To add the partitions, set `partition.autoscaling.enabled: true`",
        make=lambda: _source_expanded(set_up(COPY)),
        follow=_with_autoscaling,
    ),
    Advice(
        says="set `partition.autoscaling.enabled: true` and `static.partitioner.class`",
        make=lambda: _source_expanded(set_up()),
        follow=_static,
    ),
    Advice(
        says="set `partition.autoscaling.enabled: true` and `producer.partitioner.class`",
        make=lambda: changed(_source_expanded(set_up()), _with_library_alone),
        follow=_with_library,
    ),
    Advice(
        says="set `partition.autoscaling.enabled: true`, `processing.guarantee: exactly_once_v2` and "
        "`processors: 4`: keys stay with their state",
        make=lambda: _source_expanded(set_up()),
        follow=_processors,
    ),
    Advice(
        says="expand the source topics to 8 partitions and set `partition.autoscaling.enabled: true`,",
        make=lambda: _source_expanded(set_up(), 6),
        follow=steps(_expand("orders-in", 8), _processors),
    ),
    Advice(
        says="set `partition.autoscaling.enabled: true` and `setup.allowUnsafeExpansion: true`",
        make=lambda: _source_expanded(set_up()),
        follow=_unsafe,
        gives_up=True,
    ),
    # … and the reshard was interrupted: the source topic has its old count, or the new one
    *(
        Advice(
            says="If `headwater reshard` still runs, wait until it ends. Otherwise run `headwater reshard` "
            "again, with the same options: it continues where it was interrupted. Do not start the "
            "application, change its topics or run `pulumi up` before",
            make=make,
            follow=_complete_reshard,
        )
        for make in (
            lambda: _interrupted_reshard(set_up()),
            lambda: _source_expanded(_interrupted_reshard(set_up()), 6),
            lambda: _source_expanded(_interrupted_reshard(changed(set_up(), _with_autoscaling)), 6),
        )
    ),
    Advice(
        says="If one was interrupted, run `headwater reshard` again, and do nothing else",
        make=lambda: _unread_reshard(_interrupted_reshard(set_up())),
        follow=_complete_reshard,
    ),
    # … with autoscaling
    Advice(
        says="If the producers partition statically, set `static.partitioner.class`",
        make=lambda: changed(_source_expanded(set_up()), _with_autoscaling),
        follow=_static,
    ),
    Advice(
        says="If the producers partition statically, set `producer.partitioner.class`",
        make=lambda: changed(_source_expanded(set_up()), steps(_with_autoscaling, _with_library_alone)),
        follow=_with_library,
    ),
    Advice(
        says="set `processing.guarantee: exactly_once_v2` and `processors: 4`: keys stay",
        make=lambda: changed(_source_expanded(set_up()), _with_autoscaling),
        follow=_processors,
    ),
    Advice(
        says="lose the connection to the old state, set `setup.allowUnsafeExpansion: true`",
        make=lambda: changed(_source_expanded(set_up()), _with_autoscaling),
        follow=_unsafe,
        gives_up=True,
    ),
    # … with a class in the code that chooses partitions
    Advice(
        says="Remove the partitioner from the code and from the document",
        make=lambda: changed(_source_expanded(set_up(PARTITIONED)), _with_library),
        follow=lambda t: t.step("repartition")["repartition"].pop("partitioner"),
    ),
    Advice(
        says="If the class keeps each key on its partition, set `setup.allowUnsafeExpansion: true`",
        make=lambda: changed(_source_expanded(set_up(PARTITIONED)), _with_library),
        follow=_unsafe,
    ),
    # a topic that a broker created automatically
    Advice(
        says="The topic is empty: stop the application, delete the topic",
        make=lambda: _auto_created(is_filled=False),
        follow=lambda t: t.delete(REPARTITION),
    ),
    Advice(
        says="The topic is empty: stop the application, delete the topic",
        make=lambda: changed(
            _auto_created(is_filled=False, text=COUNT), lambda t: t.configure(internal_topics_setup="manual")
        ),
        follow=lambda t: t.delete(REPARTITION),
    ),
    Advice(
        says="set `setup.ifIncomplete: true` for one `pulumi up`, which creates it",
        make=lambda: created_elsewhere(
            created_elsewhere(manual(begin), REPARTITION, partitions=1, is_filled=False), CHANGELOG
        ),
        follow=steps(lambda t: t.delete(REPARTITION), lambda t: t.switch(ifIncomplete=True)),
        leaves=("InternalTopicsAlreadySetup",),
    ),
    Advice(
        says="To add the partitions, set `partition.autoscaling.enabled: true`",
        make=lambda: _auto_created(is_filled=True, text=COUNT),
        follow=_with_autoscaling,
    ),
    Advice(
        says="To keep the state, stop the application and run `headwater reshard`",
        make=lambda: _source_expanded(created_elsewhere(begin(), REPARTITION, CHANGELOG)),
        follow=_resharded,
    ),
    Advice(
        says="If its records are not needed, stop the application, delete the topic",
        make=lambda: _auto_created(is_filled=True, text=COUNT),
        follow=lambda t: t.delete(REPARTITION),
        gives_up=True,
    ),
    # an explicit count
    Advice(says="Declare 4 again", make=lambda: _pin(set_up(PINNED), 6), follow=lambda t: _pin(t, 4)),
    Advice(says="Declare 4 again", make=lambda: _pin(set_up(PINNED), 2), follow=lambda t: _pin(t, 4)),
    Advice(
        says="If the data is not needed, stop the application, delete the topic",
        make=lambda: _pin(set_up(PINNED), 2),
        follow=steps(lambda t: t.delete(REPARTITION), lambda t: t.delete(CHANGELOG)),
        gives_up=True,
    ),
    # too many partitions
    Advice(
        says="Expand orders-in to 4 partitions",
        make=_shrunk_source,
        follow=_expand("orders-in", 4),
    ),
    Advice(
        says="If the data is not needed, stop the application, delete the topic",
        make=_shrunk_source,
        follow=steps(lambda t: t.delete(REPARTITION), lambda t: t.delete(CHANGELOG)),
        gives_up=True,
    ),
    Advice(
        says="Then, or if the state is not needed, stop the application, delete the topic",
        make=lambda: _by_hand(set_up(), CHANGELOG),
        follow=lambda t: t.delete(CHANGELOG),
        gives_up=True,
    ),
    Advice(
        says="To keep the state, copy the records of each partition that is expected. Then,",
        make=lambda: _by_hand(set_up(), CHANGELOG),
        follow=restore_changelog,
    ),
    Advice(
        says="set `setup.reinitialize: true` for one `pulumi up`, which creates it",
        make=lambda: _by_hand(manual(), CHANGELOG),
        follow=steps(
            lambda t: t.switch(reinitialize=True),
            restore_changelog,
            lambda t: t.settings().pop("setup"),
        ),
    ),
    Advice(
        says="If the application has processed all records of the topic (no lag in it)",
        make=lambda: _by_hand(set_up(), REPARTITION),
        follow=_drain_and_delete,
    ),
    Advice(
        says="The topic is empty: stop the application, delete the topic",
        make=lambda: _emptied(_by_hand(set_up(), REPARTITION), REPARTITION),
        follow=lambda t: t.delete(REPARTITION),
    ),
    Advice(
        says="Expand orders-in to 13 partitions",
        make=lambda: _by_hand(set_up(COPY), REPARTITION),
        follow=_expand("orders-in", 13),
    ),
    Advice(
        says="with `partition.autoscaling.enabled: true` for orders-by-k-repartition. First check",
        make=lambda: _by_hand(set_up(**STATIC), CHANGELOG),
        follow=steps(_expand("orders-in", 13), _with_autoscaling),
    ),
    Advice(
        says="Set the explicit count to 13 partitions, with `partition.autoscaling.enabled: true`",
        make=lambda: _by_hand(set_up(PINNED, **STATIC), CHANGELOG),
        follow=steps(lambda t: _pin(t, 13), _with_autoscaling),
    ),
    Advice(
        says="Set the explicit count to 13 partitions. ",
        make=lambda: _by_hand(set_up(PINNED, **STATIC), CHANGELOG, REPARTITION),
        follow=lambda t: _pin(t, 13),
    ),
    Advice(
        says="Declare 13 partitions for it",
        make=lambda: _by_hand(set_up(SINK), "orders-out"),
        follow=lambda t: t.documents["orders"]["topics"]["orders-out"].update(partitions=13),
    ),
)
