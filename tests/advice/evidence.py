"""Fixes about topics whose owner is in question: adoption, left-over topics, deletion, overlapping ids."""

import attrs

from headwater.model.cluster import UnreadEvidence
from headwater.model.records import OwnershipRecord, StackIdentity
from tests.advice.processors import SUMS
from tests.advice.trial import Advice, Follow, Trial, steps
from tests.advice.trials import CHANGELOG, COUNT, begin, changed, set_up
from tests.planner.simulated_cluster import DENIED_GROUPS, GROUPS_OF_STOPPED_BROKERS

LEFT = "orders-old-changelog"
SHARED = "orders-sums-counts-changelog"
_OTHERS_SINK = COUNT.replace(
    "topics: {}", "topics: {orders-out: {partitions: 4, config: {retention.ms: 1000}}}"
)


_OWN_SINK = _OTHERS_SINK.replace("1000", "604800000").replace("orders-out", "orders-new")


def _shorten_retention(trial: Trial) -> None:
    (topic,) = trial.documents["orders"]["topics"].values()
    topic["config"] = {"retention.ms": 1_000}


def _leftovers(**lists: list[str]) -> Follow:
    """Return what a user writes into the section `leftovers` of the document."""
    return lambda trial: trial.documents["orders"].update(leftovers=lists)


def _users_changelog(*, is_filled: bool = False) -> Trial:
    """Return a new application whose changelog topic would have the name of a user's topic."""
    trial = begin()
    trial.cluster.create(CHANGELOG, 4, {"cleanup.policy": "delete"})
    if is_filled:
        trial.fill(CHANGELOG)
    return trial


def _rename_application(trial: Trial) -> None:
    trial.documents.clear()
    trial.declare(COUNT.replace("id: orders,", "id: sales,"))


def _rename_store(trial: Trial) -> None:
    trial.step("count")["count"] = {"materialized": "totals"}


def _adopt(*topics: str) -> Follow:
    return lambda trial: trial.switch(adoptTopics=list(topics))


def _live_retention(trial: Trial) -> None:
    (topic,) = trial.documents["orders"]["topics"].values()
    topic["config"] = {"retention.ms": 604_800_000}


def _left_over(*, is_read: bool = False) -> Trial:
    """Return an application with an empty topic that an earlier topology left behind."""
    trial = set_up()
    trial.cluster.create(LEFT, 4, trial.cluster.topics[CHANGELOG].config)
    if is_read:
        trial.cluster.read_by("audit", LEFT)
    return trial


def _no_other_reader(trial: Trial) -> None:
    trial.cluster.readers.clear()


def _without_evidence(unread: UnreadEvidence) -> Trial:
    """Return a stack that retires a topic, where something was not read."""
    trial = changed(_left_over(), _leftovers(retire=[LEFT]))
    trial.cluster.unread_evidence = (unread,)
    return trial


def _read_all(trial: Trial) -> None:
    trial.cluster.unread_evidence = ()


def _overlapping() -> Trial:
    trial = begin()
    trial.stack = StackIdentity("its id", "acme/headwater/production")
    other = StackIdentity("another id", "acme/eu/production")
    record = OwnershipRecord(application_id="orders-eu", stack=other, topics={"orders-in": "id-1"})
    trial.ownership = (record,)
    trial.cluster.ownership = [record]
    return trial


def _overlapping_later() -> Trial:
    """Return an application that was set up before another stack set up an id that overlaps."""
    trial = _overlapping()
    others = trial.ownership or ()
    trial.ownership, trial.cluster.ownership = (), []
    trial.up()
    trial.fill(*trial.cluster.topics)
    trial.ownership += others
    trial.cluster.ownership = [*others]
    return trial


def _accept_overlap(trial: Trial) -> None:
    trial.switch(allowIdOverlap=True)


def _former() -> Trial:
    """Return two applications with names for one topic: one has set it up, and the other one is new."""
    trial = set_up(COUNT.replace("materialized: counts", "materialized: sums-counts"))
    trial.declare(COUNT)
    trial.declare(SUMS)
    trial.empty(SHARED)
    return trial


def _delete_shared(trial: Trial) -> None:
    document = trial.documents.pop("orders-sums")
    for step in ("retire", "delete"):
        _leftovers(**{step: [SHARED]})(trial)
        trial.up()
    del trial.documents["orders"]["leftovers"]
    trial.documents["orders-sums"] = document


def _users_recorded() -> Trial:
    """Return an application to retire, whose record has a topic that a user has created again."""
    trial = set_up()
    old = trial.cluster.topics[CHANGELOG]
    trial.filled.pop(old.topic_id)
    trial.cluster.topics[CHANGELOG] = attrs.evolve(old, config={"cleanup.policy": "delete"})
    trial.settings()["lifecycle"] = "retired"
    return trial


EVIDENCE = (
    Advice(
        says="If it belongs to orders, add it to `setup.adoptTopics` of the document for one `pulumi up`",
        make=lambda: _users_changelog(is_filled=True),
        follow=_adopt(CHANGELOG),
    ),
    Advice(says="Otherwise give the store, the operator", make=_users_changelog, follow=_rename_store),
    Advice(says="or the application another name", make=_users_changelog, follow=_rename_application),
    Advice(
        says="Declare the live values in the document",
        make=lambda: begin(_OTHERS_SINK),
        follow=_live_retention,
    ),
    Advice(
        says="If the records are needed, declare the live values in the document",
        make=lambda: changed(set_up(_OWN_SINK), _shorten_retention),
        follow=_live_retention,
    ),
    Advice(
        says="If the records are not needed, add the topic to `setup.adoptTopics` of the document for one",
        make=lambda: begin(_OTHERS_SINK),
        follow=_adopt("orders-out"),
        gives_up=True,
    ),
    Advice(
        says="If its data is no longer needed, list it below `leftovers.retire` of the document and run",
        make=_left_over,
        follow=steps(_leftovers(retire=[LEFT]), lambda t: t.up(), _leftovers(delete=[LEFT])),
    ),
    Advice(
        says="To keep it and not report it again, list it below `leftovers.keep`",
        make=_left_over,
        follow=_leftovers(keep=[LEFT]),
    ),
    Advice(
        says="Stop other readers and delete their groups or offsets, then run again",
        make=lambda: changed(_left_over(is_read=True), _leftovers(retire=[LEFT])),
        follow=_no_other_reader,
        leaves=("orphaned",),
    ),
    Advice(
        says="move it to `leftovers.keep`",
        make=lambda: changed(_left_over(is_read=True), _leftovers(retire=[LEFT])),
        follow=_leftovers(keep=[LEFT]),
    ),
    Advice(
        says="Grant the user the permissions that are missing, and run again: `headwater acls FILES --self",
        make=lambda: _without_evidence(DENIED_GROUPS),
        follow=_read_all,
        leaves=("orphaned",),
    ),
    Advice(
        says="Start the brokers that are stopped, and run again",
        make=lambda: _without_evidence(GROUPS_OF_STOPPED_BROKERS),
        follow=_read_all,
        leaves=("orphaned",),
    ),
    Advice(
        says="Move it to `leftovers.retire` and run `pulumi up`, which records its id. Then move it to",
        make=lambda: changed(_left_over(), _leftovers(delete=[LEFT])),
        follow=steps(_leftovers(retire=[LEFT]), lambda t: t.up(), _leftovers(delete=[LEFT])),
    ),
    Advice(
        says="Remove it from `leftovers`",
        make=lambda: changed(set_up(), _leftovers(retire=[CHANGELOG])),
        follow=lambda t: t.documents["orders"].pop("leftovers"),
    ),
    Advice(
        says="If it is not needed, delete it yourself after you found out who created it",
        make=_users_recorded,
        follow=lambda t: t.delete(CHANGELOG),
        gives_up=True,
        leaves=("orphaned",),
    ),
    Advice(
        says="If both are in use already, set `application.setup.allowIdOverlap: true`",
        make=_overlapping,
        follow=_accept_overlap,
    ),
    Advice(
        says="Nothing, if both are in use already: the first `pulumi up` ends this warning",
        make=lambda: changed(_overlapping(), _accept_overlap),
    ),
    Advice(
        says="set `application.setup.allowIdOverlap: true`, which ends this warning",
        make=_overlapping_later,
        follow=_accept_overlap,
    ),
    Advice(
        says="another id before its first setup",
        make=_overlapping,
        follow=_rename_application,
    ),
    Advice(
        says=f"no longer needs it, delete {SHARED} with `leftovers` of the document of orders",
        make=_former,
        follow=_delete_shared,
        gives_up=True,
    ),
)
