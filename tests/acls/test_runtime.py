"""The runtime with exactly the permissions that are planned for an application and for `headwater plan`."""

import shutil
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from headwater.compiler import compile_document
from headwater.kafka import Connection
from headwater.model.acls import Operation, Permission
from headwater.model.problems import ProblemCode
from headwater.planner.acls import Purpose, application_needs, headwater_needs
from tests.acls.conftest import APPLICATION
from tests.acls.secured_cluster import SecuredCluster
from tests.runtime.driver.expanding_client import ExpandingClient
from tests.runtime.driver.sparkless import Sparkless
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

_PRINCIPAL = f"User:{APPLICATION.name}"


@attrs.define
class _SecuredSparkless(Sparkless):
    """Its tasks connect as a user of the secured cluster."""

    user: Connection = attrs.field(kw_only=True)

    @property
    def connection(self) -> Connection:
        return self.user


@pytest.fixture
def app(secured_cluster: SecuredCluster, tmp_path: Path, unique: Callable[[str], str]) -> Sparkless:
    """Return an application with 2 processors and 4 partitions; a superuser has run it."""
    servers = secured_cluster.broker.bootstrap_servers
    return Sparkless(servers, unique("app"), tmp_path, Topics(servers)).with_added_partitions()


def _permissions(app: Sparkless) -> frozenset[Permission]:
    """Return what the application is granted, and what `headwater plan` needs."""
    compiled = compile_document(app.document(2), {f"orders-{app.id}": 4})
    needs = (*application_needs(compiled), *headwater_needs(Purpose.PLAN, [compiled]))
    return frozenset(need.permission for need in needs)


def test_tasks_process_and_restore_with_the_planned_permissions(
    secured_cluster: SecuredCluster, tmp_path: Path, app: Sparkless
) -> None:
    user = secured_cluster.connection(APPLICATION)
    secured = _SecuredSparkless(
        app.servers, app.id, tmp_path, app.topics, app.produced, app.start_ms, user=user
    )
    secured_cluster.set_acls(_PRINCIPAL, _permissions(app))
    begin = secured_cluster.log_length
    shutil.rmtree(tmp_path / "state")
    app.produce(3)
    secured.process(2)
    assert secured_cluster.denials(begin, app.id) == set()
    app.check_results(20)


def test_processors_are_added_with_the_planned_permissions(
    secured_cluster: SecuredCluster, app: Sparkless
) -> None:
    granted = _permissions(app)
    secured_cluster.set_acls(_PRINCIPAL, granted)
    begin = secured_cluster.log_length
    client = ExpandingClient.of(app.text(2), secured_cluster.connection(APPLICATION))
    client.expand(4)
    assert not client.expansion.status.problems
    assert client.expansion.status.processors == 4
    assert secured_cluster.denials(begin, app.id) == set()
    app.check_moved(4)


def test_without_alter_nothing_changes(secured_cluster: SecuredCluster, app: Sparkless) -> None:
    granted = _permissions(app)
    secured_cluster.set_acls(_PRINCIPAL, {each for each in granted if each.operation is not Operation.ALTER})
    client = ExpandingClient.of(app.text(2), secured_cluster.connection(APPLICATION))
    client.expand(4)
    [problem] = client.expansion.status.problems
    assert problem.code is ProblemCode.REQUEST_NOT_ANSWERED
    assert "Topic authorization failed" in str(problem.found)
    assert client.expansion.status.processors == 2
    assert app.topics.partitions(f"{app.id}-counts-changelog") == 2
