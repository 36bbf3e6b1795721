"""The ACLs that a run grants, adopts, restores and revokes."""

from collections.abc import Mapping

import attrs
import pytest

from headwater.model.acls import Acl, AclDeclaration, LiveAcls, Operation, Permission, ResourceKind
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Location, ProblemCode, Severity
from headwater.model.topology import Lifecycle
from headwater.planner import AclActionKind, Plan
from headwater.planner.drift import FindingKind, find_drift
from headwater.pulumi.registration import AclResource, decide_registration, with_acls
from headwater.pulumi.stack_state import ACL_TYPE, COMPONENT_TYPE, StackState, acl_inputs, acl_name
from headwater.report import plan_text
from headwater.report.drift.texts import drift_json, drift_markdown, drift_text
from tests.planner.simulated_cluster import SimulatedCluster, application

GRANT, KEEP, REVOKE = AclActionKind.GRANT, AclActionKind.KEEP, AclActionKind.REVOKE
GROUP = Acl("User:orders", "*", Permission(ResourceKind.GROUP, "orders", Operation.READ))
SOURCE = Acl("User:orders", "*", Permission(ResourceKind.TOPIC, "orders-in", Operation.READ))


@attrs.define
class SimulatedSecuredCluster(SimulatedCluster):
    """A simulated cluster with ACLs, with or without an authorizer."""

    allowed: set[Acl] = attrs.field(factory=set)
    has_authorizer: bool = True

    @property
    def snapshot(self) -> ClusterSnapshot:
        live = LiveAcls(frozenset(self.allowed), self.has_authorizer)
        return attrs.evolve(super().snapshot, acls=live)

    def apply(self, planned: Plan) -> None:
        super().apply(planned)
        for part in planned.applications:
            for action in part.acls:
                if action.kind is REVOKE:
                    self.allowed.discard(action.acl)
                else:
                    self.allowed.add(action.acl)


def declaring(
    *principals: str, id_: str = "orders", lifecycle: Lifecycle = Lifecycle.ACTIVE, steps: int = 1
) -> CompiledApplication:
    compiled = application(id_=id_, lifecycle=lifecycle, steps=steps)
    declared = AclDeclaration(principals or ("User:orders",), Location(f"{id_}.yaml", 4, 1, "/acls"))
    return attrs.evolve(compiled, application=attrs.evolve(compiled.application, acls=declared))


def kinds(planned: Plan, id_: str = "orders") -> dict[Acl, AclActionKind]:
    return {
        action.acl: action.kind
        for part in planned.applications
        if part.application_id == id_
        for action in part.acls
    }


def acl_kinds(planned: Plan) -> set[AclActionKind]:
    return {action.kind for part in planned.applications for action in part.acls}


def test_a_second_run_has_no_acl_changes() -> None:
    cluster = SimulatedSecuredCluster()
    assert acl_kinds(cluster.up(declaring())) == {GRANT}
    again = cluster.plan(declaring())
    assert acl_kinds(again) == {KEEP}
    assert not again.has_changes


def test_existing_acls_are_adopted_and_deleted_acls_are_restored() -> None:
    cluster = SimulatedSecuredCluster(allowed={GROUP})
    first = kinds(cluster.up(declaring()))
    assert first.pop(GROUP) is AclActionKind.ADOPT
    assert set(first.values()) == {GRANT}
    cluster.allowed.remove(SOURCE)
    planned = cluster.plan(declaring())
    assert planned.has_changes
    later = kinds(planned)
    assert later.pop(SOURCE) is AclActionKind.RESTORE
    assert set(later.values()) == {KEEP}


def test_acls_that_are_no_longer_needed_are_revoked() -> None:
    cluster = SimulatedSecuredCluster()
    cluster.up(declaring(steps=2))
    planned = cluster.up(declaring(steps=1))
    assert {acl.permission.name for acl, kind in kinds(planned).items() if kind is REVOKE} == {
        "orders-step2-repartition"
    }
    planned = cluster.up(application())
    assert acl_kinds(planned) == {REVOKE}
    assert not cluster.allowed
    assert not cluster.plan(application()).has_changes


def test_all_acls_of_a_removed_principal_are_revoked() -> None:
    cluster = SimulatedSecuredCluster()
    cluster.up(declaring("User:orders", "User:old"))
    planned = kinds(cluster.plan(declaring("User:orders")))
    assert {acl.principal for acl, kind in planned.items() if kind is REVOKE} == {"User:old"}
    assert {acl.principal for acl, kind in planned.items() if kind is KEEP} == {"User:orders"}


def test_an_acl_of_two_applications_is_kept_when_one_no_longer_needs_it() -> None:
    """Both applications read `orders-in` as the same user."""
    cluster = SimulatedSecuredCluster()
    first, second = declaring(id_="orders"), declaring(id_="stock")
    planned = cluster.up(first, second)
    assert SOURCE in kinds(planned, "orders")
    assert SOURCE not in kinds(planned, "stock")
    planned = cluster.up(application(id_="orders"), second)
    assert SOURCE not in kinds(planned, "orders")
    assert kinds(planned, "stock")[SOURCE] is KEEP
    assert SOURCE in cluster.allowed
    assert kinds(cluster.plan(first, second), "stock")[SOURCE] is KEEP


def test_releasing_keeps_acls_and_retiring_revokes_them_in_the_second_step() -> None:
    cluster = SimulatedSecuredCluster()
    cluster.up(declaring())
    released = attrs.evolve(cluster, records=dict(cluster.records)).plan(
        declaring(lifecycle=Lifecycle.RELEASED)
    )
    assert acl_kinds(released) == {AclActionKind.RELEASE}
    assert acl_kinds(cluster.up(declaring(lifecycle=Lifecycle.RETIRED))) == {KEEP}
    assert acl_kinds(cluster.up()) == {REVOKE}
    assert not cluster.allowed


def test_without_an_authorizer_acls_are_not_changed() -> None:
    cluster = SimulatedSecuredCluster(has_authorizer=False)
    planned = cluster.plan(declaring())
    assert acl_kinds(planned) == set()
    [problem] = [problem for problem in planned.problems if problem.code is ProblemCode.NO_AUTHORIZER]
    assert problem.severity is Severity.WARNING
    assert planned.is_applicable
    cluster.has_authorizer = True
    cluster.up(declaring())
    cluster.has_authorizer = False
    assert acl_kinds(cluster.plan(declaring(steps=2))) == {KEEP}
    assert not [p for p in cluster.plan(application()).problems if p.code is ProblemCode.NO_AUTHORIZER]


def test_revoking_acls_of_a_running_application_is_a_warning() -> None:
    cluster = SimulatedSecuredCluster()
    cluster.up(declaring(steps=2))
    cluster.run_group("orders")
    [problem] = cluster.plan(declaring(steps=1)).problems
    assert (problem.code, problem.severity) == (ProblemCode.GROUP_ACTIVE, Severity.WARNING)
    assert "orders-step2-repartition" in (problem.found or "")
    cluster.run_group("orders", members=0)
    assert not cluster.plan(declaring(steps=1)).problems


def test_missing_acls_are_drift() -> None:
    cluster = SimulatedSecuredCluster()
    cluster.up(declaring())
    assert find_drift([declaring()], cluster.snapshot, cluster.records).is_clean
    cluster.allowed.discard(GROUP)
    drift = find_drift([declaring()], cluster.snapshot, cluster.records)
    [finding] = drift.findings
    assert (finding.kind, finding.topic) == (FindingKind.ACL, None)
    assert "User:orders Read Group orders" in finding.what
    assert finding.found == "revoked since it was granted"
    assert [f.found for f in find_drift([declaring()], cluster.snapshot).findings] == ["none"]


def test_the_text_of_a_plan_lists_each_acl_change() -> None:
    cluster = SimulatedSecuredCluster()
    text = plan_text(cluster.up(declaring(steps=2)))
    assert "10 ACLs to grant" in text
    assert "  grant        ACL User:orders Read Topic orders-in  source" in text.splitlines()
    cluster.allowed.discard(SOURCE)
    lines = plan_text(cluster.plan(declaring())).splitlines()
    assert "1 ACL to restore, 3 ACLs to revoke" in lines[0]
    assert "  revoke       ACL User:orders Delete Topic orders-step2-repartition" in lines
    assert "  keep         6 ACLs" in lines


def test_each_format_of_a_drift_report_lists_missing_acls() -> None:
    cluster = SimulatedSecuredCluster()
    cluster.up(declaring())
    cluster.allowed.clear()
    drift = find_drift([declaring()], cluster.snapshot, cluster.records)
    text = " ".join(drift_text(drift).split())
    assert "warning[acl] Not granted: 7 ACLs." in text
    assert "revoked since it was granted, expected User:orders Read Topic orders-in (source)" in text
    assert "User:orders Read Group orders" in drift_markdown(drift)
    assert {found["kind"] for found in drift_json(drift)["applications"][0]["findings"]} == {"acl"}


def state(held: Mapping[str, Acl]) -> StackState:
    """Return the state of a stack with one ACL for each application id."""
    return StackState.from_outputs(
        {
            f"urn:pulumi:dev::shop::{COMPONENT_TYPE}${ACL_TYPE}::{acl_name(id_, acl)}": {
                "type": ACL_TYPE,
                "outputs": acl_inputs(acl),
            }
            for id_, acl in held.items()
        }
        | {
            f"urn:pulumi:dev::shop::{COMPONENT_TYPE}::{id_}": {
                "type": COMPONENT_TYPE,
                "outputs": {"topics": {}},
            }
            for id_ in held
        }
    )


def registered(planned: Plan, id_: str, held: StackState) -> dict[str, AclResource]:
    [part] = [part for part in planned.applications if part.application_id == id_]
    return {acl.name: acl for acl in with_acls(decide_registration(part.actions, held), part, held).acls}


@pytest.mark.parametrize("principal", ["User:orders", "User:CN=a::b/c,OU=x", "User:ü"])
def test_registered_acls_are_read_from_the_state(principal: str) -> None:
    acl = attrs.evolve(SOURCE, principal=principal)
    held = state({"orders": acl})
    assert set(held.acls) == {acl}
    assert held.records["orders"].acls == {acl}


def test_acls_are_registered_as_planned() -> None:
    cluster = SimulatedSecuredCluster(allowed={GROUP})
    planned = cluster.plan(declaring())
    found = registered(planned, "orders", StackState())
    adopted, granted = found[acl_name("orders", GROUP)], found[acl_name("orders", SOURCE)]
    assert adopted.import_id == "User:orders|*|Read|Allow|Group|orders|Literal"
    assert (granted.import_id, granted.retain, granted.alias, granted.guarded) == ("", False, None, True)
    assert granted.inputs == acl_inputs(SOURCE)
    assert not granted.is_settled
    assert registered(planned, "orders", state({"orders": SOURCE}))[granted.name].is_settled
    cluster.apply(planned)
    assert registered(cluster.plan(application()), "orders", StackState()) == {}
    released = registered(
        cluster.plan(declaring(lifecycle=Lifecycle.RELEASED)), "orders", state({"orders": SOURCE})
    )
    assert all(acl.retain and not acl.guarded for acl in released.values())


def test_an_acl_that_another_application_needs_is_moved_and_not_re_created() -> None:
    cluster = SimulatedSecuredCluster()
    cluster.up(declaring(id_="orders"), declaring(id_="stock"))
    planned = cluster.plan(application(id_="orders"), declaring(id_="stock"))
    held = state({"orders": SOURCE})
    moved = registered(planned, "stock", held)[acl_name("stock", SOURCE)]
    assert moved.alias == held.acls[SOURCE]
    assert moved.import_id == ""


def test_a_deleted_acl_is_registered_as_a_repair() -> None:
    cluster = SimulatedSecuredCluster()
    cluster.up(declaring())
    cluster.allowed.discard(SOURCE)
    [part] = cluster.plan(declaring()).applications
    [repair] = with_acls(decide_registration(part.actions, StackState()), part, StackState()).repairs
    assert (repair.acl, repair.text) == (SOURCE, "grant again")
