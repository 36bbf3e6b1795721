"""The settings in the file of a stack, and the copy of its setup records, without Pulumi."""

import json
from pathlib import Path
from typing import Any

import pytest
from click import ClickException

from headwater.cli import stack
from headwater.cli.stack import parse_state, read_config_file, setup_records, stack_name
from headwater.cli.stack_context import StackOptions, _choose_connection, calls_run_program
from headwater.kafka.command_line import NamedCluster
from headwater.model.problems import ProblemsError
from headwater.pulumi.stack_config import StackConfig
from headwater.pulumi.stack_state import StackState

_SIGNATURE = "4dabf18193072939515e22adb298388d"
_CIPHERTEXT = {_SIGNATURE: "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:quail"}
_URN = "urn:pulumi:test::shop::headwater:kafka:InternalTopics"


def _stack(folder: Path, text: str, project: str = "name: shop\n") -> Path:
    (folder / "Pulumi.yaml").write_text(project)
    (folder / "Pulumi.test.yaml").write_text(text)
    return folder


def test_settings_are_read_without_pulumi_and_without_secrets(tmp_path: Path) -> None:
    folder = _stack(
        tmp_path,
        "encryptionsalt: v1:abc\nconfig:\n  headwater:maxNewTopics: 7\n  headwater:documents: [a, b]\n"
        "  headwater:setup: {app: {adopt: true}}\n  headwater:saslPassword: {secure: v1:quail}\n"
        "  other:key: 1\n",
        "name: shop\nconfig:\n  headwater:clusterId: {value: c}\n  headwater:maxNewTopics: {default: 9}\n"
        "  headwater:ownership: none\n",
    )
    config = read_config_file("organization/shop/test", folder)
    assert config.count("maxNewTopics") == 7
    assert config.texts("documents") == ("a", "b")
    assert config.mapping("setup") == {"app": {"adopt": True}}
    assert (config.text("clusterId"), config.text("ownership")) == ("c", "none")
    assert config.text("saslPassword") == ""
    assert not config.problems
    assert stack_name("organization/shop/test", folder) == "shop/test"


@pytest.mark.parametrize(
    "text",
    [
        "config: &a [*a]",
        "config: !!python/object/apply:os.system [touch stolen]",
        "config: {headwater:documents: " + "[" * 100_000,
        "config: " + "x" * (6 << 20),
        "\x00",
    ],
)
def test_hostile_files_are_problems(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProblemsError):
        read_config_file("test", _stack(tmp_path, text))
    assert not (tmp_path / "stolen").exists()


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/self/mem", "none"])
def test_links_to_devices_are_problems(target: str, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.test.yaml").symlink_to(target)
    with pytest.raises(ProblemsError):
        read_config_file("test", tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "config: 1", "config: {headwater:setup: }", "config:"])
def test_files_without_settings_are_accepted(text: str, tmp_path: Path) -> None:
    assert read_config_file("test", _stack(tmp_path, text)).mapping("setup") == {}


def _exported(resources: list[dict[str, Any]]) -> str:
    return json.dumps(
        {
            "version": 3,
            "deployment": {
                "manifest": {"time": "now"},
                "secrets_providers": {"type": "passphrase", "state": {"salt": "quail"}},
                "resources": resources,
            },
        }
    )


def test_records_contain_only_what_a_plan_needs() -> None:
    record = {
        "topics": {"a-changelog": {"id": "x", "partitions": 4, "sink": False}},
        "initialProcessors": 4,
        "clusterId": "c",
        "stackId": "s",
    }
    text = _exported(
        [
            {"urn": "urn:pulumi:test::shop::pulumi:pulumi:Stack::shop-test", "type": "pulumi:pulumi:Stack"},
            {
                "urn": "urn:pulumi:test::shop::pulumi:providers:kafka::kafka",
                "type": "pulumi:providers:kafka",
                "inputs": {"saslPassword": _CIPHERTEXT, "saslUsername": "quail"},
                "outputs": {"saslPassword": "quail"},
            },
            {
                "urn": f"{_URN}::app",
                "type": "headwater:kafka:InternalTopics",
                "sourcePosition": "project:///home/quail/__main__.py#1",
                "inputs": {"applicationId": "quail"},
                "outputs": {
                    **record,
                    "more": "quail",
                    "origins": {"b": _CIPHERTEXT},
                    "retired": [_CIPHERTEXT],
                },
            },
            {
                "urn": f"{_URN}$kafka:index/topic:Topic::a-changelog",
                "type": "kafka:index/topic:Topic",
                "outputs": {"partitions": 4, "config": {"cleanup.policy": "compact"}, "__meta": "quail"},
            },
        ]
    )
    copy = json.dumps(setup_records(text, "the state"))
    assert "quail" not in copy
    assert "salt" not in copy
    original, copied = parse_state(text, "the state"), parse_state(copy, "the copy")
    assert copied.topics == original.topics
    assert copied.stack_id == original.stack_id == "s"
    assert copied.records["app"].topics == original.records["app"].topics
    assert copied.name == "shop/test"


def test_records_show_which_resources_of_others_pulumi_deletes() -> None:
    strimzi, topic = "kubernetes:kafka.strimzi.io/v1:KafkaTopic", "kafka:index/topic:Topic"
    resources = (
        (topic, {"custom": True, "external": True}, {"name": "app-changelog"}),
        (strimzi, {"custom": True}, {"metadata": {"name": "b"}, "spec": {"topicName": "a", "x": "quail"}}),
        ("aws:s3/bucket:Bucket", {"custom": True, "retainOnDelete": False}, {"name": "quail"}),
    )
    text = _exported(
        [
            {"urn": f"urn:pulumi:test::shop::{type_}::it", "type": type_, "outputs": outputs, **properties}
            for type_, properties, outputs in resources
        ]
    )
    copy = json.dumps(setup_records(text, "the state"))
    assert "quail" not in copy
    original = parse_state(text, "the state").others
    assert parse_state(copy, "the copy").others == original
    assert [(other.topic, other.is_deleted) for other in original] == [
        ("app-changelog", False),
        ("a", True),
        (None, True),
    ]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"deployment": {"resources": [1]}}', "[" * 100_000])
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(ClickException, match="is not an exported stack state"):
        setup_records(text, "the state")


def test_a_stack_without_resources_has_no_records() -> None:
    copy = setup_records('{"deployment": null}', "the state")
    assert parse_state(json.dumps(copy), "the copy") == StackState()


def test_the_connection_of_a_stack_precedes_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As for `pulumi preview`. An option precedes both; with a file of records, the stack is not asked."""
    asked = []

    def config_of(name: str, project: Path, *, with_secrets: bool) -> StackConfig:
        asked.append((name, project, with_secrets))
        return StackConfig({"bootstrapServers": "stack:9092"}, secrets=(), file="Pulumi.test.yaml")

    monkeypatch.setattr(stack, "read_config", config_of)
    monkeypatch.setenv("HEADWATER_BOOTSTRAP_SERVERS", "environment:9092")
    named = StackOptions(name="test")
    assert _choose_connection(NamedCluster(), named).bootstrap_servers == ("stack:9092",)
    assert asked == [("test", Path(), True)]
    assert _choose_connection(NamedCluster("option:9092"), named).bootstrap_servers == ("option:9092",)
    for options in (StackOptions(name="test", state=Path("records.json")), StackOptions()):
        assert _choose_connection(NamedCluster(), options).bootstrap_servers == ("environment:9092",)
    assert len(asked) == 1


RUN = "import pulumi\nfrom headwater.pulumi import run_program\npulumi.run(run_program)\n"


@pytest.mark.parametrize(
    ("program", "is_only_program"),
    [
        (RUN, True),
        (
            RUN.replace("import run_program", "import run_program as main").replace(
                "run(run_program", "run(main"
            ),
            True,
        ),
        ("import pulumi\nimport headwater.pulumi as hw\npulumi.run(hw.run_program)\n", True),
        ("from headwater.pulumi.program import run_program\nasync def main(): await run_program()\n", True),
        ("# Not run_program: this program declares topics.\nfrom headwater.pulumi import deploy\n", False),
        ('"""Calls `run_program`."""\nfrom headwater.pulumi import deploy\n', False),
        ("from headwater.pulumi import run_program\n", False),
        ("from headwater.command_line import run_program\nrun_program(None)\n", False),
        ("def run_program(): ...\nrun_program()\n", False),
        ("from headwater.pulumi import run_program\nrun_program(\n", False),
        ("", False),
    ],
)
def test_a_program_that_uses_run_program_declares_nothing_else(
    tmp_path: Path, program: str, *, is_only_program: bool
) -> None:
    (tmp_path / "__main__.py").write_text(program)
    assert calls_run_program(tmp_path) is is_only_program


@pytest.mark.parametrize("main", ["program", "program/", "program/__main__.py"])
def test_the_project_file_names_the_folder_of_the_program(tmp_path: Path, main: str) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__main__.py").write_text(RUN)
    (tmp_path / "Pulumi.yaml").write_text(f"name: shop\nruntime: python\nmain: {main}\n")
    assert calls_run_program(tmp_path)


def test_a_project_without_a_program_calls_nothing(tmp_path: Path) -> None:
    assert not calls_run_program(tmp_path)
