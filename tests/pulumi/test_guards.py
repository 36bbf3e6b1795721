"""No command deletes or replaces a topic, except the two steps that retire an application."""

import re

import pytest

from tests.pulumi.conftest import Deployment

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]


def test_pulumi_commands_that_delete_or_replace_are_refused(deployment: Deployment) -> None:
    deployment.set_up()
    kinds = ("kafka:index/topic:Topic", "headwater:kafka:InternalTopics", "headwater:kafka:Setup")
    resources = [resource for resource in deployment.stack.state() if resource["type"] in kinds]
    assert len(resources) == 4
    assert all(resource["protect"] for resource in resources)
    before = deployment.facts()
    urn = deployment.stack.topics()[deployment.changelog]["urn"]
    for command in (
        ("destroy", "--yes"),
        ("destroy", "--yes", "--skip-preview", "--run-program"),
        ("destroy", "--yes", "--skip-preview", "--run-program", "--target", urn),
        ("up", "--yes", "--skip-preview", "--replace", urn),
        ("up", "--yes", "--skip-preview", "--target-replace", urn),
    ):
        outcome = deployment.stack.run(*command)
        assert not outcome.succeeded, str(outcome)
        assert deployment.facts() == before, command
        assert command[0] != "destroy" or "lifecycle: released" in outcome.text, str(outcome)
    deployment.up("--target", urn)
    # The topic stays even if it is not protected in the state.
    deployment.stack.succeed("state", "unprotect", "--yes", urn)
    outcome = deployment.stack.run("destroy", "--yes", "--skip-preview", "--run-program", "--target", urn)
    assert "is not deleted: Headwater deletes only topics of retired applications" in outcome.text, str(
        outcome
    )
    assert deployment.facts() == before
    deployment.up()
    deployment.is_clean()


@pytest.mark.parametrize("protect", ["true", pytest.param("false", marks=pytest.mark.soak)])
def test_an_imported_topic_is_not_deleted_and_leaves_the_state_as_advised(
    deployment: Deployment, protect: str
) -> None:
    deployment.set_up()
    (provider,) = (
        resource["urn"]
        for resource in deployment.stack.state()
        if resource["type"] == "pulumi:providers:kafka"
    )
    topic = ("kafka:index/topic:Topic", deployment.source, deployment.source)
    options = ("--provider", f"p={provider}", f"--protect={protect}", "--generate-code=false", "--yes")
    deployment.stack.succeed("import", *topic, *options)
    outcome = deployment.refused("DeletionRefused")
    advised = re.search(r"pulumi (state delete --force) '(urn:\S+)'", " ".join(outcome.text.split()))
    assert advised is not None, str(outcome)
    before = deployment.cluster.topic_id(deployment.source)
    deployment.stack.succeed(*advised[1].split(), advised[2], "--yes")
    deployment.up()
    assert deployment.cluster.topic_id(deployment.source) == before


def test_a_topic_of_an_earlier_program_is_not_deleted(deployment: Deployment) -> None:
    _, headwater = _run_earlier_program(deployment)
    _refused(deployment, headwater, problems=2)


def _run_earlier_program(deployment: Deployment) -> tuple[str, str]:
    """Run a program that declares an internal topic itself; return two that let Headwater manage it now.

    The first of them still reads the topic, the second one is the usual program.
    """
    program = deployment.stack.folder / "__main__.py"
    headwater = program.read_text()
    own = f"""
import pulumi
import pulumi_kafka
servers = ["{deployment.cluster.bootstrap_servers}"]
provider = pulumi_kafka.Provider("own", bootstrap_servers=servers, tls_enabled=False)
topic = pulumi_kafka.Topic(
    "counts", name="{deployment.changelog}", partitions=4, replication_factor=1,
    config={{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}},
    opts=pulumi.ResourceOptions(provider=provider),
)
pulumi.ComponentResource("own:index:Reader", "reader", opts=pulumi.ResourceOptions(depends_on=[topic]))
pulumi_kafka.Quota(
    "limit", entity_name="{deployment.id}", entity_type="client-id", config={{"consumer_byte_rate": "1000"}},
    opts=pulumi.ResourceOptions(provider=provider),
)
"""
    program.write_text(own)
    deployment.up()
    deployment.declare()
    reading = f"""
import pulumi
import pulumi_kafka
from headwater.pulumi.program import configured_settings, deploy

async def main():
    await deploy(configured_settings())
    provider = pulumi_kafka.Provider(
        "own", bootstrap_servers=["{deployment.cluster.bootstrap_servers}"], tls_enabled=False
    )
    options = pulumi.ResourceOptions(provider=provider)
    pulumi_kafka.Topic.get("read", "{deployment.changelog}", opts=options)

pulumi.run(main)
"""
    return reading, headwater


def _refused(deployment: Deployment, text: str, *, problems: int) -> tuple[str, set[str]]:
    """Run a program that must be refused; return the text of the problems, and the URNs in their advice."""
    (deployment.stack.folder / "__main__.py").write_text(text)
    outcome = deployment.refused("DeletionRefused")
    texts = " ".join(outcome.text.split())
    urns = set(re.findall(r"pulumi state delete --force '(urn:\S+)'", texts))
    assert len(urns) == problems, str(outcome)
    return texts, urns


@pytest.mark.soak  # the test before, and the advice of both problems
def test_a_topic_of_an_earlier_program_is_not_deleted_after_its_adoption(deployment: Deployment) -> None:
    reading, headwater = _run_earlier_program(deployment)
    program = deployment.stack.folder / "__main__.py"
    before = deployment.facts()
    _refused(deployment, reading, problems=1)
    texts, urns = _refused(deployment, headwater, problems=2)
    quota, topic = (next(urn for urn in urns if part in urn) for part in ("index/quota", "index/topic"))
    dependent = deployment.stack.run("state", "delete", "--force", topic, "--yes")
    assert not dependent.succeeded
    (reader,) = set(re.findall(r"urn:\S+::own:index:Reader::reader", dependent.text))
    for urn in (reader, topic):
        deployment.stack.succeed("state", "delete", "--force", urn, "--yes")
    assert f"`pulumi state unprotect '{quota}'` and `pulumi destroy --target '{quota}'`" in texts, texts
    deployment.stack.succeed("state", "unprotect", quota, "--yes")
    deployment.stack.succeed("destroy", "--target", quota, "--yes", "--skip-preview")
    deployment.up()
    assert deployment.facts()[deployment.changelog] == before[deployment.changelog]
    # The program only reads the topic: no run is refused, and no run deletes the topic.
    for text in (reading, reading, headwater):
        program.write_text(text)
        deployment.up()
        assert deployment.facts()[deployment.changelog] == before[deployment.changelog]
    deployment.is_clean()


def test_a_removed_document_is_an_error_and_a_released_one_keeps_its_topics(deployment: Deployment) -> None:
    deployment.set_up()
    before = deployment.facts()
    deployment.stack.document(deployment.id, None)
    deployment.refused("ApplicationRemoved")
    deployment.declare(lifecycle="released")
    deployment.up()
    deployment.stack.document(deployment.id, None)
    outcome = deployment.up()
    assert "None of them is deleted on the cluster, although Pulumi shows `delete[retain]`." in outcome.text
    assert deployment.facts() == before
    assert not deployment.stack.topics()
    # It can be declared again at any time, and the stack can be destroyed.
    deployment.declare()
    deployment.up()
    assert deployment.facts() == before
    deployment.is_clean()
    deployment.declare(lifecycle="released")
    deployment.up()
    deployment.stack.succeed("destroy", "--yes", "--skip-preview")
    assert deployment.facts() == before
    assert not deployment.stack.state()


def test_a_topic_that_was_re_created_between_the_steps_of_retiring_is_not_deleted(
    deployment: Deployment,
) -> None:
    deployment.set_up()
    deployment.declare(lifecycle="retired")
    deployment.up()
    deployment.cluster.delete(deployment.changelog)
    deployment.cluster.create(deployment.changelog, 2)
    deployment.stack.document(deployment.id, None)
    outcome = deployment.refused("TopicReplaced")
    assert deployment.changelog in outcome.text, str(outcome)
    deployment.declare(lifecycle="released")
    deployment.up()
    deployment.stack.document(deployment.id, None)
    deployment.up()
    deployment.settles_at(4, 2)
    assert not deployment.stack.topics()


def test_a_change_of_bootstrap_servers_replaces_nothing(deployment: Deployment) -> None:
    deployment.set_up()
    before = deployment.facts()
    port = deployment.cluster.bootstrap_servers.rpartition(":")[2]
    deployment.stack.configure(
        {"bootstrapServers": [f"localhost:{port}", deployment.cluster.bootstrap_servers]}
    )
    outcome = deployment.up()
    assert "replace" not in outcome.text, str(outcome)
    assert deployment.facts() == before
    deployment.is_clean()
