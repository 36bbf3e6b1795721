"""A real application on a real broker creates exactly the topics of the document that its code exports."""

from collections.abc import Callable
from typing import Any

import pytest

from headwater.cli.import_details import differences_from_cluster, with_owners
from headwater.cli.inputs import read_snapshot
from headwater.compiler import compile_documents
from headwater.kafka.command_line import NamedCluster
from headwater.toolchain.broker.local import LocalBroker
from tests.oracle.exported_documents import loaded
from tests.oracle.kafka_streams import OF_THE_BROKER, KafkaStreams
from tests.oracle.running_application import running_application
from tests.pulumi.cluster import Cluster

pytestmark = [pytest.mark.broker, pytest.mark.oracle, pytest.mark.slow]


def _application(id_: str, source: str, size: str) -> dict[str, Any]:
    return {
        "application": {"id": id_, "config": {"topic.segment.bytes": "10485760"}},
        "topology": [
            {"stream": {"topic": source}},
            {"repartition": {"name": "spread", "partitions": 5}},
            {"groupBy": {"name": "by-key"}},
            {"windowedBy": {"tumbling": {"size": size}}},
            {"count": {"materialized": "counts"}},
        ],
    }


def test_topics_of_a_running_application(
    kafka: LocalBroker, unique: Callable[[str], str], kafka_streams_of: Callable[[str], KafkaStreams]
) -> None:
    id_, source = unique("exported"), unique("orders")
    Cluster(kafka.bootstrap_servers).create(source, 3)
    application = _application(id_, source, "1h")
    documents = [
        loaded(str(kafka_streams_of(OF_THE_BROKER).exported(each)))
        for each in (application, _application(id_, source, "2h"))
    ]
    same, other = documents
    assert not isinstance(same, str), same
    assert not isinstance(other, str), other
    connected = NamedCluster(kafka.bootstrap_servers).connection()
    with running_application(kafka.bootstrap_servers, application):
        snapshot = read_snapshot([same], connected, protocol_is_known=False)
    compiled = compile_documents([same], snapshot.partitions)
    owned = with_owners(compiled, [same], snapshot, connected)
    assert list(differences_from_cluster(compiled, [same], owned)) == []
    assert {topic.name: topic.partitions for topic in compiled[0].internal_topics} == {
        f"{id_}-by-key-repartition": 5,
        f"{id_}-counts-changelog": 5,
        f"{id_}-spread-repartition": 5,
    }

    changed = compile_documents([other], snapshot.partitions)
    (difference,) = differences_from_cluster(changed, [other], owned)
    assert difference.topic == f"{id_}-counts-changelog"
    assert difference.found == "retention.ms=90000000"
    assert "other code or other properties" in difference.why
