"""The registration of a topic for each combination of planned action and state."""

from typing import Any

import attrs
import pytest

from headwater.model.acls import Acl, Operation, Permission, ResourceKind
from headwater.model.cluster import LiveTopic
from headwater.model.problems import Severity
from headwater.planner import AclAction, AclActionKind, ActionKind, ApplicationPlan, ConfigChange, TopicAction
from headwater.pulumi.planning import registered_twice
from headwater.pulumi.registration import (
    AclResource,
    Registration,
    Repair,
    TopicResource,
    decide_registration,
    register_expanded,
    registration_of,
)
from headwater.pulumi.stack_state import ACL_TYPE, COMPONENT_TYPE, StackState, TopicInState, acl_name

NAME = "app-counts-changelog"
RIGHT = {"cleanup.policy": "compact"}
WRONG = {"cleanup.policy": "delete"}
CHANGE = ConfigChange("cleanup.policy", "delete", "compact")
ALL = ("partitions", "replicationFactor", "config")


def live(partitions: int, config: dict[str, str] | None = None) -> LiveTopic:
    return LiveTopic(NAME, "id", partitions, 1, RIGHT if config is None else config)


def action(kind: ActionKind, partitions: int = 4, **fields: Any) -> TopicAction:  # noqa: ANN401
    return TopicAction(
        kind=kind, name=NAME, partitions=partitions, config=RIGHT, replication_factor=1, **fields
    )


def decided(
    action: TopicAction, held: TopicInState | None = None, released: frozenset[str] = frozenset()
) -> Registration:
    topics = {} if held is None else {NAME: held}
    return decide_registration([action], StackState(topics=topics, released=released))


def test_new_topic_is_protected() -> None:
    [topic] = decided(action(ActionKind.CREATE)).topics
    assert topic.inputs == {"name": NAME, "partitions": 4, "replicationFactor": 1, "config": RIGHT}
    assert not topic.is_live
    assert topic.ignored == ()
    assert topic.protect
    assert topic.retain
    assert topic.guarded


def test_unchanged_topic_keeps_the_values_of_the_state() -> None:
    registration = decided(action(ActionKind.KEEP, live=live(4)), TopicInState(2, WRONG))
    assert registration.topics[0].is_live
    assert registration.topics[0].ignored == ALL
    assert registration.repairs == ()


@pytest.mark.parametrize("held", [None, TopicInState(4, RIGHT), TopicInState(2, WRONG)])
def test_pulumi_expands_a_topic_if_the_state_shows_the_change(held: TopicInState | None) -> None:
    registration = decided(action(ActionKind.EXPAND, 6, live=live(4), wave=1), held)
    assert registration.topics[0].ignored == ("replicationFactor",)
    assert registration.topics[0].inputs["config"] == RIGHT
    assert registration.topics[0].wave == 1
    assert registration.repairs == ()


def test_pulumi_adds_a_single_partition() -> None:
    registration = decided(action(ActionKind.EXPAND, 5, live=live(4)), TopicInState(4, RIGHT))
    assert registration.topics[0].ignored == ("replicationFactor",)
    assert registration.topics[0].expands


def test_expansion_that_the_state_has_already_is_a_repair() -> None:
    registration = decided(action(ActionKind.EXPAND, 6, live=live(4)), TopicInState(6, RIGHT))
    assert registration.topics[0].ignored == ALL
    [repair] = registration.repairs
    assert (repair.partitions, repair.config, repair.create) == (6, {}, False)
    assert repair.text == "partitions 4 -> 6"


@pytest.mark.parametrize("held", [None, TopicInState(4, WRONG)])
def test_pulumi_changes_a_setting_if_the_state_shows_the_change(held: TopicInState | None) -> None:
    registration = decided(action(ActionKind.RECONFIGURE, live=live(4, WRONG), changes=(CHANGE,)), held)
    assert registration.topics[0].ignored == ("partitions", "replicationFactor")
    assert registration.repairs == ()


def test_setting_that_the_state_has_already_is_a_repair() -> None:
    reconfigure = action(ActionKind.RECONFIGURE, live=live(4, WRONG), changes=(CHANGE,))
    registration = decided(reconfigure, TopicInState(4, RIGHT))
    assert registration.topics[0].ignored == ALL
    [repair] = registration.repairs
    assert (repair.partitions, repair.config) == (None, {"cleanup.policy": "compact"})
    assert repair.text == "cleanup.policy delete -> compact"


@pytest.mark.parametrize(
    "held", [TopicInState(2, WRONG), TopicInState(4, WRONG, replication_factor=3)], ids=["counts", "replicas"]
)
def test_setting_is_a_repair_if_the_state_differs_otherwise(held: TopicInState) -> None:
    """The provider would wait until the cluster is equal to the state."""
    registration = decided(action(ActionKind.RECONFIGURE, live=live(4, WRONG), changes=(CHANGE,)), held)
    assert registration.topics[0].ignored == ALL
    assert [repair.config for repair in registration.repairs] == [{"cleanup.policy": "compact"}]


def test_expansion_is_a_repair_if_the_replication_factor_differs() -> None:
    held = TopicInState(4, RIGHT, replication_factor=3)
    registration = decided(action(ActionKind.EXPAND, 6, live=live(4)), held)
    assert registration.topics[0].ignored == ALL
    assert [repair.partitions for repair in registration.repairs] == [6]


@pytest.mark.parametrize("partitions", [6, 8])
def test_topic_expanded_since_the_plan_keeps_the_values_of_the_state(partitions: int) -> None:
    expanding = action(ActionKind.EXPAND, 6, live=live(4))
    state = StackState(topics={NAME: TopicInState(4, RIGHT)})
    assert decide_registration([expanding], state).topics[0].expands
    again = register_expanded(expanding, partitions, state)
    assert again.topics[0].ignored == ALL
    assert again.topics[0].inputs["partitions"] == partitions
    assert not again.topics[0].expands
    assert again.repairs == ()
    with pytest.raises(ValueError, match=NAME):
        register_expanded(action(ActionKind.CREATE), partitions, state)


def test_settings_of_a_topic_expanded_since_the_plan_are_a_repair() -> None:
    both = action(ActionKind.EXPAND, 6, live=live(4, WRONG), changes=(CHANGE,))
    again = register_expanded(both, 6, StackState(topics={NAME: TopicInState(4, WRONG)}))
    assert again.topics[0].ignored == ALL
    [repair] = again.repairs
    assert (repair.partitions, repair.config) == (None, {"cleanup.policy": "compact"})


BOTH = action(ActionKind.EXPAND, 6, live=live(4, WRONG), changes=(CHANGE,), wave=2)
EXPANSION = Repair(name=NAME, partitions=6, text="partitions 4 -> 6")
SETTING = Repair(name=NAME, config=RIGHT, text="cleanup.policy delete -> compact")
EVERYTHING = Repair(
    name=NAME, partitions=6, config=RIGHT, text="partitions 4 -> 6, cleanup.policy delete -> compact"
)


@pytest.mark.parametrize(
    ("held", "ignored", "repairs"),
    [
        (None, ("replicationFactor",), ()),
        (TopicInState(4, WRONG), ("replicationFactor",), ()),
        (TopicInState(4, RIGHT), ("replicationFactor",), ()),
        (TopicInState(6, WRONG), ("partitions", "replicationFactor"), (EXPANSION,)),
        (TopicInState(6, RIGHT), ALL, (EVERYTHING,)),
        (TopicInState(8, WRONG), ALL, (EVERYTHING,)),
        (TopicInState(4, WRONG, replication_factor=3), ALL, (EVERYTHING,)),
    ],
)
def test_each_change_is_made_by_pulumi_or_is_a_repair(
    held: TopicInState | None, ignored: tuple[str, ...], repairs: tuple[Repair, ...]
) -> None:
    """The plan expands the topic and changes a setting; the state has both changes, one or none."""
    resource = TopicResource(
        name=NAME,
        inputs={"name": NAME, "partitions": 6, "replicationFactor": 1, "config": RIGHT},
        is_live=True,
        protect=True,
        retain=True,
        guarded=True,
        is_settled=ignored == ALL,
        ignored=ignored,
        wave=2,
    )
    assert decided(BOTH, held) == Registration((resource,), repairs, frozenset())


def test_a_single_missing_partition_is_a_repair() -> None:
    expansion = action(ActionKind.EXPAND, 5, live=live(4))
    assert [repair.partitions for repair in decided(expansion, TopicInState(5, RIGHT)).repairs] == [5]


@pytest.mark.parametrize("kind", [ActionKind.ADOPT, ActionKind.KEEP])
def test_a_topic_is_settled_only_if_it_is_in_the_state(kind: ActionKind) -> None:
    """Without the state, the provider has to ask the cluster."""
    planned = action(kind, live=live(4))
    assert [topic.is_settled for topic in decided(planned).topics] == [False]
    assert [topic.is_settled for topic in decided(planned, TopicInState(4, RIGHT)).topics] == [True]


def test_repair_can_reset_a_setting() -> None:
    change = ConfigChange("retention.bytes", "1000", None)
    reconfigure = action(ActionKind.RECONFIGURE, live=live(4), changes=(change,))
    [repair] = decided(reconfigure, TopicInState(4, RIGHT)).repairs
    assert repair.config == {"retention.bytes": None}
    assert repair.text == "retention.bytes 1000 -> unset"


def test_update_by_pulumi_also_writes_settings() -> None:
    both = action(ActionKind.EXPAND, 6, live=live(4, WRONG), changes=(CHANGE,))
    registration = decided(both, TopicInState(4, RIGHT))
    assert registration.topics[0].ignored == ("replicationFactor",)
    assert registration.repairs == ()


def test_lost_topic_in_the_state_is_a_repair() -> None:
    registration = decided(action(ActionKind.RECREATE), TopicInState(4, RIGHT))
    assert registration.topics[0].ignored == ALL
    assert not registration.topics[0].is_live
    assert registration.repairs == (
        Repair(
            name=NAME,
            create=True,
            partitions=4,
            replication_factor=1,
            config=RIGHT,
            text="re-create with 4 partitions",
        ),
    )


def test_lost_topic_not_in_the_state_is_created() -> None:
    registration = decided(action(ActionKind.RECREATE))
    assert registration.topics[0].ignored == ()
    assert registration.repairs == ()


def test_release_takes_two_steps() -> None:
    release = action(ActionKind.RELEASE, live=live(4))
    first = decided(release, TopicInState(2, RIGHT))
    [topic] = first.topics
    assert (topic.protect, topic.retain, topic.guarded, topic.ignored) == (False, True, False, ALL)
    assert topic.inputs == {"name": NAME, "partitions": 2, "replicationFactor": 1, "config": RIGHT}
    assert topic.is_live
    assert topic.is_settled
    assert first.released == {NAME}
    second = decided(release, TopicInState(2, RIGHT), released=frozenset({NAME}))
    assert second.topics == ()
    assert second.released == {NAME}
    assert decided(release).topics == ()


def test_deletion_takes_two_steps() -> None:
    [topic] = decided(action(ActionKind.RETIRE, live=live(4)), TopicInState(4, RIGHT)).topics
    # The provider would delete it by name; Headwater deletes it by id.
    assert (topic.protect, topic.retain, topic.guarded, topic.ignored) == (False, True, True, ALL)
    assert decided(action(ActionKind.DELETE, live=live(4)), TopicInState(4, RIGHT)).topics == ()


@pytest.mark.parametrize("kind", [kind for kind in ActionKind if kind is not ActionKind.RETIRE])
@pytest.mark.parametrize("held", [None, TopicInState(4, RIGHT)])
def test_only_a_retired_topic_is_registered_as_deletable(kind: ActionKind, held: TopicInState | None) -> None:
    planned = attrs.evolve(action(kind), live=None if kind is ActionKind.CREATE else live(4))
    assert all(topic.retain for topic in decided(planned, held).topics)


LIVE_KINDS = [kind for kind in ActionKind if kind not in (ActionKind.CREATE, ActionKind.DELETE)]


@pytest.mark.parametrize("kind", LIVE_KINDS)
@pytest.mark.parametrize("held", [None, TopicInState(4, RIGHT), TopicInState(2, WRONG)])
def test_each_topic_is_protected_and_guarded_until_it_is_retired_or_released(
    kind: ActionKind, held: TopicInState | None
) -> None:
    for topic in decided(action(kind, live=live(4)), held).topics:
        assert topic.protect is (kind not in (ActionKind.RETIRE, ActionKind.RELEASE))
        assert topic.guarded is (kind is not ActionKind.RELEASE)


@pytest.mark.parametrize("resource", [TopicResource, AclResource])
def test_protection_has_no_default(resource: type[TopicResource | AclResource]) -> None:
    """Each registration decides it: a default would hide a registration that forgot it."""
    fields = attrs.fields_dict(resource)
    for name in ("protect", "retain", "guarded", "is_settled"):
        assert name not in fields or fields[name].default is attrs.NOTHING


def test_a_resource_that_two_applications_register_is_a_problem() -> None:
    created, kept = action(ActionKind.CREATE), action(ActionKind.RELEASE, live=live(4))
    state = StackState(topics={NAME: TopicInState(4, RIGHT)})
    registrations = {
        "app": decide_registration([created], state),
        "former": decide_registration([kept], state),
    }
    [problem] = registered_twice(registrations)
    assert (problem.topic, problem.found) == (NAME, "app, former")
    assert problem.severity is Severity.ERROR
    assert not list(registered_twice({"app": decide_registration([created], state)}))


@pytest.mark.parametrize("kind", [kind for kind in AclActionKind if kind is not AclActionKind.REVOKE])
@pytest.mark.parametrize("is_held", [True, False])
def test_an_acl_is_guarded_until_it_is_released(kind: AclActionKind, *, is_held: bool) -> None:
    acl = Acl("User:app", "*", Permission(ResourceKind.TOPIC, "orders", Operation.READ))
    urn = f"urn:pulumi:test::headwater::{COMPONENT_TYPE}${ACL_TYPE}::{acl_name('app', acl)}"
    state = StackState(acls={acl: urn} if is_held else {})
    part = ApplicationPlan("app", None, (), None, acls=(AclAction(kind, acl),))
    registration = registration_of(part, state)
    granted = Repair(name=acl.text, acl=acl, text="grant again")
    assert registration.repairs == (granted,) * (kind is AclActionKind.RESTORE)
    [registered] = registration.acls
    is_released = kind is AclActionKind.RELEASE
    assert (registered.retain, registered.guarded) == (is_released, not is_released)
    assert (registered.is_settled, registered.alias) == (is_held, None)
    assert bool(registered.import_id) is (kind is AclActionKind.ADOPT)


def test_an_acl_that_is_registered_under_its_name_and_an_alias_is_a_problem() -> None:
    acl = Acl("User:app", "*", Permission(ResourceKind.TOPIC, "orders", Operation.READ))
    urn = f"urn:pulumi:test::headwater::{COMPONENT_TYPE}${ACL_TYPE}::{acl_name('former', acl)}"
    state = StackState(acls={acl: urn})
    parts = {
        id_: ApplicationPlan(id_, None, (), None, acls=(AclAction(AclActionKind.KEEP, acl),))
        for id_ in ("app", "former")
    }
    registrations = {id_: registration_of(part, state) for id_, part in parts.items()}
    [problem] = registered_twice(registrations)
    assert (problem.topic, problem.found) == (None, "app, former")
    assert problem.summary.startswith("ACL former/")
    assert not list(registered_twice({"app": registrations["app"]}))
