"""The `headwater:` keys of a stack."""

from pathlib import Path

import pytest

from headwater.model.policies import BlastRadius, Effect
from headwater.model.problems import ProblemCode, Severity, errors
from headwater.model.topology import Lifecycle
from headwater.planner import PlanPolicy
from headwater.pulumi.settings import StackSettings, stack_settings

DOCUMENT = """
application: {id: shop, config: {}}
topology:
  - stream: {topic: orders}
  - to: {topic: out}
"""


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(DOCUMENT)
    return tmp_path


def settings(documents: Path, **values: str) -> StackSettings:
    given = {"bootstrapServers": "b:9092", "documents": str(documents), **values}
    return stack_settings(given, environment={}, file="Pulumi.prod.yaml")


def test_stack_requires_only_brokers_and_documents(documents: Path) -> None:
    read = settings(documents)
    assert read.problems == ()
    assert read.connection is not None
    assert read.connection.bootstrap_servers == ("b:9092",)
    assert [document.application.id for document in read.documents] == ["shop"]
    assert read.policy == PlanPolicy()


def test_lists_may_be_structured_or_separated_by_commas(documents: Path) -> None:
    for value in ('["a:1","b:2"]', "a:1, b:2"):
        connection = settings(documents, bootstrapServers=value).connection
        assert connection is not None
        assert connection.bootstrap_servers == ("a:1", "b:2")


def test_security_and_limits(documents: Path) -> None:
    read = settings(
        documents,
        securityProtocol="SASL_SSL",
        saslMechanism="scram-sha512",
        saslUsername="me",
        saslPassword="blue-heron",
        clusterId="abc",
        maxNewTopics="10",
        maxAddedPartitions="0",
    )
    assert errors(read.problems) == ()
    assert read.connection is not None
    assert (read.connection.protocol, read.connection.mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert "blue-heron" not in repr(read)
    assert read.policy.cluster_id == "abc"
    assert [(policy.key, policy.rule) for policy in read.policy.policies] == [
        ("headwater:maxNewTopics", BlastRadius({Effect.CREATED_TOPICS: 10})),
        ("headwater:maxAddedPartitions", BlastRadius({Effect.ADDED_PARTITIONS: 0})),
    ]


def test_policy_file_is_added_to_the_limits(
    documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "headwater-policies.yaml"
    file.write_text("policies: [{topicPartitions: {max: 12}}]")
    read = settings(documents, policies=str(file), maxNewTopics="10")
    assert [policy.key for policy in read.policy.policies] == ["headwater:maxNewTopics", "topicPartitions"]
    file.write_text("policies: [{topicPartitions: {most: 12}}]")
    (problem,) = errors(settings(documents, policies=str(file)).problems)
    assert problem.location is not None
    assert (problem.location.file, problem.location.pointer) == (
        str(file),
        "/policies/0/topicPartitions/most",
    )


def test_missing_policy_file_is_an_error(documents: Path) -> None:
    (problem,) = errors(settings(documents, policies="nowhere.yaml").problems)
    assert problem.code is ProblemCode.UNREADABLE_DOCUMENT


def test_environment_supplies_settings_that_the_stack_does_not_have(documents: Path) -> None:
    read = stack_settings(
        {"documents": str(documents), "saslMechanism": "PLAIN", "saslUsername": "me"},
        environment={"KAFKA_BOOTSTRAP_SERVERS": "b:9092", "HEADWATER_SASL_PASSWORD": "secret"},
    )
    assert read.connection is not None
    assert (read.connection.bootstrap_servers, read.connection.password) == (("b:9092",), "secret")


@pytest.mark.parametrize(
    ("values", "summary"),
    [
        ({"clusterID": "x"}, "headwater:clusterID is not a setting of Headwater. Did you mean clusterId?"),
        ({"zzz": "x"}, "headwater:zzz is not a setting of Headwater."),
        ({"maxNewTopics": "many"}, "headwater:maxNewTopics is not a whole number, 0 or more."),
        ({"maxNewTopics": "-1"}, "headwater:maxNewTopics is not a whole number, 0 or more."),
        ({"setup": "adopt"}, "headwater:setup is not a mapping."),
        ({"setup": '{"shop": true}'}, "headwater:setup.shop is not a mapping."),
        (
            {"setup": '{"shpo": {}}'},
            "headwater:setup.shpo is not an application of this stack. Did you mean shop?",
        ),
        (
            {"setup": '{"shop": {"adpot": true}}'},
            "headwater:setup.shop.adpot is not a setup option. Did you mean adopt?",
        ),
        ({"setup": '{"shop": {"adopt": "yes"}}'}, "headwater:setup.shop.adopt is not true or false."),
        (
            {"setup": '{"shop": {"timeout": "soon"}}'},
            "headwater:setup.shop.timeout is not a duration such as 60s.",
        ),
        (
            {"setup": '{"shop": {"lifecycle": "gone"}}'},
            "headwater:setup.shop.lifecycle is not one of active, released, retired.",
        ),
        (
            {"setup": '{"shop": {"principals": ["shop"]}}'},
            "headwater:setup.shop.principals is not a list of principals such as User:orders.",
        ),
        ({"bootstrapServers": "[1]"}, "headwater:bootstrapServers is not a list of strings."),
        ({"skipTlsVerify": "maybe"}, "headwater:skipTlsVerify is neither true nor false."),
        ({"caCert": "/no/such/file"}, "The file that headwater:caCert names cannot be read."),
    ],
)
def test_invalid_settings_are_reported(documents: Path, values: dict[str, str], summary: str) -> None:
    problems = errors(settings(documents, **values).problems)
    assert summary in [problem.summary for problem in problems]


def test_missing_brokers_are_reported_with_their_key(documents: Path) -> None:
    [problem] = stack_settings({"documents": str(documents)}, environment={}).problems
    assert "`headwater:bootstrapServers`" in problem.fix


def test_all_problems_are_found_at_once(documents: Path) -> None:
    (documents / "broken.yaml").write_text("application: {")
    read = settings(documents, clusterID="x", maxNewTopics="many", skipTlsVerify="maybe")
    assert len(errors(read.problems)) == 4
    assert not read.policy.are_documents_complete


def test_switches_of_a_stack_override_the_document(documents: Path) -> None:
    switches = '{"shop": {"adopt": true, "ifIncomplete": "true", "timeout": "5s", "lifecycle": "released"}}'
    [document] = settings(documents, setup=switches).documents
    application = document.application
    assert (application.setup.adopt, application.setup.if_incomplete) == (True, True)
    assert application.setup.timeout_ms == 5_000
    assert application.lifecycle is Lifecycle.RELEASED


def test_switches_of_a_stack_are_named_with_the_command_that_removes_them(documents: Path) -> None:
    [document] = settings(documents, setup='{"shop": {"reinitialize": true, "timeout": "5s"}}').documents
    in_stack = document.application.setup.in_stack
    assert in_stack.keys() == {"reinitialize"}
    switch = in_stack["reinitialize"]
    assert switch.label == "headwater:setup.shop.reinitialize"
    assert switch.removal == "Run `pulumi config rm --stack prod --path 'headwater:setup.shop.reinitialize'`."


def test_an_id_with_dots_is_quoted_in_the_command_that_removes_a_switch(documents: Path) -> None:
    file = documents / "shop.yaml"
    file.write_text(file.read_text().replace("id: shop", "id: eu.shop"))
    [document] = settings(documents, setup='{"eu.shop": {"reinitialize": true}}').documents
    [switch] = document.application.setup.in_stack.values()
    assert (
        switch.removal
        == """Run `pulumi config rm --stack prod --path 'headwater:setup["eu.shop"].reinitialize'`."""
    )


def test_principals_of_the_stack_override_the_document(documents: Path) -> None:
    def principals(switch: str) -> tuple[str, ...] | None:
        read = settings(documents, setup=f'{{"shop": {switch}}}')
        assert not errors(read.problems)
        acls = read.documents[0].application.acls
        return acls.principals if acls else None

    assert principals("{}") is None
    assert principals('{"principals": ["User:shop-staging"]}') == ("User:shop-staging",)
    (documents / "shop.yaml").write_text(
        (documents / "shop.yaml").read_text() + "\nacls: {principals: ['User:shop']}\n"
    )
    assert principals("{}") == ("User:shop",)
    assert principals('{"principals": ["User:shop-staging"]}') == ("User:shop-staging",)
    assert principals('{"principals": []}') is None


def test_a_secret_in_plain_text_is_a_warning(documents: Path) -> None:
    values = {"saslMechanism": "PLAIN", "saslUsername": "me", "saslPassword": "secret"}
    [problem] = settings(documents, **values).problems
    assert problem.severity is Severity.WARNING
    assert "pulumi config set --secret headwater:saslPassword" in problem.fix
    assert "secret" not in (problem.found, problem.summary)


def test_an_empty_folder_is_a_stack_without_applications(tmp_path: Path) -> None:
    [problem] = settings(tmp_path).problems
    assert problem.severity is Severity.WARNING
    assert settings(tmp_path).policy.are_documents_complete


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    read = settings(tmp_path / "nowhere")
    assert errors(read.problems)
    assert not read.policy.are_documents_complete
