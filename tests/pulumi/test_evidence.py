"""No topic is adopted or deleted because of its name, or because of the state of the stack alone."""

import pytest

from tests.pulumi.conftest import Deployment

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]


def test_a_topic_of_a_user_is_adopted_only_if_the_document_names_it(deployment: Deployment) -> None:
    settings = {"cleanup.policy": "delete", "retention.ms": "-1"}
    deployment.cluster.create(deployment.changelog, 4, settings)
    deployment.declare()
    deployment.refused("OwnerNotProven")
    assert deployment.cluster.config(deployment.changelog) == settings
    deployment.declare(setup={"adoptTopics": [deployment.changelog]})
    deployment.up()
    deployment.declare()
    deployment.is_clean()


@pytest.mark.soak  # with other steps: `test_accidents`
def test_a_topic_that_another_group_reads_is_not_deleted(deployment: Deployment) -> None:
    deployment.set_up()
    reader = f"{deployment.id}audit"
    deployment.cluster.commit(reader, deployment.changelog)
    deployment.declare(lifecycle="retired")
    outcome = deployment.refused("DeletionRefused")
    assert f"group {reader} (Empty)" in outcome.text, str(outcome)
    deployment.cluster.delete_group(reader)
    deployment.up()
    deployment.cluster.commit(reader, deployment.changelog)
    deployment.stack.document(deployment.id, None)
    deployment.refused("DeletionRefused")
    deployment.cluster.delete_group(reader)
    deployment.up()
    deployment.settles_at(None, None)


def test_an_old_state_deletes_nothing(deployment: Deployment) -> None:
    deployment.set_up()
    deployment.declare(lifecycle="retired")
    deployment.up()
    exported = deployment.stack.folder / "exported.json"
    exported.write_text(deployment.stack.succeed("stack", "export"))
    deployment.declare()
    deployment.up()
    deployment.stack.succeed("stack", "import", "--file", str(exported))
    deployment.stack.document(deployment.id, None)
    outcome = deployment.refused("DeletionRefused")
    assert "says that it was not retired" in outcome.text, str(outcome)


def test_a_left_over_topic_is_deleted_in_two_steps(deployment: Deployment) -> None:
    deployment.set_up()
    steps: list[dict[str, object]] = [
        {"stream": {"topic": deployment.source}},
        {"groupBy": {"key": "value.customer", "name": "by-customer"}},
        {"count": {"materialized": "totals"}},
    ]
    old = deployment.changelog
    deployment.write(steps)
    deployment.up()
    deployment.write(steps, leftovers={"retire": [old]})
    preview = deployment.stack.preview("--diff")
    assert "it is deleted once it is listed below" in preview.text, str(preview)
    deployment.up()
    assert not deployment.stack.topics()[old].get("protect")
    assert deployment.cluster.partitions(old) == 4
    deployment.write(steps, leftovers={"delete": [old]})
    outcome = deployment.up()
    assert "delete" in outcome.text, str(outcome)
    deployment.settles_at(4, None)
    assert old not in deployment.stack.topics()
    deployment.write(steps)
    deployment.is_clean()
