"""The agent with exactly the permissions that `headwater acls` lists for it."""

from collections.abc import Callable

import pytest
import yaml

from headwater.compiler import compile_document
from headwater.planner.acls import Purpose, headwater_needs
from headwater.spec import load_text
from headwater.toolchain.broker.readiness import until
from tests.acls.conftest import HEADWATER
from tests.acls.secured_cluster import SecuredCluster
from tests.agent.running import running, settings

pytestmark = [pytest.mark.broker, pytest.mark.slow]

_SECONDS = 60


def test_the_agent_expands_topics_with_the_listed_permissions(
    secured_cluster: SecuredCluster, unique: Callable[[str], str]
) -> None:
    id_, source = unique("stock"), unique("movements")
    text = {
        "application": {
            "id": id_,
            "config": {"partition.autoscaling.enabled": True, "static.partitioner.class": "range"},
        },
        "topology": [
            {"stream": {"topic": source}},
            {"groupBy": {"key": "value.item", "name": "by-item"}},
            {"reduce": {"materialized": "levels"}},
        ],
    }
    documents = load_text(yaml.safe_dump(text), "stock.yaml").documents
    internal = {f"{id_}-by-item-repartition": 2, f"{id_}-levels-changelog": 2}
    secured_cluster.create({source: 2, **internal})
    needs = headwater_needs(Purpose.AGENT, [compile_document(documents[0], {})])
    secured_cluster.set_acls(f"User:{HEADWATER.name}", [need.permission for need in needs])
    log = secured_cluster.log_length
    with running(settings("", documents, id_, connection=secured_cluster.connection(HEADWATER))):
        assert until(lambda: f"headwater-agent-{id_}" in secured_cluster.topics(), _SECONDS)
        secured_cluster.expand(source, 4)
        assert until(lambda: {secured_cluster.topics()[name] for name in internal} == {4}, _SECONDS)
    assert secured_cluster.denials(log, id_, source) == set()
