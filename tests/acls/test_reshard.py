"""`headwater reshard` with exactly the permissions that `headwater acls --self --for reshard` lists."""

from collections.abc import Callable

import pytest

from headwater.compiler import compile_document
from headwater.model.acls import Operation
from headwater.model.problems import ProblemsError
from headwater.planner.acls import Purpose, headwater_needs
from headwater.spec import load_text
from headwater_spark.driver.processor_move.entry_copy import unreported
from headwater_spark.driver.reshard.start import ReshardOptions, reshard_application
from tests.acls.conftest import APPLICATION
from tests.acls.secured_cluster import SecuredCluster
from tests.runtime.reshard.stopped_application import StoppedApplication
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

_PRINCIPAL = f"User:{APPLICATION.name}"


def test_state_moves_with_the_listed_permissions(
    secured_cluster: SecuredCluster, unique: Callable[[str], str]
) -> None:
    servers = secured_cluster.broker.bootstrap_servers
    app = StoppedApplication(servers, Topics(servers), unique("stopped"))
    app.create()
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    (document,) = load_text(app.text(), "app.yaml").documents
    needs = headwater_needs(Purpose.RESHARD, [compile_document(document, {app.source: 2})])
    granted = {need.permission for need in needs}
    connection = secured_cluster.connection(APPLICATION)
    options = ReshardOptions(partitions={app.source: 5})

    without_alter = {each for each in granted if each.operation is not Operation.ALTER}
    secured_cluster.set_acls(_PRINCIPAL, without_alter)
    with pytest.raises(ProblemsError) as raised:
        reshard_application(document, connection, options, unreported)
    assert "Topic authorization failed" in str(raised.value.problems[0].found)
    assert app.topics.partitions(app.source) == 2

    secured_cluster.set_acls(_PRINCIPAL, granted)
    begin = secured_cluster.log_length
    reshard_application(document, connection, options, unreported)
    assert secured_cluster.denials(begin, app.id) == set()
    app.check(before, waiting)
