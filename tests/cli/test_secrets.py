"""No output, report, log or state of any command contains a secret, for all sources of secrets."""

import base64
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path

import attrs
import click
import pytest

from headwater.cli.console import ExitCode
from headwater.cli.main import _COMMANDS
from headwater.spec import load_text
from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker, SaslUser, Settings
from headwater_spark.commands.java_partitioners import java_partitioners
from headwater_spark.driver.reshard.input_problems import partitioner_failed
from headwater_spark.engine.partitioners.hashing import PartitionerError
from tests.preloaded import headwater
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import Deployment, make_deployment
from tests.runtime.reshard.java_classes import compiled_code

pytestmark = [pytest.mark.pulumi, pytest.mark.slow, pytest.mark.timeout(600)]

BY_ENVIRONMENT = SaslUser("by-environment", "quail-8f1c-environment")
BY_FILE = SaslUser("by-file", "quail-2b7e-file")
BY_STACK = SaslUser("by-stack", "quail-94d0-stack")
TOKEN = "quail-6a35-token"
MISTYPED = "-mistyped"
_SECRET = re.compile("quail", re.IGNORECASE)
_CORE = b"quail-"
# The part of the base64 text that does not depend on its neighbors, at each of the three offsets.
_ENCODED = [
    base64.b64encode(bytes(offset) + _CORE)[-(-offset * 8 // 6) : (offset + len(_CORE)) * 8 // 6]
    for offset in range(3)
]
_DESCRIBED = """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [{source}])
      --> none

"""
_AT_ONCE = 4
"""Commands that run at the same time: most wait for an answer that does not come."""
_FAILING = {"plan", "doctor", "reshard"}
"""The commands that are also refused and without a broker, without `every_format`: all write one problem."""
_ELSEWHERE = {"local", "demo", "run"}
"""The first two start a broker without authentication; the last one runs until it is stopped."""


@attrs.define
class Outputs:
    """All texts that a user can read, by their origin."""

    texts: dict[str, bytes] = attrs.field(factory=dict)
    _numbers: Iterator[int] = attrs.field(factory=count)

    def run(self, environment: Mapping[str, str], *arguments: str, folder: Path) -> int:
        done = subprocess.run(
            [headwater(), *arguments],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        self.texts[f"{next(self._numbers)}: headwater {' '.join(arguments)}"] = done.stdout
        return done.returncode

    def files(self, folder: Path) -> None:
        for file in folder.rglob("*"):
            if file.is_file() and not file.is_symlink():
                self.texts[str(file)] = file.read_bytes()

    def assert_no_secret(self) -> None:
        assert len(self.texts) > 20
        for where, text in self.texts.items():
            shown = _SECRET.search(text.decode(errors="replace"))
            assert shown is None, f"{where}\n{text.decode(errors='replace')}"
            assert not any(encoded in text for encoded in _ENCODED), where


@pytest.fixture(scope="module")
def secured(own_broker: Callable[..., Broker]) -> Iterator[Broker]:
    with own_broker(Settings(sasl_users=(BY_ENVIRONMENT, BY_FILE, BY_STACK))) as broker:
        yield broker


@pytest.fixture
def deployment(
    tmp_path: Path, pulumi_toolchain: PulumiToolchain, secured: Broker, unique: Callable[[str], str]
) -> Deployment:
    deployment = make_deployment(
        tmp_path / "stack", pulumi_toolchain, Cluster(secured.bootstrap_servers), unique
    )
    deployment.declare()
    (deployment.stack.folder / "app.txt").write_text(_DESCRIBED.format(source=deployment.source))
    return deployment


def _environment(broker: Broker, password: str = BY_ENVIRONMENT.password, server: str = "") -> dict[str, str]:
    return {
        "HEADWATER_BOOTSTRAP_SERVERS": server or broker.address("SASL_PLAINTEXT"),
        "HEADWATER_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "HEADWATER_SASL_MECHANISM": "SCRAM-SHA-512",
        "HEADWATER_SASL_USERNAME": BY_ENVIRONMENT.name,
        "HEADWATER_SASL_PASSWORD": password,
        "HEADWATER_DEBUG": "1",
    }


def _properties(broker: Broker, password: str = BY_FILE.password, server: str = "") -> str:
    return (
        f"bootstrap.servers={server or broker.address('SASL_PLAINTEXT')}\n"
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{BY_FILE.name}" password="{password}";\n'
    )


def _on_cluster(command: str, id_: str) -> list[list[str]]:
    """Return the command lines that connect, one for each format; `id_` is the declared application."""
    option = {option.name: option for option in _loaded(command).params}.get("form")
    formats = option.type.choices if option is not None and isinstance(option.type, click.Choice) else ()
    base = {
        "plan": ["plan", "documents"],
        "drift": ["drift", "documents"],
        "compile": ["compile", "documents"],
        "acls": ["acls", "documents", "--self"],
        "import": ["import", "--describe", "app.txt", "--application-id", "imported"],
        "doctor": ["doctor"],
        "upgrade": ["upgrade", "documents", "--to", "4.1"],
        "change": ["change", "documents", "documents"],
        "status": ["status", "--group", id_],
        "reshard": ["reshard", f"documents/{id_}.yaml", "--check"],
    }[command]
    return [[*base, "--format", str(form)] for form in formats] or [base]


def _loaded(command: str) -> click.Command:
    lazy = _COMMANDS[command]
    loaded = getattr(import_module(lazy.module), lazy.attribute)
    assert isinstance(loaded, click.Command)
    return loaded


def _connecting() -> list[str]:
    return [
        name
        for name in _COMMANDS
        if name not in _ELSEWHERE and any(option.name == "command_config" for option in _loaded(name).params)
    ]


@pytest.mark.parametrize("every_format", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_secrets_from_environment_and_file(
    deployment: Deployment,
    secured: Broker,
    every_format: bool,  # noqa: FBT001 - parameter of a test
) -> None:
    """With `every_format`, each format of each command is written with the secrets of both sources.

    Without, a format has the secrets of one source, and only some commands are refused and without a broker.
    """
    outputs, folder = Outputs(), deployment.stack.folder
    deployment.cluster.create(deployment.repartition, 9)
    file = folder / "client.properties"
    nowhere = "127.0.0.1:1"
    given = {
        "right": (BY_ENVIRONMENT.password, BY_FILE.password, ""),
        "refused": (BY_ENVIRONMENT.password + MISTYPED, BY_FILE.password + MISTYPED, ""),
        "unreachable": (BY_ENVIRONMENT.password, BY_FILE.password, nowhere),
    }
    codes: dict[str, set[int]] = {}
    run = partial(outputs.run, folder=folder)
    for case, (by_environment, by_file, server) in given.items():
        file.write_text(_properties(secured, by_file, server))
        own = _environment(secured, by_environment, server)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            done: list[Future[int]] = []
            for position, command in enumerate(_connecting()):
                if case != "right" and not every_format and command not in _FAILING:
                    continue
                lines = _on_cluster(command, deployment.id)
                for number, line in enumerate(lines if case == "right" else lines[:1]):
                    both = every_format or case == "refused" or (len(lines) == 1 and case == "right")
                    source = number if case == "right" else position
                    # With a server on the command line, the other settings are read from the environment.
                    server_option = ("--bootstrap-server", own["HEADWATER_BOOTSTRAP_SERVERS"])
                    if both or source % 2 == 0:
                        done.append(pool.submit(run, own, *line, *server_option))
                    if both or source % 2 == 1:
                        done.append(pool.submit(run, {}, *line, "--command-config", str(file)))
        codes[case] = {each.result() for each in done}
    file.unlink()
    outputs.files(folder / "documents")
    outputs.assert_no_secret()
    assert ExitCode.BUG not in set().union(*codes.values())
    assert ExitCode.DRIFT in codes["right"]
    assert ExitCode.PROBLEMS in codes["refused"] & codes["unreachable"]


def test_invalid_secrets(deployment: Deployment, secured: Broker) -> None:
    """The error names an invalid setting without its value; a path is not a secret."""
    for setting, value in (
        ("HEADWATER_CLIENT_KEY", "-----BEGIN PRIVATE KEY-----\nquail\n-----END PRIVATE KEY-----\n"),
        ("HEADWATER_CLIENT_KEY", "quail.pem"),
        ("HEADWATER_CA_CERT", "-----BEGIN CERTIFICATE-----\nquail\n-----END CERTIFICATE-----\n"),
        ("HEADWATER_SASL_PASSWORD", "quail\nquail"),
    ):
        environment = {**_environment(secured), "HEADWATER_SECURITY_PROTOCOL": "SASL_SSL", setting: value}
        outputs = Outputs({str(number): b"" for number in range(20)})
        code = outputs.run(environment, "drift", "documents", folder=deployment.stack.folder)
        assert code == ExitCode.PROBLEMS, (setting, value)
        if not value.endswith(".pem"):
            outputs.assert_no_secret()


def test_forge_tokens(deployment: Deployment) -> None:
    outputs, folder = Outputs({str(number): b"" for number in range(20)}), deployment.stack.folder
    (folder / "drift.md").write_text("drift\n")
    for api in ("http://127.0.0.1:1", "http://example.com", "https://127.0.0.1:1"):
        environment = {"GITHUB_API_URL": api, "GITHUB_REPOSITORY": "acme/shop", "GITHUB_TOKEN": TOKEN}
        environment["HEADWATER_DEBUG"] = "1"
        code = outputs.run(environment, "publish", "drift.md", "--issue", "Drift", folder=folder)
        assert code == ExitCode.PROBLEMS
    outputs.assert_no_secret()


def test_secrets_from_stack(deployment: Deployment, secured: Broker) -> None:
    outputs, stack = Outputs(), deployment.stack
    stack.configure(
        {
            "bootstrapServers": secured.address("SASL_PLAINTEXT"),
            "securityProtocol": "SASL_PLAINTEXT",
            "saslMechanism": "SCRAM-SHA-512",
            "saslUsername": BY_STACK.name,
        }
    )

    def run(*arguments: str, succeeds: bool) -> None:
        outcome = stack.run(*arguments)
        assert outcome.succeeded is succeeds, str(outcome)
        outputs.texts[f"{len(outputs.texts)}: pulumi {' '.join(arguments)}"] = outcome.text.encode()

    up = ("up", "--yes", "--skip-preview")
    stack.set_secret("saslPassword", BY_STACK.password + MISTYPED)
    run("preview", "--json", succeeds=False)
    run(*up, succeeds=False)
    stack.set_secret("saslPassword", BY_STACK.password)
    preview = stack.folder / "preview.json"
    preview.write_text(stack.succeed("preview", "--json"))
    for with_changes in (("preview",), up):  # without `--diff`, they print a part of it
        run(*with_changes, "--diff", succeeds=True)
    for arguments in (("stack", "export"), ("stack", "output", "--json"), ("config", "--json")):
        run(*arguments, succeeds=True)
    run("refresh", "--preview-only", "--diff", succeeds=True)
    own = {**stack._environment(), **_environment(secured)}
    for form in ("json", "html"):  # all formats: `test_secrets_from_environment_and_file`
        options = ("--stack", "test", "--format", form, "--output", f"drift.{form}")
        assert outputs.run(own, "drift", "documents", *options, folder=stack.folder) == ExitCode.DONE
    outputs.run(own, "plan", "documents", "--stack", "test", folder=stack.folder)
    outputs.run(own, "plan-comment", str(preview), "--drift", "drift.json", folder=stack.folder)
    stack.configure({"bootstrapServers": "127.0.0.1:1"})
    run("preview", "--json", succeeds=False)
    outputs.files(stack.folder)
    outputs.assert_no_secret()


def test_a_partitioner_that_fails_does_not_show_the_properties_of_a_reshard(tmp_path: Path) -> None:
    code = compiled_code(tmp_path)
    properties = tmp_path / "app.properties"
    properties.write_text(f"password = {BY_FILE.password}\n")
    text = "{application: {id: shop}, topology: [stream: {topic: orders}, to: {topic: out}]}"
    (document,) = load_text(text, "shop.yaml").documents
    chosen = attrs.evolve(code, properties=properties)
    with (
        java_partitioners({"orders": "com.acme.Broken$NamesConfigs"}, chosen, document) as found,
        pytest.raises(PartitionerError) as raised,
    ):
        found["orders"].of_keys([b"key"], 2)
    problem = partitioner_failed("shop", raised.value.name, raised.value.reason, has_begun=False)
    assert "ConfigException" in problem.summary
    assert _SECRET.search(f"{problem} {raised.value}") is None
