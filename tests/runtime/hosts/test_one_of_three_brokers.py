"""One of three brokers has no route to it, and is alive: its partitions get no other leaders."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public all the same

from headwater.agent.events import Expanded, ExpansionStarted
from headwater.agent.state import Phase
from headwater.kafka import Connection
from headwater.toolchain import KafkaDistribution, PulumiToolchain
from headwater.toolchain.broker.readiness import until
from tests.agent.live_documents import unique_documents
from tests.agent.running import await_counts, await_true, running, settings
from tests.agent.simulation import set_up
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import Deployment
from tests.pulumi.driver import Stack, end, wait_for_lines
from tests.runtime.hosts.network import reason_to_skip
from tests.runtime.hosts.three_brokers import BrokerHosts, three_brokers
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import ProcessApplication

_log = logging.getLogger(__name__)
_REASON = reason_to_skip()
pytestmark = [
    pytest.mark.broker,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(bool(_REASON), reason=_REASON),
]
_IDS = (1, 2, 3)
_SECONDS = 300.0
_FAULT_SECONDS = 30.0
_STORES, _BATCH = 12, 100
_QUERY_FAILED = "query failed"
_NOT_READABLE, _READABLE = "cluster not readable", "cluster readable again"
_NO_ANSWER = re.compile(
    r"timed.?out|timeout|did not answer|Local: |NOT_COORDINATOR|NOT_LEADER", re.IGNORECASE
)
"""In the reasons of failures: a request had no answer, or was sent to a broker that had a role before."""


@pytest.fixture
def hosts(kafka_distribution: KafkaDistribution, tmp_path: Path) -> Iterator[BrokerHosts]:
    with three_brokers(kafka_distribution, tmp_path / "brokers") as started:
        cluster = Cluster(",".join(started.servers))
        assert until(lambda: cluster.brokers() == set(_IDS), _SECONDS)
        yield started


@pytest.mark.pulumi
@pytest.mark.parametrize("unreachable", _IDS)
def test_an_up_registers_all_topics(
    hosts: BrokerHosts,
    pulumi_toolchain: PulumiToolchain,
    tmp_path: Path,
    unique: Callable[[str], str],
    unreachable: int,
) -> None:
    """The route is lost while topics are created. If the run fails, the next one completes it.

    The provider waits two minutes for an answer on a connection that it has to the broker.
    """
    cluster = Cluster(",".join(hosts.servers))
    stack = Stack.create(tmp_path / "stack", pulumi_toolchain, {"bootstrapServers": list(hosts.servers)})
    deployment = Deployment(stack, cluster, unique("app"), unique("orders"))
    cluster.create(deployment.source, 2)
    topology: list[dict[str, object]] = [{"stream": {"topic": deployment.source, "as": "orders"}}]
    for number in range(_STORES):
        store = {"name": f"store-{number}", "kind": "keyValue"}
        topology.append({"process": {"from": "orders", "name": f"worker-{number}", "stores": [store]}})
    deployment.write(topology, {"internal.topics.setup": "manual", "replication.factor": 3})
    names = [f"{deployment.id}-store-{number}-changelog" for number in range(_STORES)]
    with hosts.client.entered():
        process = deployment.stack.start("up", "--yes", "--skip-preview", "--parallel", "2")
        wait_for_lines(process, "changelog created", count=3, seconds=_SECONDS)
        hosts.block(unreachable)
        assert not cluster.names().issuperset(names), "topics are left to create"
        outcome = end(process, seconds=_SECONDS)
        _log.info("broker %d: up without it has succeeded: %s", unreachable, outcome.succeeded)
        hosts.unblock(unreachable)
    if not outcome.succeeded:
        deployment.stack.run("cancel", "--yes")
        deployment.up()
    assert cluster.existing(names) == set(names)
    assert all(cluster.replicas(name) == {3} for name in names)
    deployment.is_clean()


@pytest.mark.parametrize("unreachable", _IDS)
def test_an_agent_expands_to_exactly_the_required_partitions(
    hosts: BrokerHosts, unique: Callable[[str], str], unreachable: int
) -> None:
    suffix = unique("x").removeprefix("x-")
    documents = unique_documents(suffix)
    cluster = Cluster(",".join(hosts.servers))
    orders, returns = f"orders-{suffix}", f"returns-{suffix}"
    sources = {orders: 2, returns: 3}
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    created = admin.create_topics(
        [NewTopic(name, partitions, 3) for name, partitions in set_up(documents, sources).items()]
    )
    for future in created.values():
        future.result()
    await_counts(cluster, documents, sources, _SECONDS)
    ids = [document.application.id for document in documents]
    connection = Connection(bootstrap_servers=hosts.servers)
    with ExitStack() as stack:
        with hosts.client.entered():
            agent = settings("", documents, suffix, connection=connection)
            recorder = stack.enter_context(running(agent))
        await_true(
            lambda: recorder.state.is_recovered and all(recorder.phase(each) is Phase.STEADY for each in ids),
            _SECONDS,
        )
        sources[orders] = 6
        cluster.expand(orders, 6)
        await_true(lambda: recorder.of(ExpansionStarted), _SECONDS)
        hosts.block(unreachable)
        # Without a route to the coordinator of its group, the agent is no member, and expands nothing.
        has_expanded = until(lambda: recorder.of(Expanded), _FAULT_SECONDS)
        _log.info("broker %d: expanded without it: %s", unreachable, bool(has_expanded))
        hosts.unblock(unreachable)
        await_true(lambda: recorder.of(Expanded), _SECONDS)
        await_counts(cluster, documents, sources, _SECONDS)
        sources[orders] = 8
        cluster.expand(orders, 8)
        await_counts(cluster, documents, sources, _SECONDS)


@pytest.mark.spark
@pytest.mark.parametrize("unreachable", _IDS)
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_every_record_is_processed_as_guaranteed(
    hosts: BrokerHosts, spark_jars: tuple[str, ...], tmp_path: Path, guarantee: str, unreachable: int
) -> None:
    """A query fails until the route is back if the broker leads its partitions, or stores its commits.

    Whether one fails meanwhile depends on which request waits, and on its timeout. A failure names requests
    that had no answer, and no record is lost by it.
    """
    topics = Topics(",".join(hosts.servers))
    application = ProcessApplication(
        hosts.brokers[0], topics, tmp_path, spark_jars, guarantee, servers=",".join(hosts.servers)
    )
    application.set_up()
    application.feed(500)
    with ExitStack() as stack:
        with hosts.client.entered():
            run = application.run(until_idle=False, max_records=_BATCH)
            process = stack.enter_context(run)
        application.await_counted(100, process)
        application.feed(1_000)
        application.await_counted(application.counted() + 50, process)
        hosts.block(unreachable)
        log_end = application.log_size()
        application.feed(500)
        # A broker that leads no partition of these topics, and coordinates nothing, is not missed.
        has_failed = until(lambda: application.has_logged("query failed", log_end), _FAULT_SECONDS)
        _log.info("%s, broker %d: a query has failed: %s", guarantee, unreachable, bool(has_failed))
        hosts.unblock(unreachable)
        application.feed(500)
        application.await_counted(application.fed, process)
        assert process.poll() is None, application.log()
        _check_failures(application, log_end)
    application.finish()
    if guarantee == "exactly_once_v2":
        application.check_results()
    else:
        application.check_at_least_once(2, _BATCH)


def _check_failures(application: ProcessApplication, begin: int) -> None:
    """Check why queries have failed, and the cluster was not readable, as logged after so many bytes."""

    def logged(event: str) -> list[str]:
        log = (application.folder / "run.log").read_bytes()[begin:].decode(errors="replace")
        return [line for line in log.splitlines() if event in line]

    assert until(lambda: len(logged(_READABLE)) >= len(logged(_NOT_READABLE)), _SECONDS), application.log()
    failures, unreadable = logged(_QUERY_FAILED), logged(_NOT_READABLE)
    _log.info("%d failures of queries: %s; %s", len(failures), failures[:3], unreadable)
    for line in failures:
        assert _NO_ANSWER.search(line.partition("reason=")[2]), line
    for line in unreadable:
        assert "No Kafka broker can be reached" not in line
        assert " answers, and names " in line
