"""Fixes about the number of processors (KIP-287), and about topics of two applications."""

from typing import Any

from headwater.model.offset_metadata import MoveMark, MovePhase
from tests.advice.counts import restore_changelog
from tests.advice.trial import Advice, Trial, steps
from tests.advice.trials import CHANGELOG, COUNT, REPARTITION, begin, changed, set_up

KEYED = """
application: {id: orders, kafkaStreams: "4.3", processors: 4, config: {processing.guarantee: exactly_once_v2}}
topics: {}
topology:
  - stream: orders-in
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: orders-out
"""
TWO_INPUTS = KEYED.replace("stream: orders-in", "stream: {topics: [orders-in, orders-more]}")
AUTOSCALING: dict[str, Any] = {"partition_autoscaling_enabled": "true"}
LINEAR: dict[str, Any] = {
    "static_partitioner_class": "linear-hash",
    "static_partitioner_initial_partitions": "4",
}


def _declare(trial: Trial, processors: int | None) -> Trial:
    trial.settings().pop("processors", None)
    if processors is not None:
        trial.settings()["processors"] = processors
    return trial


def _declared(before: int, after: int | None, *, source: int = 4, **config: str) -> Trial:
    """Return an application whose document has another number of processors than its state."""
    trial = begin(KEYED, **config)
    trial.cluster.change("orders-in", partitions=before)
    trial.fill("orders-in")
    _declare(trial, before)
    trial.up()
    trial.fill(CHANGELOG)
    trial.cluster.change("orders-in", partitions=source)
    return _declare(trial, after)


def _expanded_elsewhere(*, source: int) -> Trial:
    """Return an application with 4 processors whose changelog topic another client has expanded."""
    trial = _declared(4, 4, source=source, **AUTOSCALING)
    trial.cluster.change(CHANGELOG, partitions=8)
    return trial


def _undeclared() -> Trial:
    """Return an application with 4 processors whose stack has lost its state, and a document without them."""
    trial = _declared(4, None, source=8, static_partitioner_class="tenants:ByTenant", **AUTOSCALING)
    trial.cluster.records.clear()
    trial.cluster.undeclared = frozenset({"orders"})
    return trial


def _first(processors: int) -> Trial:
    return _declare(begin(KEYED), processors)


def _unequal() -> Trial:
    trial = begin(TWO_INPUTS)
    trial.cluster.create("orders-more", 6)
    return trial


def _repartitioned(trial: Trial) -> None:
    trial.documents["orders"]["topology"].insert(1, {"repartition": {"name": "by-k", "partitions": 4}})


def _moved(trial: Trial, processors: int) -> None:
    """Commit a number of processors, as a move and an expansion do at their end."""
    trial.cluster.processors["orders"] = processors
    have = trial.cluster.topics[CHANGELOG].partitions
    trial.cluster.change(CHANGELOG, partitions=max(have, processors))
    trial.fill(CHANGELOG)


def _start_again(trial: Trial, processors: int | None = None) -> None:
    """Delete the internal topics, and process the input again."""
    trial.empty(CHANGELOG)
    trial.delete(CHANGELOG)
    trial.switch(reinitialize=True)
    if processors is not None:
        _declare(trial, processors)


def _expand(trial: Trial, name: str, count: int) -> None:
    trial.cluster.change(name, partitions=count)
    trial.fill(name)


def _narrowed() -> Trial:
    trial = _declared(4, 4)
    trial.empty("orders-in")
    trial.delete("orders-in")
    trial.cluster.create("orders-in", 2)
    return trial


def _expanding(declared: int) -> Trial:
    """Return an application that is being expanded to 8 processors."""
    trial = _declared(4, declared, source=8, **AUTOSCALING)
    trial.cluster.processors["orders"] = 4
    trial.cluster.moves["orders"] = MoveMark(MovePhase.CATCH_UP, 4, 8)
    trial.cluster.change(CHANGELOG, partitions=8)
    trial.fill(CHANGELOG)
    return trial


def _complete(trial: Trial) -> None:
    trial.cluster.moves.clear()
    _moved(trial, 8)


PROCESSORS = (
    Advice(says="Set `processors: 4`.", make=lambda: _first(3), follow=lambda t: _declare(t, 4)),
    Advice(
        says="Or expand the source topics to 6 partitions first",
        make=lambda: _first(6),
        follow=lambda t: _expand(t, "orders-in", 6),
    ),
    Advice(
        says="Expand the smaller inputs to the largest count, and set `processors` to it",
        make=_unequal,
        follow=steps(lambda t: _expand(t, "orders-in", 6), lambda t: _declare(t, 6)),
    ),
    Advice(says="Or put repartition() before the operators with state", make=_unequal, follow=_repartitioned),
    Advice(
        says="Declare `processors: 4` again.",
        make=lambda: _declared(4, None, source=8, **AUTOSCALING),
        follow=lambda t: _declare(t, 4),
    ),
    Advice(
        says="To lose the connection to the old state, set `setup.allowUnsafeExpansion: true`",
        make=lambda: _declared(4, None, source=8, **AUTOSCALING),
        follow=lambda t: t.switch(allowUnsafeExpansion=True),
        gives_up=True,
    ),
    Advice(
        says="Declare `processors: 4`, as the document of the application does",
        make=_undeclared,
        follow=lambda t: _declare(t, 4),
    ),
    Advice(
        says="To lose the connection to the old state, set `setup.allowUnsafeExpansion: true`",
        make=_undeclared,
        follow=lambda t: t.switch(allowUnsafeExpansion=True),
        gives_up=True,
    ),
    Advice(
        says="For fewer processors, stop the application, and run `headwater processors move --offline` with "
        "the document. Then run this command again, "
        "or start",
        make=lambda: _declared(4, 2),
        follow=lambda t: _moved(t, 2),
    ),
    Advice(
        says="Declare `processors: 4`; after `headwater processors expand`, that is the new number",
        make=lambda: _declared(4, 2),
        follow=lambda t: _declare(t, 4),
    ),
    Advice(
        says="Declare `processors: 8`; after `headwater processors expand`, that is the new number",
        make=lambda: changed(_declared(4, 4, source=8, **AUTOSCALING), lambda t: _moved(t, 8)),
        follow=lambda t: _declare(t, 8),
    ),
    Advice(
        says="For another number without the present state, stop the application, delete its internal topics",
        make=lambda: _declared(4, 2, static_partitioner_class="tenants:ByTenant"),
        follow=lambda t: _start_again(t, 4),
        gives_up=True,
    ),
    Advice(
        says="First expand the source topics to 8 partitions with `processors: 4`",
        make=lambda: _declared(4, 8, **AUTOSCALING),
        follow=steps(
            lambda t: _expand(t, "orders-in", 8),
            lambda t: _declare(t, 4),
            lambda t: t.up(),
            lambda t: _declare(t, 8),
            lambda t: _moved(t, 8),
        ),
    ),
    *(
        Advice(
            says=says, make=lambda: _declared(4, 8, source=8, **AUTOSCALING), follow=lambda t: _moved(t, 8)
        )
        for says in (
            "Start the application with this document, or start it again: it expands itself",
            "If it must not be restarted, run `headwater processors expand --to 8`",
        )
    ),
    *(
        Advice(
            says=says,
            make=lambda: _declared(
                4, 8, source=8, static_partitioner_class="tenants:ByTenant", **AUTOSCALING
            ),
            follow=lambda t: _moved(t, 8),
        )
        for says in (
            "If the application runs, run `headwater processors expand --to 8`",
            "Or stop it, and run `headwater processors move --offline` with the document",
        )
    ),
    Advice(
        says="it adds them now, and `headwater status` shows the progress",
        make=lambda: _expanding(8),
        follow=_complete,
    ),
    Advice(
        says="Declare `processors: 8`.",
        make=lambda: _expanding(4),
        follow=steps(lambda t: _declare(t, 8), _complete),
    ),
    Advice(
        says="To keep the state, copy the records of each partition that is expected. Then,",
        make=lambda: _expanded_elsewhere(source=4),
        follow=restore_changelog,
    ),
    Advice(
        says="If another client has added the partitions, such as an agent without `processors` in its "
        "document, the application does not start with 8. Then keep `processors: 4`. To keep the state, copy "
        "the records of each partition that is expected. Then,",
        make=lambda: _expanded_elsewhere(source=8),
        follow=restore_changelog,
    ),
    Advice(
        says="Re-create it with 4 partitions",
        make=_narrowed,
        follow=steps(lambda t: t.delete("orders-in"), lambda t: t.cluster.create("orders-in", 4)),
    ),
    Advice(
        says="Expand the source topics to 8 partitions",
        make=lambda: _declared(4, 4, source=6, **AUTOSCALING),
        follow=lambda t: _expand(t, "orders-in", 8),
    ),
    Advice(
        says="partition statically or by linear hashing, set `static.partitioner.class`",
        make=lambda: _declared(4, 4, source=6, **AUTOSCALING),
        follow=lambda t: t.configure(**LINEAR),
    ),
    Advice(
        says="To lose the connection to the old state, set `setup.allowUnsafeExpansion: true`",
        make=lambda: _declared(4, 4, source=6, **AUTOSCALING),
        follow=lambda t: t.switch(allowUnsafeExpansion=True),
        gives_up=True,
    ),
    Advice(
        says="Set the number as before",
        make=lambda: changed(
            _declared(4, 4, source=8, **AUTOSCALING, **LINEAR),
            lambda t: t.configure(static_partitioner_initial_partitions="3"),
        ),
        follow=lambda t: t.configure(**LINEAR),
    ),
)

SINK = COUNT.replace("topics: {}", "topics: {orders-out: {partitions: 4}}")
SUMS = COUNT.replace("id: orders,", "id: orders-sums, setup: {allowIdOverlap: true},").replace(
    "name: by-k", "name: by-s"
)
SHARED = "orders-sums-counts-changelog"


def _former(lifecycle: str | None = None) -> Trial:
    """Return two applications with names for one topic: one has set it up, and the other one is new."""
    trial = set_up(COUNT.replace("materialized: counts", "materialized: sums-counts"))
    if lifecycle is None:
        trial.declare(COUNT)
    else:
        trial.settings()["lifecycle"] = lifecycle
    trial.declare(SUMS)
    return trial


def _without_new(trial: Trial) -> None:
    document = trial.documents.pop("orders-sums")
    trial.up()
    if trial.settings()["lifecycle"] == "retired":
        del trial.documents["orders"]
        trial.up()
    trial.documents["orders-sums"] = document


def _rename_store(trial: Trial) -> None:
    trial.documents["orders-sums"]["topology"][3] = {"count": {"materialized": "others"}}


def _recreated_sink(trial: Trial) -> Trial:
    trial.empty("orders-out")
    trial.cluster.recreate("orders-out", is_empty=False)
    trial.fill("orders-out")
    return trial


def _retired_again(*, is_second: bool) -> Trial:
    trial = set_up()
    trial.settings()["lifecycle"] = "retired"
    if is_second:
        trial.up()
        del trial.documents["orders"]
    trial.empty(REPARTITION)
    trial.cluster.recreate(REPARTITION, is_empty=False)
    trial.fill(REPARTITION)
    return trial


def _restored(trial: Trial, lifecycle: str) -> None:
    trial.declare(COUNT)
    trial.settings()["lifecycle"] = lifecycle
    trial.up()
    trial.documents.clear()


TOPICS = (
    Advice(
        says="Or give the topic another name in orders-sums",
        make=_former,
        follow=_rename_store,
        gives_up=True,
        leaves=("orphaned",),
    ),
    Advice(
        says="Run `pulumi up` without the document of orders-sums first: orders then releases it",
        make=lambda: _former("released"),
        follow=_without_new,
    ),
    Advice(
        says="Complete the retirement of orders without the document of orders-sums first",
        make=lambda: _former("retired"),
        follow=_without_new,
        gives_up=True,
    ),
    Advice(
        says="Make sure that the new topic is meant for this application",
        make=lambda: _recreated_sink(set_up(SINK)),
    ),
    Advice(
        says="If it belongs to another one, remove it from the document",
        make=lambda: _recreated_sink(set_up(SINK)),
        follow=lambda t: t.documents["orders"].update(topics={}),
        leaves=("orphaned",),
    ),
    Advice(
        says="or write to another topic",
        make=lambda: _recreated_sink(set_up(SINK)),
        follow=steps(
            lambda t: t.step("to").update(to="orders-others"),
            lambda t: t.documents["orders"].update(topics={"orders-others": {"partitions": 4}}),
        ),
        leaves=("orphaned",),
    ),
    Advice(
        says="If it may be deleted, continue: this run records its id",
        make=lambda: _retired_again(is_second=False),
        follow=steps(lambda t: t.up(), lambda t: t.documents.clear()),
        gives_up=True,
    ),
    Advice(
        says="To keep it, set `lifecycle: released` before you remove the document",
        make=lambda: _retired_again(is_second=False),
        follow=lambda t: t.settings().update(lifecycle="released"),
    ),
    Advice(
        says="To keep it, restore the document with `lifecycle: released` and run `pulumi up`",
        make=lambda: _retired_again(is_second=True),
        follow=lambda t: _restored(t, "released"),
    ),
    Advice(
        says="To delete it, restore the document with `lifecycle: retired` and run `pulumi up`",
        make=lambda: _retired_again(is_second=True),
        follow=lambda t: _restored(t, "retired"),
        gives_up=True,
    ),
)
