"""Fixes about the setup of an application, its lifecycle, and lost topics."""

from collections.abc import Callable
from copy import deepcopy

from headwater.model.records import StackIdentity
from tests.advice.trial import Advice, Follow, Trial, steps
from tests.advice.trials import (
    CHANGELOG,
    COUNT,
    REPARTITION,
    begin,
    changed,
    copy_state,
    created_elsewhere,
    manual,
    set_up,
)


def _foreign() -> Trial:
    return created_elsewhere(manual(begin), REPARTITION, CHANGELOG)


def _incomplete() -> Trial:
    return created_elsewhere(manual(begin), REPARTITION)


def _removed() -> Trial:
    return changed(set_up(), lambda trial: trial.documents.clear())


def _end(trial: Trial, lifecycle: str) -> None:
    trial.declare(COUNT)
    trial.settings()["lifecycle"] = lifecycle
    trial.up()
    trial.documents.clear()


def _rename(trial: Trial) -> None:
    trial.declare(COUNT.replace("id: orders,", "id: sales, renamedFrom: orders,"))


def _lost(trial: Trial) -> Trial:
    old = trial.cluster.topics[CHANGELOG].topic_id
    trial.delete(CHANGELOG)
    trial.filled.pop(old)
    return trial


def _replaced(trial: Trial, *, is_filled: bool) -> Trial:
    _lost(trial)
    trial.restore(CHANGELOG)
    if not is_filled:
        trial.empty(CHANGELOG)
    return trial


def _restore_again(trial: Trial) -> None:
    trial.delete(CHANGELOG)
    trial.restore(CHANGELOG)


def _running(trial: Trial, members: int | None = 2) -> Trial:
    trial.cluster.run_group("orders", members)
    return trial


def _retired(members: int | None) -> Trial:
    return _running(changed(set_up(), lambda t: t.settings().update(lifecycle="retired")), members)


def _reset(members: int | None) -> Trial:
    return _running(changed(_lost(manual()), lambda t: t.switch(reinitialize=True)), members)


def _forget(trial: Trial) -> None:
    trial.settings().pop("setup")


def _delete_all(trial: Trial) -> None:
    for name in (REPARTITION, CHANGELOG):
        trial.delete(name)


def _undone(change: Follow) -> Trial:
    """Return a stack with manual setup that has run with a change, and whose documents are as before it."""
    trial = manual()
    before = deepcopy(trial.documents)
    change(trial)
    trial.up()
    trial.documents = before
    return trial


def _copied() -> Trial:
    """Return a stack with manual setup whose user has renamed a store, and copied its state."""
    trial = manual()
    trial.step("count")["count"] = {"materialized": "totals"}
    copy_state(trial, CHANGELOG, "orders-totals-changelog")
    return trial


def _adopt_again(trial: Trial) -> None:
    trial.switch(adopt=True)


def _released_and_retired(make: Callable[[], Trial] = begin) -> Trial:
    """Return a stack whose document retires an application that the stack has released."""
    trial = make()
    trial.stack = StackIdentity("its id", "acme/headwater/production")
    trial.ownership = ()
    trial.up()
    trial.fill(*trial.cluster.topics)
    trial.settings()["lifecycle"] = "released"
    trial.up()
    trial.settings()["lifecycle"] = "retired"
    return trial


def _retire_again(trial: Trial, *, adopt: bool = False) -> None:
    trial.settings()["lifecycle"] = "active"
    trial.switch(adopt=adopt)
    trial.up()
    trial.settings()["lifecycle"] = "retired"


LIFECYCLE = (
    Advice(
        says="Remove the document of orders, and retire it in the stack that manages it",
        make=_released_and_retired,
        follow=lambda t: t.documents.clear(),
    ),
    Advice(
        says="If no stack manages it, run `pulumi up` with `lifecycle: active` first, which adopts",
        make=_released_and_retired,
        follow=_retire_again,
    ),
    Advice(
        says="with `lifecycle: active` and `setup.adopt: true` first, which adopts the topics",
        make=lambda: _released_and_retired(lambda: manual(begin)),
        follow=lambda t: _retire_again(t, adopt=True),
    ),
    Advice(
        says="if `headwater state copy` created the topics, or if the application ran without Headwater, was "
        "released or had this id before, the topics are in use: set `setup.adopt: true`",
        make=_copied,
        follow=_adopt_again,
        leaves=("orphaned",),
    ),
    Advice(
        says="was released or had this id before, the topics are in use: set `setup.adopt: true`",
        make=lambda: _undone(lambda t: t.settings().update(lifecycle="released")),
        follow=_adopt_again,
    ),
    Advice(
        says="was released or had this id before, the topics are in use: set `setup.adopt: true`",
        make=lambda: changed(
            _undone(steps(lambda t: t.documents.clear(), _rename)),
            lambda t: t.settings().update(renamedFrom="sales"),
        ),
        follow=_adopt_again,
    ),
    Advice(
        says="set `setup.adopt: true` for one `pulumi up`",
        make=_foreign,
        follow=lambda t: t.switch(adopt=True),
    ),
    Advice(
        says="Delete them only if no application uses them and their data is not needed",
        make=_foreign,
        follow=_delete_all,
        gives_up=True,
    ),
    Advice(
        says="set `setup.ifIncomplete: true`", make=_incomplete, follow=lambda t: t.switch(ifIncomplete=True)
    ),
    Advice(
        says="Otherwise restore the topic first, and set `setup.adopt: true` for one `pulumi up`",
        make=_incomplete,
        follow=steps(lambda t: t.restore(CHANGELOG), lambda t: t.switch(adopt=True)),
    ),
    Advice(says="Restore the document", make=_removed, follow=lambda t: t.declare(COUNT)),
    Advice(
        says="(its topics stay)", make=_removed, follow=lambda t: _end(t, "released"), leaves=("orphaned",)
    ),
    Advice(
        says="(its internal topics are deleted by the next `pulumi up`)",
        make=_removed,
        follow=lambda t: _end(t, "retired"),
        gives_up=True,
    ),
    Advice(
        says="declare the old one as `renamedFrom`",
        make=_removed,
        follow=_rename,
        gives_up=True,
        leaves=("orphaned", "renamed"),
    ),
    Advice(
        says="Restore the topic from a backup",
        make=lambda: _lost(manual()),
        follow=lambda t: t.restore(CHANGELOG),
    ),
    Advice(
        says="To continue without its data, stop the application and set `setup.reinitialize: true`",
        make=lambda: _lost(manual()),
        follow=lambda t: t.switch(reinitialize=True),
        gives_up=True,
    ),
    Advice(
        says="re-creates it, empty. If you need the lost data, restore the topic",
        make=lambda: _lost(set_up()),
        follow=lambda t: t.restore(CHANGELOG),
    ),
    Advice(
        says="Stop the application first. `pulumi up` re-creates it, empty",
        make=lambda: _lost(set_up()),
        gives_up=True,
    ),
    Advice(
        says="Restore the topic from a backup",
        make=lambda: _replaced(manual(), is_filled=False),
        follow=_restore_again,
    ),
    Advice(
        says="To continue without its data, stop the application and set `setup.reinitialize: true`",
        make=lambda: _replaced(manual(), is_filled=False),
        follow=lambda t: t.switch(reinitialize=True),
        gives_up=True,
    ),
    Advice(
        says="Make sure that it was restored on purpose",
        make=lambda: _replaced(manual(), is_filled=True),
    ),
    Advice(
        says="Stop all instances of the application and wait until its consumer group is empty",
        make=lambda: _reset(2),
        follow=lambda t: t.cluster.run_group("orders", 0),
        gives_up=True,
    ),
    Advice(
        says="Stop all instances and delete the group",
        make=lambda: _retired(None),
        follow=steps(lambda t: t.cluster.groups.clear(), lambda t: t.up(), lambda t: t.documents.clear()),
        gives_up=True,
    ),
    Advice(
        says="Remove `setup.reinitialize` from the document",
        make=lambda: changed(set_up(), lambda t: t.switch(reinitialize=True)),
        follow=_forget,
    ),
    Advice(
        says="Remove `setup.allowUnsafeExpansion` from the document",
        make=lambda: changed(set_up(), lambda t: t.switch(allowUnsafeExpansion=True)),
        follow=_forget,
    ),
    Advice(
        says="raise `setup.timeout`",
        make=lambda: changed(set_up(), lambda t: setattr(t, "elapsed_ms", 61_000)),
        follow=lambda t: t.switch(timeout="2m"),
    ),
    Advice(
        says="Check for a slow or overloaded broker",
        make=lambda: changed(set_up(), lambda t: setattr(t, "elapsed_ms", 61_000)),
        follow=lambda t: setattr(t, "elapsed_ms", 10),
    ),
    Advice(
        says="Correct the bootstrap servers, or select the stack of this cluster",
        make=lambda: changed(set_up(), lambda t: setattr(t, "cluster_id", "another")),
        follow=lambda t: setattr(t, "cluster_id", t.cluster.snapshot.cluster_id),
    ),
    Advice(
        says="set `headwater:clusterId` of the stack to its id",
        make=lambda: changed(set_up(), lambda t: setattr(t, "cluster_id", "another")),
        follow=lambda t: setattr(t, "cluster_id", t.cluster.snapshot.cluster_id),
    ),
)
