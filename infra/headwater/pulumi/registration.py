"""Decide how each topic and ACL is registered with Pulumi, and which changes Headwater makes itself.

Pulumi compares a topic with its own state, not with the cluster. So the properties that the plan keeps are
left out of the comparison (`ignored`). A change that the state already contains is invisible to Pulumi, so
Headwater makes it itself (`Repair`). It also makes the changes of a topic whose state would still differ from
the cluster afterwards, because the provider would wait until a timeout for the two to agree.

Pulumi cannot update an ACL: it creates an ACL, and deletes it when it is no longer registered.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from headwater.model.acls import Acl
from headwater.planner import AclAction, AclActionKind, ActionKind, ApplicationPlan, TopicAction
from headwater.planner.phrases import setting_text
from headwater.pulumi.stack_state import StackState, TopicInState, acl_inputs, acl_name, urn_name

_ALL = ("partitions", "replicationFactor", "config")
_SEPARATOR = "|"
"""The separator in the provider's ACL ids; the document schema does not allow it in principals."""


@attrs.frozen(kw_only=True)
class TopicResource:
    """How a topic is registered. For the `inputs` in `ignored`, the state keeps its own values.

    `is_settled`: the topic is in the state and does not change, so the provider does not ask the cluster.
    `protect` makes Pulumi refuse deletion and replacement. `retain` makes Pulumi drop a deleted resource from
    the state without deleting the topic. `guarded` binds the hook that refuses deletions outside the plan.
    """

    name: str
    inputs: Mapping[str, Any]
    is_live: bool
    protect: bool
    retain: bool
    guarded: bool
    is_settled: bool
    ignored: tuple[str, ...] = ()
    wave: int = 0

    @property
    def expands(self) -> bool:
        """Whether the provider adds partitions to a topic that exists."""
        return self.is_live and "partitions" not in self.ignored


@attrs.frozen(kw_only=True)
class AclResource:
    """How an ACL is registered. It is not protected: Pulumi revokes an ACL by deleting its resource.

    `import_id` identifies an existing ACL for the provider; it is empty if the ACL is to be created. `retain`
    makes Pulumi drop a deleted resource without revoking the ACL. `alias` is its URN in the state if the URN
    changes. `guarded` binds the hook that refuses deletions outside the plan. `is_settled`: the ACL is in the
    state already.
    """

    name: str
    inputs: Mapping[str, Any]
    retain: bool
    guarded: bool
    is_settled: bool
    import_id: str = ""
    alias: str | None = None
    wave: int = 0


@attrs.frozen(kw_only=True)
class Repair:
    """A change that Headwater makes on the cluster without Pulumi; `text` describes it in a preview.

    With `create` the topic is re-created. Otherwise `partitions` is its new count (None: unchanged), and
    `config` has the settings to change (value None: reset to the broker's default). With `acl` the ACL is
    granted again and no topic is changed.
    """

    name: str
    create: bool = False
    partitions: int | None = None
    replication_factor: int = -1
    config: Mapping[str, str | None] = attrs.field(factory=dict)
    acl: Acl | None = None
    text: str


@attrs.frozen
class Registration:
    """The resources and repairs of one application; `released` are topics in the state without protection."""

    topics: tuple[TopicResource, ...]
    repairs: tuple[Repair, ...]
    released: frozenset[str]
    acls: tuple[AclResource, ...] = ()

    @property
    def resources(self) -> tuple[TopicResource | AclResource, ...]:
        return (*self.topics, *self.acls)


def registration_of(planned: ApplicationPlan, state: StackState) -> Registration:
    """Return all resources and repairs of one application."""
    return with_acls(decide_registration(planned.actions, state), planned, state)


def decide_registration(actions: Iterable[TopicAction], state: StackState) -> Registration:
    """Return how the topics of one application are registered, and the repairs."""
    topics: list[TopicResource] = []
    repairs: list[Repair] = []
    released: set[str] = set()
    for action in actions:
        in_state = state.topics.get(action.name)
        if action.kind is ActionKind.RELEASE:
            if in_state is not None:
                released.add(action.name)
                if action.name not in state.released:
                    topics.append(_released_topic(action, in_state))
        elif action.kind is not ActionKind.DELETE:
            topics.append(_topic_resource(action, in_state))
            repairs.extend(_repairs_of(action, in_state))
    return Registration(tuple(topics), tuple(repairs), frozenset(released))


def register_expanded(action: TopicAction, live_partitions: int, state: StackState) -> Registration:
    """Return how a topic is registered that another client has expanded to `live_partitions`.

    Raises `ValueError` if the topic did not exist when the plan was made.
    """
    if action.live is None:
        raise ValueError(action.name)
    expanded = attrs.evolve(
        action,
        live=attrs.evolve(action.live, partitions=live_partitions),
        partitions=max(action.partitions, live_partitions),
    )
    return decide_registration([expanded], state)


def with_acls(registration: Registration, planned: ApplicationPlan, state: StackState) -> Registration:
    """Return `registration` with the ACLs of an application, and the repairs that grant lost ones again."""
    declared = [action for action in planned.acls if action.kind is not AclActionKind.REVOKE]
    lost = [action.acl for action in planned.acls if action.kind is AclActionKind.RESTORE]
    repairs = (Repair(name=acl.text, acl=acl, text="grant again") for acl in lost)
    return attrs.evolve(
        registration,
        acls=tuple(_acl_resource(action, planned.application_id, state) for action in declared),
        repairs=(*registration.repairs, *repairs),
    )


def _released_topic(action: TopicAction, in_state: TopicInState) -> TopicResource:
    """Register a topic unprotected: Pulumi can drop it from the state in the next run."""
    return TopicResource(
        name=action.name,
        inputs=_inputs_of(attrs.evolve(action, partitions=in_state.partitions)),
        is_live=action.live is not None,
        ignored=_ALL,
        protect=False,
        retain=True,
        guarded=False,
        is_settled=True,
    )


def _topic_resource(action: TopicAction, in_state: TopicInState | None) -> TopicResource:
    is_retired = action.kind is ActionKind.RETIRE
    ignored = _ignored_changes(action, in_state)
    return TopicResource(
        name=action.name,
        inputs=_inputs_of(action),
        is_live=action.live is not None,
        ignored=ignored,
        protect=not is_retired,
        # Headwater deletes the topic by its id; the provider would delete any topic with its name.
        retain=True,
        guarded=True,
        wave=action.wave,
        is_settled=in_state is not None and ignored == _ALL,
    )


def _inputs_of(action: TopicAction) -> dict[str, Any]:
    return {
        "name": action.name,
        "partitions": action.partitions,
        # The provider does not accept -1; for topics that exist the factor is ignored.
        "replicationFactor": max(action.replication_factor, 1),
        "config": dict(action.config),
    }


def _ignored_changes(action: TopicAction, in_state: TopicInState | None) -> tuple[str, ...]:
    if action.live is None:
        return () if in_state is None else _ALL
    if not (_pulumi_expands(action, in_state) or _pulumi_reconfigures(action, in_state)):
        return _ALL
    # The provider writes the whole config with every update, so it must be the current one.
    return (
        ("replicationFactor",) if _pulumi_expands(action, in_state) else ("partitions", "replicationFactor")
    )


def _pulumi_expands(action: TopicAction, in_state: TopicInState | None) -> bool:
    return action.added_partitions > 0 and (
        in_state is None or (in_state.partitions < action.partitions and _has_same_replicas(action, in_state))
    )


def _pulumi_reconfigures(action: TopicAction, in_state: TopicInState | None) -> bool:
    if not action.changes or in_state is None:
        return bool(action.changes)
    agrees = in_state.partitions == action.partitions and _has_same_replicas(action, in_state)
    may_write = agrees or _pulumi_expands(action, in_state)
    return may_write and all(in_state.config.get(change.key) != change.declared for change in action.changes)


def _has_same_replicas(action: TopicAction, in_state: TopicInState) -> bool:
    """Whether the topic has the number of replicas of the state; updates do not change replicas."""
    return action.live is None or in_state.replication_factor in (None, action.live.replication_factor)


def _repairs_of(action: TopicAction, in_state: TopicInState | None) -> Iterable[Repair]:
    if in_state is None:
        return
    if action.live is None:
        yield Repair(
            name=action.name,
            create=True,
            partitions=action.partitions,
            replication_factor=action.replication_factor,
            config=dict(action.config),
            text=f"re-create with {action.partitions} partitions",
        )
        return
    expands = action.added_partitions > 0 and not _pulumi_expands(action, in_state)
    is_written = _pulumi_expands(action, in_state) or _pulumi_reconfigures(action, in_state)
    changes = () if is_written else action.changes
    if expands or changes:
        expansion = [f"partitions {action.live.partitions} -> {action.partitions}"] if expands else []
        settings = [f"{c.key} {setting_text(c.live)} -> {setting_text(c.declared)}" for c in changes]
        yield Repair(
            name=action.name,
            partitions=action.partitions if expands else None,
            config={change.key: change.declared for change in changes},
            text=", ".join((*expansion, *settings)),
        )


def _acl_resource(action: AclAction, application_id: str, state: StackState) -> AclResource:
    acl, name = action.acl, acl_name(application_id, action.acl)
    urn = state.acls.get(acl)
    parts = acl_inputs(acl)
    is_released = action.kind is AclActionKind.RELEASE
    return AclResource(
        name=name,
        inputs=parts,
        import_id=_SEPARATOR.join(parts.values()) if action.kind is AclActionKind.ADOPT else "",
        retain=is_released,
        guarded=not is_released,
        is_settled=urn is not None,
        alias=urn if urn is not None and urn_name(urn) != name else None,
    )
