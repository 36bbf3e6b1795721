"""Windows that close, over a repartition topic that several tasks write to."""

from collections import Counter

import pytest

from tests.runtime.spark.applications import Cluster

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("packed_batches"),
]

_HOUR_MS = 3_600_000
_START_MS = 1_699_999_200_000  # a full hour
_COUNT_BY_HOUR = """
  - stream: {topic: IN, serdes: {key: string, value: string}}
  - selectKey: {key: value}
  - groupByKey: {name: by-value}
  - windowedBy: {tumbling: {size: 1h, grace: 5m}}
  - count: {materialized: hourly}
  - toStream:
  - to: {topic: OUT}
"""


@pytest.mark.parametrize(
    "guarantee",
    ["at_least_once", pytest.param("exactly_once_v2", marks=pytest.mark.soak)],  # it is in `test_input_order`
)
def test_backlog_of_one_task_does_not_make_records_of_others_late(cluster: Cluster, guarantee: str) -> None:
    """Three partitions with the same twenty hours: no record is late, as in Kafka Streams."""
    times = range(_START_MS, _START_MS + 20 * _HOUR_MS, _HOUR_MS // 10)
    with cluster.application(_COUNT_BY_HOUR, {"processing.guarantee": guarantee}, partitions=3) as running:
        for partition in range(3):
            cluster.topics.put(
                running.source, [(b"k", b"ab"[n % 2 :][:1], t) for n, t in enumerate(times)], partition
            )
        running.application.start()
        running.application.wait_until_idle()
        written = cluster.topics.get(running.sink)
    counts: Counter[tuple[bytes, int]] = Counter()
    for _, _, _, _, key, value, headers in written:
        assert key is not None
        window = int.from_bytes(key[1:], "big")
        counts[key[:1], window] = max(counts[key[:1], window], int.from_bytes(value or b"", "big"))
        assert headers == ()
    assert counts == {(key, _START_MS + hour * _HOUR_MS): 15 for key in (b"a", b"b") for hour in range(20)}
