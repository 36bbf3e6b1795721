"""What Pulumi is told of each topic, and what has to be done beside it.

Pulumi compares a topic with its own state, not with the cluster. So whatever the plan keeps is left out of
the comparison (`ignored`), and whatever the plan changes although the state has it right already is a
`Repair`: Pulumi cannot see it. Nor can it change a topic of which the state would still be wrong afterwards:
the provider waits in vain for the cluster to agree with the state.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from infra.apply.stack_state import StackState, TopicInState
from infra.model.acls import Acl
from infra.planner import ActionKind, TopicAction

_ALL = ("partitions", "replicationFactor", "config")


@attrs.frozen(kw_only=True)
class TopicResource:
    """How a topic is registered. `inputs` are the provider's; of those in `ignored` the state keeps its own.

    `is_settled` = it is in the state and stays as it is there: the provider need not ask the cluster.
    `protect` refuses deletion and replacement, `retain` makes even a deletion that gets through leave the
    topic alone, `guarded` binds the hook that refuses what the plan does not delete.
    """

    name: str
    inputs: Mapping[str, Any]
    is_live: bool
    ignored: tuple[str, ...] = ()
    protect: bool = True
    retain: bool = True
    guarded: bool = True
    wave: int = 0
    is_settled: bool = False

    @property
    def grows(self) -> bool:
        """Whether the provider is to add partitions to a topic that exists."""
        return self.is_live and "partitions" not in self.ignored


@attrs.frozen(kw_only=True)
class AclResource:
    """How an ACL is registered: it is not protected, for to drop it is to revoke it.

    `import_id` is how the provider finds one that exists, empty to make one; `retain` makes its deletion
    leave the ACL alone; `alias` is the URN that it has in the state, if that changes. `guarded` binds the
    hook that refuses what the plan does not revoke. `is_settled` = it is in the state already.
    """

    name: str
    inputs: Mapping[str, Any]
    import_id: str = ""
    retain: bool = False
    alias: str | None = None
    guarded: bool = True
    wave: int = 0
    is_settled: bool = False


@attrs.frozen(kw_only=True)
class Repair:
    """A change of the cluster alone. `partitions` and `config` say what to reach; config values None = unset.

    With `create` the topic is made anew, else `partitions` None = as they are. With `acl` it is no topic that
    is repaired: the ACL is granted again.
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
    """All of one application. `released` are topics in the state that the run leaves unprotected."""

    topics: tuple[TopicResource, ...]
    repairs: tuple[Repair, ...]
    released: frozenset[str]
    acls: tuple[AclResource, ...] = ()

    @property
    def resources(self) -> tuple[TopicResource | AclResource, ...]:
        return (*self.topics, *self.acls)


def register(actions: Iterable[TopicAction], state: StackState) -> Registration:
    """Decide how the topics of one application are registered."""
    topics: list[TopicResource] = []
    repairs: list[Repair] = []
    released: set[str] = set()
    for action in actions:
        held = state.topics.get(action.name)
        if action.kind is ActionKind.RELEASE:
            if held is not None:
                released.add(action.name)
                if action.name not in state.released:
                    topics.append(_let_go(action, held))
        elif action.kind is not ActionKind.DELETE:
            topics.append(_resource(action, held))
            repairs.extend(_repair(action, held))
    return Registration(tuple(topics), tuple(repairs), frozenset(released))


def register_grown(action: TopicAction, live_partitions: int, state: StackState) -> Registration:
    """Decide again about a topic that has `live_partitions` by now."""
    if action.live is None:
        raise ValueError(action.name)
    grown = attrs.evolve(
        action,
        live=attrs.evolve(action.live, partitions=live_partitions),
        partitions=max(action.partitions, live_partitions),
    )
    return register([grown], state)


def _let_go(action: TopicAction, held: TopicInState) -> TopicResource:
    """Pulumi drops a protected topic from its state in two steps only: this is the first."""
    return TopicResource(
        name=action.name,
        inputs=_inputs(attrs.evolve(action, partitions=held.partitions)),
        is_live=action.live is not None,
        ignored=_ALL,
        protect=False,
        guarded=False,
        is_settled=True,
    )


def _resource(action: TopicAction, held: TopicInState | None) -> TopicResource:
    is_retired = action.kind is ActionKind.RETIRE
    ignored = _ignored(action, held)
    return TopicResource(
        name=action.name,
        inputs=_inputs(action),
        is_live=action.live is not None,
        ignored=ignored,
        protect=not is_retired,
        retain=not is_retired,
        wave=action.wave,
        is_settled=held is not None and ignored == _ALL,
    )


def _inputs(action: TopicAction) -> dict[str, Any]:
    return {
        "name": action.name,
        "partitions": action.partitions,
        # The provider takes no -1; for topics that exist the factor is ignored anyway.
        "replicationFactor": max(action.replication_factor, 1),
        "config": dict(action.config),
    }


def _ignored(action: TopicAction, held: TopicInState | None) -> tuple[str, ...]:
    if action.live is None:
        return () if held is None else _ALL
    if not (_grows_visibly(action, held) or _changes_visibly(action, held)):
        return _ALL
    # The provider writes the whole config with every update, so it must not be an old one.
    return ("replicationFactor",) if _grows_visibly(action, held) else ("partitions", "replicationFactor")


def _grows_visibly(action: TopicAction, held: TopicInState | None) -> bool:
    return action.added_partitions > 0 and (
        held is None or (held.partitions < action.partitions and _has_its_replicas(action, held))
    )


def _changes_visibly(action: TopicAction, held: TopicInState | None) -> bool:
    if not action.changes or held is None:
        return bool(action.changes)
    agrees = held.partitions == action.partitions and _has_its_replicas(action, held)
    may_write = agrees or _grows_visibly(action, held)
    return may_write and all(held.config.get(change.key) != change.wanted for change in action.changes)


def _has_its_replicas(action: TopicAction, held: TopicInState) -> bool:
    """Whether the replicas are still as many as the state has them: updates leave them alone."""
    return action.live is None or held.replication_factor in (None, action.live.replication_factor)


def _repair(action: TopicAction, held: TopicInState | None) -> Iterable[Repair]:
    if held is None:
        return
    if action.live is None:
        yield Repair(
            name=action.name,
            create=True,
            partitions=action.partitions,
            replication_factor=action.replication_factor,
            config=dict(action.config),
            text=f"create again with {action.partitions} partitions",
        )
        return
    grows = action.added_partitions > 0 and not _grows_visibly(action, held)
    written = _grows_visibly(action, held) or _changes_visibly(action, held)
    changes = () if written else action.changes
    if grows or changes:
        growth = [f"partitions {action.live.partitions} -> {action.partitions}"] if grows else []
        settings = [f"{c.key} {_shown(c.live)} -> {_shown(c.wanted)}" for c in changes]
        yield Repair(
            name=action.name,
            partitions=action.partitions if grows else None,
            config={change.key: change.wanted for change in changes},
            text=", ".join((*growth, *settings)),
        )


def _shown(value: str | None) -> str:
    return "unset" if value is None else value
