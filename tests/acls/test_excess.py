"""A principal that may create internal topics although an explicit step creates them."""

from collections.abc import Iterable

import attrs
import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from headwater.kafka.acl_bindings import acl_of, unlimited_acls
from headwater.model.acls import (
    Acl,
    AclDeclaration,
    LiveAcls,
    Operation,
    Pattern,
    Permission,
    ResourceKind,
)
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Location, Problem, ProblemCode, Severity
from headwater.planner import PlanPolicy, plan
from headwater.planner.drift import FindingKind, find_drift
from tests.planner.simulated_cluster import MANUAL, SimulatedCluster, application

_CLUSTER = Permission(ResourceKind.CLUSTER, "kafka-cluster", Operation.CREATE)
_PREFIX = Permission(ResourceKind.TOPIC, "orders-", Operation.CREATE, Pattern.PREFIXED)
_OTHER = Permission(ResourceKind.TOPIC, "payments-", Operation.CREATE, Pattern.PREFIXED)
_READ = Permission(ResourceKind.TOPIC, "orders-", Operation.READ, Pattern.PREFIXED)


def declaring(config: dict[str, str] | None = None) -> CompiledApplication:
    compiled = application(config=MANUAL if config is None else config)
    declared = AclDeclaration(("User:orders",), Location("orders.yaml", 4, 1, "/acls"))
    return attrs.evolve(compiled, application=attrs.evolve(compiled.application, acls=declared))


def live(*permissions: Permission, principal: str = "User:orders") -> LiveAcls:
    return LiveAcls(frozenset(Acl(principal, "*", permission) for permission in permissions))


def excess(acls: LiveAcls | None, compiled: CompiledApplication | None = None) -> list[Problem]:
    snapshot = attrs.evolve(SimulatedCluster().snapshot, acls=acls)
    planned = plan([compiled or declaring()], snapshot, {}, PlanPolicy())
    return [problem for problem in planned.problems if problem.code is ProblemCode.EXCESS_PERMISSIONS]


@pytest.mark.parametrize(
    ("permission", "option"),
    [(_CLUSTER, "--cluster"), (_PREFIX, "--topic orders- --resource-pattern-type prefixed")],
)
def test_permission_to_create_internal_topics_is_a_warning(permission: Permission, option: str) -> None:
    (problem,) = excess(live(permission))
    assert problem.severity is Severity.WARNING
    assert problem.summary == "User:orders may create internal topics of orders."
    assert problem.found == f"User:orders {permission.text}"
    assert f"--remove --allow-principal User:orders --operation Create {option}`" in problem.fix


@pytest.mark.parametrize("permissions", [(_OTHER,), (_READ,), ()])
def test_other_permissions_are_no_problem(permissions: Iterable[Permission]) -> None:
    assert not excess(live(*permissions))


def test_other_principals_and_automatic_setup_are_no_problem() -> None:
    assert not excess(live(_CLUSTER, principal="User:admin"))
    assert not excess(live(_CLUSTER), declaring({"internal.topics.setup": "automatic"}))
    assert not excess(live(_CLUSTER), application(config=MANUAL))
    assert not excess(None)


def test_acls_for_all_operations_count() -> None:
    unlimited = live(_PREFIX).allowed
    (problem,) = excess(LiveAcls(unlimited=unlimited))
    assert problem.found == "User:orders Create Topic orders-*"
    assert "--operation All --topic orders- --resource-pattern-type prefixed`" in problem.fix
    (problem,) = excess(LiveAcls(allowed=unlimited, unlimited=unlimited))
    assert "--operation Create --operation All --topic" in problem.fix


def test_the_command_names_the_host_of_the_acl() -> None:
    """Without the host, `kafka-acls.sh --remove` removes the ACL of all hosts only."""
    (problem,) = excess(LiveAcls(frozenset({Acl("User:orders", "10.0.0.1", _CLUSTER)})))
    assert "--allow-principal User:orders --allow-host 10.0.0.1 --operation Create --cluster`" in problem.fix


def test_drift_reports_it() -> None:
    snapshot = attrs.evolve(SimulatedCluster().snapshot, acls=live(_CLUSTER))
    found = find_drift([declaring()], snapshot)
    (finding,) = (
        finding
        for part in found.applications
        for finding in part.findings
        if finding.kind is FindingKind.ACL and "may create" in finding.what
    )
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("operation", "permission_type", "expected"),
    [
        (AclOperation.ALL, AclPermissionType.ALLOW, set(Operation)),
        (AclOperation.ALL, AclPermissionType.DENY, set()),
        (AclOperation.CREATE, AclPermissionType.ALLOW, set()),
    ],
)
def test_an_acl_for_all_operations_is_read_as_each_of_them(
    operation: AclOperation, permission_type: AclPermissionType, expected: set[Operation]
) -> None:
    fields = (ResourceType.TOPIC, "orders-", ResourcePatternType.PREFIXED, "User:orders", "*")
    binding = AclBinding(*fields, operation, permission_type)
    found = list(unlimited_acls(binding))
    assert {acl.permission.operation for acl in found} == expected
    assert all(acl.permission.pattern is Pattern.PREFIXED for acl in found)
    assert (acl_of(binding) is None) is (operation is AclOperation.ALL)
