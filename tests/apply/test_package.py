"""The Pulumi package: its schema, and settings that programs pass as inputs."""

import asyncio
from contextlib import closing
from pathlib import Path

import pulumi
import pytest
from pulumi.errors import InputPropertiesError
from pulumi.runtime.rpc import UNKNOWN

from headwater.model.problems import Problem, Severity, errors
from headwater.model.records import SetupRecord
from headwater.pulumi import package
from headwater.pulumi.package import INPUTS, TOKEN, PackageProvider, input_text, package_schema
from headwater.pulumi.settings import SETTINGS, StackSettings, stack_settings
from headwater.pulumi.stack_config import ResourceInputs
from headwater.pulumi.stack_state import StackState

_DOCUMENT = "application: {id: shop}\ntopology: [{stream: {topic: orders}}, {to: {topic: out}}]\n"


@pytest.fixture
def documents(tmp_path: Path) -> str:
    (tmp_path / "shop.yaml").write_text(_DOCUMENT)
    return str(tmp_path)


def _settings(documents: str, stack: dict[str, str], **inputs: object) -> StackSettings:
    texts = {key: input_text(value) for key, value in inputs.items()}
    values = {"documents": documents, "bootstrapServers": "stack:9092", **stack}
    return stack_settings(
        values, environment={}, file="Pulumi.prod.yaml", inputs=ResourceInputs("topics", texts)
    )


def _only(problems: tuple[Problem, ...]) -> Problem:
    [problem] = problems
    return problem


def test_the_schema_has_all_settings_of_a_stack() -> None:
    assert INPUTS.keys() == set(SETTINGS)
    component = package_schema()["resources"][TOKEN]
    assert component["isComponent"] is True
    secrets = {key for key, input_ in component["inputProperties"].items() if input_.get("secret")}
    assert secrets == {"saslPassword", "clientKey", "clientKeyPassphrase"}


def test_inputs_replace_settings_of_the_stack(documents: str) -> None:
    read = _settings(documents, {"maxNewTopics": "3"}, bootstrapServers=["a:1", "b:2"], maxNewTopics=7.0)
    assert read.problems == ()
    assert read.connection is not None
    assert read.connection.bootstrap_servers == ("a:1", "b:2")
    assert [policy.key for policy in read.policy.policies] == ["maxNewTopics"]
    assert [str(policy.rule) for policy in read.policy.policies] == [
        str(policy.rule) for policy in _settings(documents, {"maxNewTopics": "7"}).policy.policies
    ]


def test_structured_inputs_are_read_as_the_stack_has_them(documents: str) -> None:
    read = _settings(documents, {}, setup={"shop": {"adopt": True, "timeout": "9s"}}, skipTlsVerify=False)
    assert read.problems == ()
    assert read.documents[0].application.setup.adopt
    assert read.documents[0].application.setup.timeout_ms == 9_000


def test_problems_of_inputs_name_the_resource(documents: str) -> None:
    problem = _only(_settings(documents, {}, maxNewTopics=-1).problems)
    assert problem.summary == "maxNewTopics is not a whole number, 0 or more."
    assert problem.fix == "Correct maxNewTopics."
    assert problem.location is not None
    assert (problem.location.file, problem.location.pointer) == (
        "resource topics",
        "/properties/maxNewTopics",
    )


def test_problems_of_other_settings_name_the_stack(documents: str) -> None:
    problem = _only(_settings(documents, {"maxNewTopics": "-1"}, clusterId="abc").problems)
    assert problem.summary == "headwater:maxNewTopics is not a whole number, 0 or more."
    assert problem.location is not None
    assert problem.location.file == "Pulumi.prod.yaml"


def test_a_nested_problem_of_an_input_names_its_path(documents: str) -> None:
    problem = _only(_settings(documents, {}, setup={"shop": {"adopted": True}}).problems)
    assert problem.summary == "setup.shop.adopted is not a setup option. Did you mean adopt?"
    assert problem.location is not None
    assert problem.location.pointer == "/properties/setup/shop/adopted"


def test_a_wrong_connection_names_the_input(documents: str) -> None:
    [problem] = errors(_settings(documents, {}, tlsEnabled="perhaps").problems)
    text = f"{problem.summary} {problem.fix}"
    assert "tlsEnabled" in text
    assert "headwater:tlsEnabled" not in text


def test_a_secret_that_is_passed_in_plain_text_is_a_warning(documents: str) -> None:
    inputs = {"saslUsername": "me", "saslPassword": "blue-heron", "securityProtocol": "SASL_SSL"}
    problem = _only(_settings(documents, {}, **inputs).problems)
    assert problem.severity is Severity.WARNING
    assert problem.summary == "saslPassword is a secret, but resource topics contains it in plain text."
    assert "pulumi.secret" in problem.fix
    passed = ResourceInputs("topics", inputs, secrets=("saslPassword",))
    values = {"documents": documents, "bootstrapServers": "b:9092"}
    assert stack_settings(values, environment={}, inputs=passed).problems == ()


def test_a_switch_of_an_input_is_removed_from_the_inputs(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text("application: {id: shop}\ntopology:\n  - stream: {topic: orders}\n")
    passed = ResourceInputs("topics", {"setup": '{"shop": {"reinitialize": true}}'})
    values = {"documents": str(tmp_path), "bootstrapServers": "b:9092"}
    [document] = stack_settings(values, environment={}, inputs=passed).documents
    switch = document.application.setup.in_stack["reinitialize"]
    assert switch.removal == "Remove `setup.shop.reinitialize` from the inputs of the resource."
    assert switch.at.file == "resource topics"


def test_other_types_are_refused() -> None:
    with pytest.raises(InputPropertiesError, match="no component headwater:index:Topics"):
        PackageProvider().construct("topics", "headwater:index:Topics", {})


async def _unknown() -> pulumi.Output[str]:
    is_known: asyncio.Future[bool] = asyncio.Future()
    is_known.set_result(False)
    value: asyncio.Future[str] = asyncio.Future()
    value.set_result("")
    return pulumi.Output(set(), value, is_known)


def _deploy_with_unknown_servers(
    state: StackState, monkeypatch: pytest.MonkeyPatch
) -> tuple[object, list[str]]:
    """Return the result for a stack with this state, and the warnings."""
    warnings: list[str] = []

    async def read() -> StackState:
        return state

    async def run() -> object:
        return await package._deploy_inputs(
            "topics", {"documents": "a", "bootstrapServers": await _unknown()}
        )

    monkeypatch.setattr(package, "read_stack_state", read)
    monkeypatch.setattr(pulumi.log, "warn", warnings.append)
    loop = asyncio.new_event_loop()  # `asyncio.run` removes the loop that other tests use
    with closing(loop):
        return loop.run_until_complete(run()), warnings


def test_an_unknown_input_plans_nothing_in_a_new_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    result, [warning] = _deploy_with_unknown_servers(StackState(), monkeypatch)
    assert result == UNKNOWN
    assert "bootstrapServers will be known after other resources are created" in warning


def test_an_unknown_input_is_refused_in_a_stack_with_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would be registered, and the engine would advise to remove the protection of each topic."""
    state = StackState(records={"shop": SetupRecord("shop", {})})
    with pytest.raises(InputPropertiesError) as raised:
        _deploy_with_unknown_servers(state, monkeypatch)
    text = raised.value.message
    assert "bootstrapServers will be known after" in text
    assert "pulumi config set headwater:bootstrapServers" in text
    assert "pulumi up --skip-preview" in text
