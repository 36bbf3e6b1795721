"""`compile` for Strimzi, Terraform and Jikkou, and what these tools must ignore."""

import json
import re
from pathlib import Path
from typing import Any

import pulumi_kafka
import pytest
import yaml
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from headwater.cli.console import ExitCode
from headwater.cli.main import main

_SCHEMAS = Path(__file__).parent / "schemas"
_DOCUMENT = """\
application: {id: Busy.customers, config: {replication.factor: 3}}
topology:
  - stream: {topic: orders}
  - groupBy: {key: value.customer, name: by-customer}
  - count: {materialized: counts}
  - toStream: {}
  - to: {topic: busy}
topics: {busy: {replicationFactor: 3, config: {retention.ms: 60000}}}
acls: {principals: ["User:busy", "User:CN=busy-tls"], internalTopics: prefixed}
"""
_TOPICS = {"Busy.customers-by-customer-repartition", "Busy.customers-counts-changelog", "busy"}


@pytest.fixture
def document(tmp_path: Path) -> Path:
    file = tmp_path / "busy.yaml"
    file.write_text(_DOCUMENT)
    return file


def compile_for(tool: str, document: Path, *more: str) -> Result:
    options = ("--strimzi-cluster", "main") if tool == "strimzi" else ()
    return CliRunner().invoke(
        main, ["compile", str(document), "--partitions", "orders=4", "--format", tool, *options, *more]
    )


def resources(tool: str, document: Path) -> list[dict[str, Any]]:
    done = compile_for(tool, document)
    assert done.exit_code == ExitCode.DONE, done.output
    return list(yaml.safe_load_all(done.stdout))


def strimzi_validator(kind: str) -> Draft202012Validator:
    """Return the schema of the resource definition, which also refuses unknown keys, as Kubernetes does."""

    def strict(part: Any) -> Any:  # noqa: ANN401 - any part of a schema
        if isinstance(part, list):
            return [strict(each) for each in part]
        if not isinstance(part, dict):
            return part
        closed = {key: strict(value) for key, value in part.items()}
        is_open = "x-kubernetes-preserve-unknown-fields" in part or "additionalProperties" in part
        if isinstance(part.get("properties"), dict) and part.get("type") == "object" and not is_open:
            closed["additionalProperties"] = False
        return closed

    definition = yaml.safe_load((_SCHEMAS / f"strimzi-{kind}.yaml").read_text())
    (version,) = definition["spec"]["versions"]
    assert version["name"] == "v1"
    return Draft202012Validator(strict(version["schema"]["openAPIV3Schema"]))


def test_strimzi_resources_fit_the_published_definitions(document: Path) -> None:
    found = resources("strimzi", document)
    for resource in found:
        problems = list(strimzi_validator(resource["kind"].lower()).iter_errors(resource))
        assert not problems, problems
    topics = [each for each in found if each["kind"] == "KafkaTopic"]
    assert {each["spec"].get("topicName", each["metadata"]["name"]) for each in topics} == _TOPICS
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", each["metadata"]["name"]) for each in found)
    assert {each["metadata"]["labels"]["strimzi.io/cluster"] for each in found} == {"main"}
    users = {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "KafkaUser"}
    assert users.keys() == {"busy", "busy-tls"}
    assert users["busy-tls"]["authentication"] == {"type": "tls-external"}
    assert {
        "resource": {"type": "group", "name": "Busy.customers", "patternType": "literal"},
        "operations": ["Read"],
        "host": "*",
    } in users["busy"]["authorization"]["acls"]


def test_a_wrong_strimzi_resource_does_not_fit() -> None:
    topic = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaTopic", "metadata": {}, "spec": {"count": 1}}
    assert not strimzi_validator("kafkatopic").is_valid(topic)


def test_terraform_resources_have_the_arguments_of_the_provider(document: Path) -> None:
    """The Pulumi provider that Headwater uses is made of the Terraform provider Mongey/kafka.

    It renames two arguments.
    """
    renamed = {"resource_name": "acl_resource_name", "resource_type": "acl_resource_type"}
    done = compile_for("terraform", document)
    assert done.exit_code == ExitCode.DONE, done.output
    found = json.loads(done.stdout)["resource"]
    for kind, arguments in (("kafka_topic", pulumi_kafka.TopicArgs), ("kafka_acl", pulumi_kafka.AclArgs)):
        known = {name for name in vars(arguments) if not name.startswith("_")}
        for label, given in found[kind].items():
            assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", label)
            own = {renamed.get(key, key): value for key, value in given.items() if key != "lifecycle"}
            assert own.keys() <= known
            arguments(**own)
    topics = found["kafka_topic"].values()
    assert {each["name"] for each in topics} == _TOPICS
    assert all(each["lifecycle"] == {"prevent_destroy": True} for each in topics)


def test_terraform_requires_declared_replicas(document: Path) -> None:
    document.write_text(_DOCUMENT.replace(", config: {replication.factor: 3}", ""))
    done = compile_for("terraform", document)
    assert done.exit_code == ExitCode.PROBLEMS
    assert "Declare `replication.factor` in the config of Busy.customers" in done.stderr


def test_jikkou_resources_have_its_names(document: Path) -> None:
    """The names are in its JSON schemas V1KafkaTopic and V1KafkaPrincipalAuthorization."""
    found = resources("jikkou", document)
    assert {each["apiVersion"] for each in found} == {"kafka.jikkou.io/v1"}
    topics = {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "KafkaTopic"}
    assert topics.keys() == _TOPICS
    assert topics["busy"] == {"partitions": 4, "replicas": 3, "configs": {"retention.ms": "60000"}}
    users = {
        each["metadata"]["name"]: each["spec"]["acls"]
        for each in found
        if each["kind"] == "KafkaPrincipalAuthorization"
    }
    assert users.keys() == {"User:busy", "User:CN=busy-tls"}
    for acl in users["User:busy"]:
        assert acl.keys() == {"resource", "type", "operations", "host"}
        assert acl["resource"].keys() == {"type", "pattern", "patternType"}
        assert acl["resource"]["type"] in {"TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID"}
        assert acl["resource"]["patternType"] in {"LITERAL", "PREFIXED"}
        assert set(acl["operations"]) <= {"READ", "WRITE", "DESCRIBE", "DELETE", "DESCRIBE_CONFIGS"}


def test_exclusions_match_all_topics_that_headwater_manages(document: Path) -> None:
    done = compile_for("exclusions", document)
    patterns = [re.compile(line) for line in done.stdout.splitlines()]
    managed = {*_TOPICS, "headwater-ownership", "headwater-agent-default"}
    assert all(any(pattern.match(name) for pattern in patterns) for name in managed)
    assert not any(pattern.match(name) for pattern in patterns for name in ("orders", "Busy-customers-x"))


def test_exclusions_match_topics_of_foreign_key_joins_but_no_other_names(document: Path) -> None:
    done = compile_for("exclusions", document)
    matching = [
        name
        for name in (
            "Busy.customers-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic",
            "Busy.customers-named-subscription-registration-topic",
            "Busy.customers-input-topic",
        )
        if any(re.match(line, name) for line in done.stdout.splitlines())
    ]
    assert len(matching) == 2
    assert "Busy.customers-input-topic" not in matching


@pytest.mark.parametrize("tool", ["strimzi", "terraform", "jikkou", "exclusions"])
def test_nothing_is_written_if_a_topic_might_be_missing(tool: str, document: Path) -> None:
    document.write_text(_DOCUMENT.replace("topic: orders", "topic: unknown-orders"))
    done = compile_for(tool, document)
    assert done.exit_code == ExitCode.PROBLEMS
    assert done.stdout == ""
    assert "MissingSourceTopic" in done.stderr


def test_a_principal_that_strimzi_cannot_name_is_an_error(document: Path) -> None:
    document.write_text(_DOCUMENT.replace("User:busy", "User:Busy_1"))
    done = compile_for("strimzi", document)
    assert done.exit_code == ExitCode.PROBLEMS
    assert "cannot have the principal User:Busy_1" in done.stderr
    assert compile_for("jikkou", document).exit_code == ExitCode.DONE


def test_two_principals_of_one_user_of_strimzi_are_an_error(document: Path) -> None:
    """The second resource would replace the ACLs of the first one."""
    document.write_text(_DOCUMENT.replace("User:CN=busy-tls", "User:CN=busy"))
    done = compile_for("strimzi", document)
    assert done.exit_code == ExitCode.PROBLEMS
    assert done.stdout == ""
    assert "KafkaUser busy cannot have User:CN=busy and another principal" in done.stderr


def test_a_name_that_no_kafka_resource_can_have_is_an_error(document: Path) -> None:
    done = compile_for("strimzi", document, "--strimzi-cluster", "My cluster")
    assert done.exit_code == ExitCode.PROBLEMS
    assert "'My cluster' cannot be the name of a Kafka resource" in done.stderr


def test_the_cluster_is_named_for_strimzi_only(document: Path) -> None:
    arguments = ["compile", str(document), "--format", "strimzi"]
    assert CliRunner().invoke(main, arguments).exit_code == ExitCode.USAGE
    assert compile_for("jikkou", document, "--strimzi-cluster", "main").exit_code == ExitCode.USAGE


def test_documents_are_imported_from_strimzi_resources(document: Path, tmp_path: Path) -> None:
    """The topics of an export are recognized again, with their counts and sources."""
    listed = tmp_path / "all.yaml"
    orders = {"metadata": {"name": "orders"}, "spec": {"partitions": 4, "config": {}}}
    items = [
        *resources("strimzi", document),
        {"apiVersion": "kafka.strimzi.io/v1beta2", "kind": "KafkaTopic", **orders},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}},
    ]
    listed.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    done = CliRunner().invoke(
        main, ["import", "--all", "--strimzi", str(listed), "-o", str(tmp_path / "out")]
    )
    assert done.exit_code == ExitCode.DONE, done.output
    assert "Found 1 application with 2 internal topics." in done.output
    written = yaml.safe_load((tmp_path / "out" / "Busy.customers.yaml").read_text())
    assert {name: each["partitions"] for name, each in written["observed"]["topics"].items()} == {
        "by-customer-repartition": 4,
        "counts-changelog": 4,
    }
    assert written["observed"]["sources"] == {"orders": 4}
    compiled = CliRunner().invoke(main, ["compile", str(tmp_path / "out"), "--partitions", "orders=4"])
    assert compiled.exit_code == ExitCode.DONE, compiled.output


def test_users_of_one_group_and_the_older_form_of_their_rules_are_read(tmp_path: Path) -> None:
    """Rules of `kafka.strimzi.io/v1beta2` may have one `operation`."""
    file = tmp_path / "all.yaml"

    def user(name: str, topic: str, **operations: Any) -> dict[str, Any]:  # noqa: ANN401 - of either form
        acls = [
            {"resource": {"type": kind, "name": each}, **operations}
            for kind, each in (("group", "app"), ("topic", topic))
        ]
        spec = {"authorization": {"type": "simple", "acls": acls}}
        return {"kind": "KafkaUser", "metadata": {"name": name}, "spec": spec}

    settings = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
    topics = [
        {"kind": "KafkaTopic", "metadata": {"name": name}, "spec": {"partitions": 2, "config": settings}}
        for name in ("orders", "customers", "app-counts-changelog")
    ]
    items = [user("a", "orders", operation="Read"), user("b", "customers", operations=["Read"]), *topics]
    versioned = [{"apiVersion": "kafka.strimzi.io/v1beta2", **item} for item in items]
    file.write_text(json.dumps({"kind": "List", "items": versioned}))
    done = CliRunner().invoke(main, ["import", "--all", "--strimzi", str(file)])
    assert done.exit_code == ExitCode.DONE, done.output
    assert yaml.safe_load(done.stdout)["observed"]["sources"] == {"customers": 2, "orders": 2}
    assert "# app as declared in Strimzi's resources" in done.stdout
    assert "group" not in done.stdout


def test_files_without_strimzi_topics_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("kind: ConfigMap\n")
    done = CliRunner().invoke(main, ["import", "--all", "--strimzi", str(tmp_path)])
    assert done.exit_code == ExitCode.PROBLEMS
    assert "The files have no KafkaTopic of Strimzi" in done.stderr


def test_a_strimzi_topic_without_a_count_is_left_out_with_a_warning(tmp_path: Path) -> None:
    """Strimzi allows it: the brokers have a default, and topics that exist keep their count."""

    def topic(name: str, **spec: object) -> dict[str, object]:
        settings = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
        metadata = {"apiVersion": "kafka.strimzi.io/v1", "metadata": {"name": name}}
        return {"kind": "KafkaTopic", **metadata, "spec": {"config": settings, **spec}}

    file = tmp_path / "topics.yaml"
    items = [topic("a-b-changelog", partitions=3), topic("a-c-changelog"), topic("orders")]
    file.write_text(json.dumps({"kind": "List", "items": items}))
    command = ["import", "--all", "--strimzi", str(file), "--application-id", "a"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == ExitCode.DONE, done.output
    observed = yaml.safe_load(done.stdout)["observed"]
    assert observed["topics"] == {"b-changelog": {"kind": "changelog", "partitions": 3}}
    for name in ("a-c-changelog", "orders"):
        assert f"KafkaTopic {name} has no partition count." in done.stderr
        assert name not in done.stdout
