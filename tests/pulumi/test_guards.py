"""Nothing deletes or replaces a topic, but the two steps that say so."""

import pytest

from tests.pulumi.conftest import World

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]


def test_pulumi_commands_that_delete_or_replace_are_refused(world: World) -> None:
    world.set_up()
    before = world.facts()
    urn = world.stack.topics()[world.changelog]["urn"]
    for command in (
        ("destroy", "--yes"),
        ("destroy", "--yes", "--run-program"),
        ("destroy", "--yes", "--skip-preview", "--run-program", "--target", urn),
        ("up", "--yes", "--skip-preview", "--replace", urn),
        ("up", "--yes", "--skip-preview", "--target-replace", urn),
    ):
        outcome = world.stack.run(*command)
        assert not outcome.succeeded, str(outcome)
        assert world.facts() == before, command
    world.up("--target", urn)
    # Even without its protection, and with the state's consent, the topic stays.
    world.stack.succeed("state", "unprotect", "--yes", urn)
    outcome = world.stack.run("destroy", "--yes", "--skip-preview", "--run-program", "--target", urn)
    assert "is not deleted: Headwater deletes only topics of retired applications" in outcome.text, str(
        outcome
    )
    assert world.facts() == before
    world.up()
    world.is_clean()


def test_a_removed_document_is_an_error_and_a_released_one_lets_go(world: World) -> None:
    world.set_up()
    before = world.facts()
    world.stack.document(world.id, None)
    world.refused("ApplicationRemoved")
    world.declare(lifecycle="released")
    world.up()
    world.stack.document(world.id, None)
    outcome = world.up()
    assert "delete[retain]" in outcome.text or "deleted" in outcome.text, str(outcome)
    assert world.facts() == before
    assert not world.stack.topics()
    world.is_clean()
    # It can be taken up again at any time, and the stack be given up.
    world.declare()
    world.up()
    assert world.facts() == before
    world.is_clean()
    world.declare(lifecycle="released")
    world.up()
    world.stack.succeed("destroy", "--yes", "--skip-preview")
    assert world.facts() == before
    assert not world.stack.state()


def test_a_retired_application_is_deleted_in_two_steps(world: World) -> None:
    out = world.source + "-counts"
    topology: list[dict[str, object]] = [
        {"stream": {"topic": world.source}},
        {"groupBy": {"key": "value.customer", "name": "by-customer"}},
        {"count": {"materialized": "counts"}},
        {"toStream": None},
        {"to": {"topic": out}},
    ]
    sinks = {out: {"partitions": "follow"}}
    world.write(topology, topics=sinks)
    world.up()
    assert world.cluster.partitions(out) == 4
    world.write(topology, topics=sinks, application={"lifecycle": "retired"})
    first = world.up()
    assert "step 1 of 2: nothing is deleted yet" in first.text, str(first)
    world.settles_at(4, 4)
    world.stack.document(world.id, None)
    second = world.up()
    assert "step 2 of 2" in second.text, str(second)
    world.settles_at(None, None)
    assert world.cluster.partitions(out) == 4
    world.is_clean()


def test_a_change_of_address_replaces_nothing(world: World) -> None:
    world.set_up()
    before = world.facts()
    port = world.cluster.bootstrap_servers.rpartition(":")[2]
    world.stack.configure({"bootstrapServers": [f"localhost:{port}", world.cluster.bootstrap_servers]})
    outcome = world.up()
    assert "replace" not in outcome.text, str(outcome)
    assert world.facts() == before
    world.is_clean()
