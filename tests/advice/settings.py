"""Fixes about settings and replicas of topics, names, sources and sinks."""

from headwater.model.problems import ProblemCode, errors
from tests.advice.trial import Advice, Trial, steps
from tests.advice.trials import (
    CHANGELOG,
    COUNT,
    GENERATED,
    REPARTITION,
    STORE,
    begin,
    changed,
    copy_state,
    manual,
    set_up,
)

SUPPRESSED = """
application: {id: orders, kafkaStreams: "4.3", config: {}}
topology:
  - stream: orders-in
  - groupByKey:
  - windowedBy: {tumbling: {size: 1h, grace: 1m}}
  - count: {materialized: counts}
  - suppress: {until: windowCloses}
  - toStream:
  - to: orders-out
"""
SINK = COUNT.replace("topics: {}", "topics: {orders-out: {partitions: 4}}")
JOINED = """
application: {id: orders, kafkaStreams: "4.3", config: {}}
topology:
  - table: {topic: orders-out, materialized: lookups, as: lookups}
  - stream: orders-in
  - selectKey:
  - join: {with: lookups}
  - foreach:
"""
SIMILAR = """
application: {id: orders, kafkaStreams: "4.3", config: {}}
topology:
  - stream: {topic: orders-in, as: in}
  - groupByKey:
  - count: {materialized: by.day}
  - toStream:
  - to: orders-out
  - groupByKey: {from: in}
  - reduce: {materialized: by_day}
"""
TWO_STORES = """
application: {id: orders, kafkaStreams: "4.3", config: {}}
topology:
  - stream: {topic: orders-in, as: in}
  - selectKey:
  - groupByKey:
  - count:
  - toStream:
  - to: orders-out
  - peek: {from: in}
  - groupByKey: {from: in}
  - reduce:
"""


def _configured(trial: Trial, name: str, **config: str) -> Trial:
    trial.cluster.configure(name, **config)
    return trial


def _reset(trial: Trial, name: str, key: str) -> None:
    config = trial.cluster.topics[name].config
    trial.cluster.change(name, config={each: value for each, value in config.items() if each != key})


def _reset_setting(trial: Trial) -> None:
    trial.cluster.configure(CHANGELOG, cleanup_policy="compact")


def _log(trial: Trial, **overrides: str) -> None:
    """Declare settings of the changelog topic at its store."""
    settings = {name.replace("_", "."): value for name, value in overrides.items()}
    trial.step("count")["count"] = {"materialized": {"store": "counts", "logging": settings}}


def _replicas(trial: Trial, count: int, *names: str) -> Trial:
    for name in names or (REPARTITION, CHANGELOG):
        trial.cluster.change(name, replication_factor=count)
    return trial


def _with_default(trial: Trial, key: str = "retention.bytes", value: str = "1000") -> Trial:
    trial.cluster.topic_defaults[key] = value
    return trial


def _streams_with_default() -> Trial:
    trial = begin()
    trial.settings()["protocol"] = "streams"
    trial.cluster.group_protocols = frozenset({"classic", "consumer", "streams"})
    trial.cluster.features = {"streams.version": 1}
    trial.up()
    trial.fill(*trial.cluster.topics)
    return _with_default(trial)


def _insync(trial: Trial, count: int) -> Trial:
    for name in (REPARTITION, CHANGELOG):
        trial.cluster.configure(name, min_insync_replicas=str(count))
    return trial


def _renumbered(text: str = GENERATED, mode: str = "automatic") -> Trial:
    return changed(set_up(text, internal_topics_setup=mode), _add_filter)


def _add_filter(trial: Trial) -> None:
    trial.documents["orders"]["topology"].insert(1, {"filter": None})


def _undo(trial: Trial) -> None:
    trial.documents["orders"]["topology"].pop(1)


def _name_store(trial: Trial) -> None:
    trial.step("count")["count"] = {"materialized": STORE}
    trial.step("groupByKey")["groupByKey"] = {"name": STORE}


def _renumbered_once() -> Trial:
    """Return a stack where one of two stores is renumbered; its name would shift the other one."""
    trial = set_up(TWO_STORES)
    steps = trial.documents["orders"]["topology"]
    del steps[next(index for index, step in enumerate(steps) if "peek" in step)]
    steps.insert(1, {"filter": None})
    return trial


def _name_until_nothing_is_renumbered(trial: Trial) -> None:
    for call, store in (("count", STORE), ("reduce", "KSTREAM-REDUCE-STATE-STORE-0000000010")):
        renumbered = [each for each in trial.plan().problems if each.code is ProblemCode.RENUMBERED]
        assert any(f"name the store exactly `{store}`" in each.fix for each in renumbered), renumbered
        trial.step(call)[call] = {"materialized": store}


def _reinitialize(trial: Trial) -> None:
    trial.switch(reinitialize=True)
    trial.up()
    trial.settings().pop("setup")


def _copy_renumbered(trial: Trial) -> None:
    """Copy the data of all topics to their new names, which have the next number."""
    for topic in trial.compile()[1][0].internal_topics:
        copy_state(trial, topic.name.replace("0000000003", "0000000002"), topic.name)


def _adopt_copy(trial: Trial) -> None:
    """Follow both problems of a run after the copy."""
    codes = {each.code for each in errors(trial.plan().problems)}
    assert codes == {ProblemCode.RENUMBERED, ProblemCode.INTERNAL_TOPICS_ALREADY_SETUP}
    trial.switch(reinitialize=True, adopt=True)


def _repartition_first(trial: Trial) -> None:
    steps = trial.documents["orders"]["topology"]
    join = next(index for index, step in enumerate(steps) if "join" in step)
    (name,) = (n for n in trial.cluster.topics if n.endswith("-repartition"))
    steps.insert(join, {"repartition": {"name": name.removeprefix("orders-").removesuffix("-repartition")}})


def _without(trial: Trial, name: str) -> Trial:
    topic = trial.cluster.topics.pop(name)
    trial.filled.pop(topic.topic_id, None)
    return trial


def _declare_sink(trial: Trial, **settings: object) -> None:
    trial.documents["orders"].setdefault("topics", {})["orders-out"] = settings or None


SETTINGS = (
    # names
    Advice(
        says="Give one of the two topics another name in the document",
        make=lambda: begin(SIMILAR),
        follow=lambda t: t.step("reduce").update(reduce={"materialized": "days"}),
    ),
    # settings that lose data
    Advice(
        says=f"--alter --topic {CHANGELOG} --add-config cleanup.policy=compact",
        make=lambda: _configured(manual(), CHANGELOG, cleanup_policy="compact,delete"),
        follow=_reset_setting,
    ),
    Advice(
        says=f"--alter --topic {REPARTITION} --delete-config retention.bytes",
        make=lambda: _configured(manual(), REPARTITION, retention_bytes="1000"),
        follow=lambda t: _reset(t, REPARTITION, "retention.bytes"),
    ),
    Advice(
        says="set `internal.topics.setup: automatic` and run again",
        make=lambda: _configured(manual(), CHANGELOG, cleanup_policy="compact,delete"),
        follow=lambda t: t.configure(internal_topics_setup="automatic"),
    ),
    Advice(
        says="resets it",
        make=lambda: _configured(set_up(), CHANGELOG, cleanup_policy="compact,delete"),
    ),
    *(
        Advice(
            says='declare it at store counts: `logging: {cleanup.policy: "compact,delete"}`',
            make=make,
            follow=lambda t: _log(t, cleanup_policy="compact,delete"),
        )
        for make in (
            lambda: _configured(set_up(), CHANGELOG, cleanup_policy="compact,delete"),
            lambda: _configured(manual(), CHANGELOG, cleanup_policy="compact,delete"),
        )
    ),
    Advice(
        says="declare it in the application's config, for all internal topics: `topic.retention.bytes: 1000`",
        make=lambda: _configured(set_up(), REPARTITION, retention_bytes="1000"),
        follow=lambda t: t.configure(topic_retention_bytes="1000"),
    ),
    # settings of single topics that harm them
    Advice(
        says=f"Run `kafka-configs.sh --bootstrap-server BROKER --alter --topic {CHANGELOG} --add-config "
        "max.message.bytes=1048588`",
        make=lambda: _configured(set_up(), CHANGELOG, max_message_bytes="1000"),
        follow=lambda t: t.cluster.configure(CHANGELOG, max_message_bytes="1048588"),
    ),
    Advice(
        says=f"Run `kafka-configs.sh --bootstrap-server BROKER --alter --topic {CHANGELOG} --delete-config "
        "max.message.bytes`",
        make=lambda: _with_default(
            _configured(set_up(), CHANGELOG, max_message_bytes="1000"), "max.message.bytes", "1048588"
        ),
        follow=lambda t: _reset(t, CHANGELOG, "max.message.bytes"),
    ),
    # broker defaults that harm internal topics
    *(
        Advice(
            says="Declare `topic.retention.bytes: -1` in the application's config, and run `pulumi up`",
            make=make,
            follow=lambda t: t.configure(topic_retention_bytes="-1"),
        )
        for make in (lambda: _with_default(begin()), lambda: _with_default(set_up()))
    ),
    Advice(
        says="and set it on each topic: `kafka-configs.sh --bootstrap-server BROKER --alter --topic "
        f"{REPARTITION} --add-config retention.bytes=-1`",
        make=lambda: _with_default(manual()),
        follow=steps(
            lambda t: t.configure(topic_retention_bytes="-1"),
            lambda t: t.cluster.configure(REPARTITION, retention_bytes="-1"),
            lambda t: t.cluster.configure(CHANGELOG, retention_bytes="-1"),
        ),
    ),
    Advice(
        says="or the store's overrides). Do not remove it: the brokers' default 1000 would harm the topic",
        make=lambda: _with_default(_configured(set_up(), REPARTITION, retention_bytes="-1")),
        follow=lambda t: t.configure(topic_retention_bytes="-1"),
    ),
    Advice(
        says="Or set log.retention.bytes of the brokers to -1",
        make=lambda: _with_default(set_up()),
        follow=lambda t: _with_default(t, value="-1"),
    ),
    Advice(
        says="Set log.retention.bytes of the brokers to -1. Or declare `topic.retention.bytes: -1`",
        make=_streams_with_default,
        follow=lambda t: _with_default(t, value="-1"),
    ),
    *(
        Advice(
            says="If the default is intended, declare 1000 instead",
            make=make,
            follow=lambda t: t.configure(topic_retention_bytes="1000"),
        )
        for make in (lambda: _with_default(set_up()), lambda: _with_default(manual()))
    ),
    Advice(
        says="Declare `topic.max.message.bytes: 5000000`",
        make=lambda: _with_default(
            set_up(producer_max_request_size="5000000"), "max.message.bytes", "1048588"
        ),
        follow=lambda t: t.configure(topic_max_message_bytes="5000000"),
    ),
    # settings that differ
    Advice(
        says="Run `pulumi up`, which sets the declared value",
        make=lambda: _configured(set_up(), REPARTITION, segment_bytes="2000000"),
    ),
    Advice(
        says="or declare the live value",
        make=lambda: _configured(set_up(), REPARTITION, segment_bytes="2000000"),
        follow=lambda t: t.configure(topic_segment_bytes="2000000"),
    ),
    Advice(
        says="Set the declared value with `kafka-configs.sh`",
        make=lambda: _configured(manual(), REPARTITION, segment_bytes="2000000"),
        follow=lambda t: t.cluster.configure(REPARTITION, segment_bytes="52428800"),
    ),
    Advice(
        says="declare the live value, or set `internal.topics.setup: automatic` and run `pulumi up`",
        make=lambda: _configured(manual(), REPARTITION, segment_bytes="2000000"),
        follow=lambda t: t.configure(internal_topics_setup="automatic"),
    ),
    Advice(
        says="Declare it (`topic.` configs of the application",
        make=lambda: _configured(
            _configured(set_up(), REPARTITION, compression_type="lz4"), CHANGELOG, compression_type="lz4"
        ),
        follow=lambda t: t.configure(topic_compression_type="lz4"),
    ),
    Advice(
        says="or the store's overrides",
        make=lambda: _configured(set_up(), CHANGELOG, compression_type="lz4"),
        follow=lambda t: _log(t, compression_type="lz4"),
    ),
    Advice(
        says="or remove it with `kafka-configs.sh`",
        make=lambda: _configured(set_up(), CHANGELOG, compression_type="lz4"),
        follow=lambda t: t.cluster.change(
            CHANGELOG,
            config={k: v for k, v in t.cluster.topics[CHANGELOG].config.items() if k != "compression.type"},
        ),
    ),
    # replicas
    *(
        Advice(
            says=says,
            make=lambda: begin(replication_factor="1", topic_min_insync_replicas="2"),
            follow=follow,
        )
        for says, follow in (
            ("Set `replication.factor` to 2 or more", lambda t: t.configure(replication_factor="2")),
            (
                "or lower `topic.min.insync.replicas` to 1 in the document",
                lambda t: t.configure(topic_min_insync_replicas="1"),
            ),
        )
    ),
    Advice(
        says="or set `topic.min.insync.replicas` to 1 in the document",
        make=lambda: changed(
            begin(replication_factor="1"), lambda t: setattr(t.cluster, "default_min_insync_replicas", 2)
        ),
        follow=lambda t: t.configure(topic_min_insync_replicas="1"),
    ),
    *(
        Advice(says=says, make=lambda: _insync(_replicas(set_up(), 1), 2), follow=follow)
        for says, follow in (
            ("Reassign its partitions to 2 or more replicas", lambda t: _replicas(t, 2)),
            ("Or lower the setting of the topic (`kafka-configs.sh", lambda t: _insync(t, 1)),
        )
    ),
    Advice(
        says="and declare the same `replication.factor`",
        make=lambda: _insync(set_up(replication_factor="1"), 2),
        follow=steps(lambda t: _replicas(t, 2), lambda t: t.configure(replication_factor="2")),
    ),
    Advice(
        says="Or lower `topic.min.insync.replicas` to 1 in the document",
        make=lambda: changed(
            set_up(replication_factor="1"), lambda t: t.configure(topic_min_insync_replicas="2")
        ),
        follow=lambda t: t.configure(topic_min_insync_replicas="1"),
    ),
    Advice(
        says="and lower `topic.min.insync.replicas` to 1 in the document",
        make=lambda: _insync(
            manual(
                lambda text, **c: set_up(text, replication_factor="1", topic_min_insync_replicas="1", **c)
            ),
            2,
        ),
        follow=steps(lambda t: _insync(t, 1), lambda t: t.configure(topic_min_insync_replicas="1")),
    ),
    *(
        Advice(
            says=says,
            make=lambda: changed(set_up(SINK), lambda t: _declare_sink(t, partitions=4, replicationFactor=2)),
            follow=follow,
        )
        for says, follow in (
            (
                "Reassign its partitions (`kafka-reassign-partitions.sh`)",
                lambda t: _replicas(t, 2, "orders-out"),
            ),
            ("or correct the declared factor", lambda t: _declare_sink(t, partitions=4, replicationFactor=3)),
        )
    ),
    # generated names
    Advice(says=f"To keep its data, name the store exactly `{STORE}`", make=_renumbered, follow=_name_store),
    Advice(
        says=f"To keep its data, name the grouping exactly `{STORE}`", make=_renumbered, follow=_name_store
    ),
    Advice(
        says=f"To keep its data, name the store exactly `{STORE}`",
        make=lambda: _renumbered(mode="manual"),
        follow=_name_store,
    ),
    Advice(
        says="before a join, add `repartition: {name: KSTREAM-KEY-SELECT-0000000003}`",
        make=lambda: _renumbered(JOINED),
        follow=_repartition_first,
    ),
    Advice(
        says="A name shifts the numbers after it: plan again before you apply it",
        make=_renumbered_once,
        follow=_name_until_nothing_is_renumbered,
    ),
    Advice(says="or undo the change that shifted the index", make=_renumbered, follow=_undo),
    Advice(
        says="Undo the change that shifted the index: no name",
        make=lambda: _renumbered(SUPPRESSED),
        follow=_undo,
    ),
    Advice(
        says="To continue without the old state, reset the application",
        make=_renumbered,
        gives_up=True,
        leaves=("orphaned",),
    ),
    Advice(
        says="To continue without the data of the old topics, stop the application and set",
        make=lambda: _renumbered(mode="manual"),
        follow=lambda t: t.switch(reinitialize=True),
        gives_up=True,
        leaves=("orphaned",),
    ),
    *(
        Advice(
            says="Do the same if you copy their data",
            make=lambda: _renumbered(mode="manual"),
            follow=follow,
            leaves=("orphaned",),
        )
        for follow in (steps(_reinitialize, _copy_renumbered), steps(_copy_renumbered, _adopt_copy))
    ),
    # sources and sinks
    Advice(
        says="Create the topic before the application is set up",
        make=lambda: _without(set_up(), "orders-in"),
        follow=lambda t: t.cluster.create("orders-in", 4),
    ),
    Advice(
        says="or correct its name",
        make=lambda: changed(
            set_up(), lambda t: t.documents["orders"]["topology"].__setitem__(0, {"stream": "order-in"})
        ),
        follow=lambda t: t.documents["orders"]["topology"].__setitem__(0, {"stream": "orders-in"}),
    ),
    Advice(
        says="Create it, or add `orders-out:` to `topics` of the document",
        make=lambda: _without(set_up(), "orders-out"),
        follow=lambda t: t.cluster.create("orders-out", 4),
    ),
    Advice(
        says="or add `orders-out:` to `topics` of the document",
        make=lambda: _without(set_up(), "orders-out"),
        follow=_declare_sink,
    ),
    Advice(
        says="Otherwise run `pulumi up`, which creates it",
        make=begin,
        follow=lambda t: t.up(),
    ),
)
