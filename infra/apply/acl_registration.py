"""What Pulumi is told of each ACL, and what has to be done beside it.

An ACL cannot be changed, only made and removed; one that is no longer registered is removed by Pulumi.
"""

import attrs

from infra.apply.registration import AclResource, Registration, Repair
from infra.apply.stack_state import StackState, acl_inputs, acl_name
from infra.planner import ApplicationPlan
from infra.planner.acls import AclAction, AclActionKind

_SEPARATOR = "|"
"""Between the parts of the ids that the provider gives to ACLs; the schema keeps it out of principals."""


def with_acls(registration: Registration, planned: ApplicationPlan, state: StackState) -> Registration:
    """Decide how the ACLs of an application are registered, beside its topics."""
    wanted = [action for action in planned.acls if action.kind is not AclActionKind.REVOKE]
    lost = [action.acl for action in planned.acls if action.kind is AclActionKind.RESTORE]
    again = (Repair(name=acl.text, acl=acl, text="grant again") for acl in lost)
    return attrs.evolve(
        registration,
        acls=tuple(_acl(action, planned.application_id, state) for action in wanted),
        repairs=(*registration.repairs, *again),
    )


def _acl(action: AclAction, application_id: str, state: StackState) -> AclResource:
    acl, name = action.acl, acl_name(application_id, action.acl)
    held = state.acls.get(acl)
    parts = acl_inputs(acl)
    is_released = action.kind is AclActionKind.RELEASE
    return AclResource(
        name=name,
        inputs=parts,
        import_id=_SEPARATOR.join(parts.values()) if action.kind is AclActionKind.ADOPT else "",
        retain=is_released,
        guarded=not is_released,
        is_settled=held is not None,
        alias=held if held is not None and held.split("::", maxsplit=3)[3] != name else None,
    )
