"""Fixes about versions of Kafka Streams, ACLs, renamed applications and brokers."""

import attrs

from headwater.model.acls import Acl, LiveAcls, Operation, Pattern, Permission, ResourceKind
from headwater.model.cluster import RegisteredBroker, RegisteredBrokers
from headwater.planner.drift import FindingKind
from tests.advice.trial import Advice, Trial, steps
from tests.advice.trials import CHANGELOG, COUNT, begin, changed, manual, set_up
from tests.compiler import topologies

ACLS = COUNT.replace("topics: {}", 'topics: {}\nacls: {principals: ["User:orders"]}')
DYNAMIC = ACLS.replace("  - to: orders-out", "  - to: {extractor: shop.TenantTopics@5e91993f}")
PATTERN = ACLS.replace("  - stream: orders-in", '  - stream: {pattern: ".*-in"}')
MERGED = f"""
application: {{id: orders, kafkaStreams: "4.2", config: {{{topologies.MERGES_REPARTITIONS}}}}}
{topologies.KEY_CHANGE_IN_THE_FIRST_INPUT}"""
JOINS = f"""
application: {{id: orders, kafkaStreams: "3.9", config: {{}}}}
{topologies.SUPPLIED_JOIN_STORES}"""
AGAIN = f"""
application: {{id: orders, kafkaStreams: "4.2", config: {{}}}}
{topologies.STORE_ADDED_AGAIN}"""


def _with_acls(text: str = ACLS, *, has_authorizer: bool = True) -> Trial:
    return changed(begin(text), lambda t: setattr(t, "acls", LiveAcls(has_authorizer=has_authorizer)))


def _write(trial: Trial, **lists: list[str]) -> None:
    trial.documents["orders"]["acls"].update(lists)


def _may_create() -> Trial:
    """Return an application whose principal could create lost topics again."""
    trial = manual(begin, ACLS)
    create = Permission(ResourceKind.CLUSTER, "kafka-cluster", Operation.CREATE)
    trial.acls = LiveAcls(frozenset({Acl("User:orders", "*", create)}))
    return trial


def _may_do_all() -> Trial:
    """Return such an application whose principal may do everything with the topics, by one ACL."""
    trial = manual(begin, ACLS)
    operations = (Permission(ResourceKind.TOPIC, "orders-", each, Pattern.PREFIXED) for each in Operation)
    trial.acls = LiveAcls(unlimited=frozenset(Acl("User:orders", "*", each) for each in operations))
    return trial


def _grant_and_revoke(trial: Trial) -> None:
    """The application may read and write at each moment."""
    trial.up()
    trial.acls = attrs.evolve(trial.acls or LiveAcls(), unlimited=frozenset())
    assert not [finding for finding in trial.drift().findings if finding.kind is FindingKind.ACL]


def _granted() -> Trial:
    trial = _with_acls()
    trial.up()
    trial.fill(*trial.cluster.topics)
    return trial


def _revoked_elsewhere() -> Trial:
    return changed(_granted(), lambda t: setattr(t, "acls", LiveAcls()))


def _revoking_while_running() -> Trial:
    """Return a running application that no longer writes a topic."""
    trial = _with_acls()
    _write(trial, writes=["orders-more"])
    trial.up()
    trial.fill(*trial.cluster.topics)
    trial.cluster.run_group("orders")
    del trial.documents["orders"]["acls"]["writes"]
    return trial


def _replace_instances(trial: Trial) -> None:
    _write(trial, writes=["orders-more"])
    trial.up()
    trial.cluster.groups.clear()
    del trial.documents["orders"]["acls"]["writes"]
    trial.up()
    trial.cluster.run_group("orders")


def _with_topics(text: str) -> Trial:
    trial = Trial()
    for name in ("plain", "keyed", "left", "right", "orders", "other"):
        trial.cluster.create(name, 4)
        trial.fill(name)
    trial.declare(text)
    trial.up()
    trial.fill(*trial.cluster.topics)
    return trial


def _upgraded(text: str, to: str = "4.3") -> Trial:
    return changed(_with_topics(text), lambda t: t.settings().update(kafkaStreams=to))


def _separate_again(trial: Trial) -> None:
    steps = trial.documents["orders"]["topology"]
    for name in ("counts", "latest"):
        at = next(i for i, step in enumerate(steps) if step.get("groupByKey") == {"from": "merged"})
        steps[at : at + 1] = [
            {"repartition": {"from": "merged", "name": name, "as": name}},
            {"groupByKey": {"from": name}},
        ]


def _renamed(**more: str) -> Trial:
    """Return an application with a new id, in a stack that does not know the former one."""
    trial = set_up()
    trial.documents.clear()
    trial.cluster.records.clear()
    trial.declare(COUNT.replace("id: orders,", "id: sales,"))
    trial.settings("sales").update(more)
    return trial


def _few_brokers(count: int) -> Trial:
    return changed(begin(replication_factor="3"), lambda t: setattr(t.cluster, "brokers", count))


def _with_brokers(**topic: object) -> Trial:
    """Return a stack on three brokers in two racks, one of whose topics has these facts."""

    def change(trial: Trial) -> None:
        brokers = {
            number: RegisteredBroker(id=number, rack=rack) for number, rack in enumerate("aab", start=1)
        }
        trial.cluster.registered = RegisteredBrokers(brokers, with_fenced=True)
        trial.cluster.change(CHANGELOG, **topic)

    return changed(set_up(), change)


def _stop(trial: Trial) -> None:
    trial.cluster.groups.clear()


VERSIONS = (
    # ACLs
    Advice(
        says="set `super.users` to the administrators, and run `pulumi up` again",
        make=lambda: _with_acls(has_authorizer=False),
        follow=lambda t: setattr(t, "acls", LiveAcls()),
    ),
    Advice(
        says="Revoke the listed ACLs.",
        make=_may_create,
        follow=lambda t: setattr(t, "acls", LiveAcls()),
    ),
    Advice(
        says="An ACL for All also lets the application read and write: first run `pulumi up`, which grants "
        "what the topology needs. Revoke the listed ACLs",
        make=_may_do_all,
        follow=_grant_and_revoke,
    ),
    Advice(
        says="List the topics in `writes` of `acls`",
        make=lambda: _with_acls(DYNAMIC),
        follow=lambda t: _write(t, writes=["tenant-*"]),
    ),
    Advice(
        says="Start the pattern with a prefix that all names share",
        make=lambda: _with_acls(PATTERN),
        follow=lambda t: t.step("stream").update(stream={"pattern": "orders-i.*"}),
    ),
    Advice(
        says="or list the topics in `reads` of `acls`",
        make=lambda: _with_acls(PATTERN),
        follow=lambda t: _write(t, reads=["orders-*"]),
    ),
    Advice(
        says="If such instances are running, add the topics to `reads` and `writes` of `acls`, run "
        "`pulumi up`",
        make=_revoking_while_running,
        follow=_replace_instances,
    ),
    Advice(
        says="Otherwise run `pulumi up`, which grants it again",
        make=_revoked_elsewhere,
    ),
    Advice(says="Run `pulumi up`, which grants it", make=_with_acls),
    # brokers
    Advice(
        says="Start the brokers that are stopped",
        make=lambda: _few_brokers(2),
        follow=lambda t: setattr(t.cluster, "brokers", 3),
    ),
    Advice(
        says="Only if the cluster has no more brokers, set `replication.factor` to 2 or less",
        make=lambda: _few_brokers(2),
        follow=lambda t: t.configure(replication_factor="2"),
    ),
    Advice(
        says="Start the brokers that have the missing replicas, or wait until these are in sync again",
        make=lambda: changed(set_up(), lambda t: t.cluster.change(CHANGELOG, in_sync=1)),
        follow=lambda t: t.cluster.change(CHANGELOG, in_sync=3),
    ),
    Advice(
        says="If broker 7 will not start again, move the replicas to other brokers",
        make=lambda: _with_brokers(silent=frozenset({7}), in_sync=2),
        follow=lambda t: t.cluster.change(CHANGELOG, silent=frozenset(), in_sync=3),
    ),
    Advice(
        says="Move replicas to brokers of other racks",
        make=lambda: _with_brokers(racks=1),
        follow=lambda t: t.cluster.change(CHANGELOG, racks=2),
    ),
    # partitions that the next run adds
    Advice(
        says="Run `pulumi up`, which adds the partitions, downstream topics first",
        make=lambda: changed(
            set_up(partition_autoscaling_enabled="true", static_partitioner_class="tenants:ByTenant"),
            lambda t: t.cluster.change("orders-in", partitions=8),
        ),
    ),
    # an application with another id
    Advice(
        says="If orders was renamed by mistake, use orders again",
        make=_renamed,
        follow=steps(lambda t: t.documents.clear(), lambda t: t.declare(COUNT)),
    ),
    Advice(
        says="declare `renamedFrom: orders` and run `pulumi up`, which creates the new topics",
        make=_renamed,
        follow=lambda t: t.settings("sales").update(renamedFrom="orders"),
        gives_up=True,
    ),
    Advice(
        says="If both are different applications, run `pulumi up`",
        make=_renamed,
    ),
    # another version of Kafka Streams
    Advice(
        says="To keep separate repartition topics, call `repartition` with the names of the topics right",
        make=lambda: _upgraded(MERGED),
        follow=_separate_again,
    ),
    Advice(
        says="wait until the application has processed all records, stop all its instances",
        make=lambda: _upgraded(MERGED),
        follow=steps(lambda t: t.empty("orders-latest-repartition"), _stop),
    ),
    Advice(
        says="Stop all instances before you start the first one with the new version",
        make=lambda: _upgraded(AGAIN),
        follow=steps(_stop, lambda t: t.switch(reinitialize=True)),
        gives_up=True,
    ),
    Advice(
        says="To continue without the state, stop the application and set `setup.reinitialize: true`",
        make=lambda: _upgraded(AGAIN),
        follow=lambda t: t.switch(reinitialize=True),
        gives_up=True,
    ),
)
