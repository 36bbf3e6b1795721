"""An application on three brokers, three replicas and `min.insync.replicas` 2, while brokers are killed."""

from pathlib import Path

import pytest

from headwater.toolchain.broker.readiness import until
from headwater.toolchain.kafka import KafkaDistribution
from tests.kafka.several_brokers import elect_preferred_leaders, several_brokers
from tests.pulumi.cluster import Cluster
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import TIMEOUT_SECONDS, ProcessApplication

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.timeout(900),
]
_BATCH = 100
_KILLS = 4


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_results_are_exact_while_brokers_are_killed_and_leaders_elected(
    kafka_distribution: KafkaDistribution, spark_jars: tuple[str, ...], tmp_path: Path, guarantee: str
) -> None:
    """Each broker is killed while the application commits, and becomes the leader again afterwards."""
    with several_brokers(kafka_distribution, tmp_path / "brokers") as brokers:
        first, *others = brokers
        servers = ",".join(broker.bootstrap_servers for broker in brokers)
        cluster = Cluster(servers)
        assert until(lambda: cluster.brokers() == {1, 2, 3}, TIMEOUT_SECONDS)
        application = ProcessApplication(first, Topics(servers), tmp_path, spark_jars, guarantee)
        application.set_up()
        application.feed(500)
        with application.run(until_idle=False, max_records=_BATCH) as process:
            application.await_counted(100, process)
            for kill in range(_KILLS):
                application.feed(500)
                application.await_counted(application.counted() + 50, process)
                victim = others[kill % len(others)]
                victim.kill()
                assert until(lambda: len(cluster.brokers()) == 2, TIMEOUT_SECONDS)
                application.await_counted(application.counted() + 50, process)
                victim.start()
                assert until(lambda: cluster.brokers() == {1, 2, 3}, TIMEOUT_SECONDS)
                elect_preferred_leaders(servers)
            assert process.poll() is None, application.log()
        application.finish()
        assert cluster.replicas("counted-counts-changelog") == {3}
        if guarantee == "exactly_once_v2":
            application.check_results()
        else:
            # The end of the first process is a fault, too.
            application.check_at_least_once(_KILLS + 1, _BATCH)
