"""With at least once, a commit that replaces later ones is repaired while the application is idle."""

from contextlib import closing

import pytest

from headwater.kafka import Connection
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.offsets import GroupOffsets
from tests.runtime.spark.applications import COUNT, Cluster

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]
_SECONDS = 60.0


def test_an_outdated_commit_is_repaired_and_no_record_is_counted_twice(cluster: Cluster) -> None:
    with cluster.application(COUNT, {"processing.guarantee": "at_least_once"}) as running:
        running.application.start()
        with closing(GroupOffsets(Connection(bootstrap_servers=(cluster.servers,)), running.id)) as offsets:
            partitions = [(running.topic("in"), 0), (running.topic("counts-repartition"), 0)]
            running.feed(b"a", b"b")
            running.application.wait_until_idle()
            before = offsets.commits(partitions)
            running.feed(b"a", b"a")
            running.application.wait_until_idle()
            last = offsets.commits(partitions)
            offsets.commit_again(before)  # as a worker that was stopped before its commit
            assert until(lambda: offsets.commits(partitions) == last, _SECONDS)
        running.restart()
        running.feed(b"a")
        running.application.wait_until_idle()
        counts = [int.from_bytes(value or b"", "big") for value in running.values()]
        assert counts == [1, 1, 2, 3, 4]
