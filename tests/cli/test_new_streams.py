"""`headwater new --streams`: the application is built with Maven, and the commands of its README run it."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # exported implicitly

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.cli.new.project import KAFKA_STREAMS
from headwater.compiler import compile_document
from headwater.model.versions import SUPPORTED
from headwater.spec import load_text
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from headwater.toolchain.streams_jar import JAR
from tests.quick_java import QUICK_PROGRAM

_TEMPLATE = Path(__file__).parents[2] / "infra/headwater/cli/new/files/streams/orders.yaml"
_QUICK = {"JDK_JAVA_OPTIONS": " ".join(QUICK_PROGRAM)}
_INTERNAL = ["orders-by-customer-repartition", "orders-counts-changelog"]


def new(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["new", str(folder), "--streams", *options])


@pytest.mark.parametrize(
    ("forge", "workflow"), [("github", ".github/workflows/application.yml"), ("gitlab", ".gitlab-ci.yml")]
)
@pytest.mark.oracle  # builds the jar
def test_the_files_of_an_application(tmp_path: Path, forge: str, workflow: str) -> None:
    done = new(tmp_path / "orders-app", "--ci", forge)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "orders-app" / workflow).is_file()
    readme = (tmp_path / "orders-app" / "README.md").read_text(encoding="utf-8")
    assert f"| `{workflow}` |" in readme
    assert not [word for word in ("PROJECT_NAME", "LIBRARY_", "_VERSION", "WORKFLOW_") if word in readme]


@pytest.mark.oracle
def test_without_a_workflow_the_readme_names_none(tmp_path: Path) -> None:
    assert new(tmp_path / "orders-app", "--ci", "none").exit_code == 0
    assert "WORKFLOW" not in (tmp_path / "orders-app" / "README.md").read_text(encoding="utf-8")
    again = new(tmp_path / "orders-app", "--ci", "none")
    assert "is not empty" in again.output


@pytest.mark.parametrize("option", ["--wheel", "--example"])
def test_options_of_the_other_repository_are_refused(tmp_path: Path, option: str) -> None:
    done = new(tmp_path / "orders-app", option, "orders")
    assert done.exit_code == ExitCode.USAGE
    assert f"{option} cannot be combined with --streams" in done.output
    assert not (tmp_path / "orders-app").exists()


@pytest.mark.oracle
@pytest.mark.broker
@pytest.mark.slow
def test_the_application_is_built_and_runs(own_broker: Callable[..., Broker], tmp_path: Path) -> None:
    assert KAFKA_STREAMS in map(str, SUPPORTED)
    folder = tmp_path / "orders-app"
    assert new(folder).exit_code == 0
    if "UPDATE_GOLDEN" in os.environ:
        (folder / "topologies" / "orders.yaml").unlink()
        maven(folder, HEADWATER_WRITE="true")
        written = (folder / "topologies" / "orders.yaml").read_text(encoding="utf-8")
        _TEMPLATE.write_text(written.replace(KAFKA_STREAMS, "KAFKA_STREAMS_VERSION"), encoding="utf-8")
    maven(folder)  # its test compares the document with the code
    loaded = load_text((folder / "topologies" / "orders.yaml").read_text(encoding="utf-8"), "orders.yaml")
    assert not loaded.problems, loaded.problems
    compiled = compile_document(loaded.documents[0], {"orders": 2, "order-counts": 2})
    with own_broker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        created = admin.create_topics([NewTopic("orders", 2), NewTopic("order-counts", 2)])
        for future in created.values():
            future.result()
        assert until(lambda: created.keys() <= _partitions(admin).keys(), 60)
        variables = {"BOOTSTRAP_SERVERS": broker.bootstrap_servers}
        refused = java(folder, variables)
        assert "An operator has to act: Internal topics do not exist: " + ", ".join(_INTERNAL) in refused
        java(folder, variables, "initialize")
        expected = {topic.name: topic.partitions for topic in compiled.internal_topics}
        assert expected.keys() == set(_INTERNAL)
        # The broker that answers learns of new topics a moment later.
        assert until(lambda: expected.items() <= _partitions(admin).items(), 60), _partitions(admin)
        with started(folder, variables, tmp_path / "log") as application:
            assert until(lambda: "to RUNNING" in (tmp_path / "log").read_text(encoding="utf-8"), 60)
            application.terminate()
            application.wait(60)


def _partitions(admin: AdminClient) -> dict[str, int]:
    """Return topic → number of partitions."""
    found = admin.list_topics(timeout=90).topics
    return {name: len(topic.partitions) for name, topic in found.items()}


_GRADLE_BUILD = """
apply plugin: "java"
sourceCompatibility = "17"
task show(dependsOn: compileJava) {
    doLast { configurations.runtimeClasspath.each { println "jar: " + it.name } }
}
"""
_ONLY_LOCAL = "allprojects { repositories { mavenLocal() } }"


@pytest.mark.oracle
@pytest.mark.soak
@pytest.mark.skipif(shutil.which("gradle") is None, reason="Gradle is not installed: apt-get install gradle")
def test_the_gradle_lines_of_the_readme_build_the_application(tmp_path: Path) -> None:
    """The jars of Kafka are taken from the local repository of Maven, which the other build fills."""
    folder = tmp_path / "orders-app"
    assert new(folder).exit_code == 0
    maven(folder)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    lines = readme.partition("```groovy\n")[2].partition("```")[0]
    (folder / "build.gradle").write_text(_GRADLE_BUILD + lines)
    (tmp_path / "local.gradle").write_text(_ONLY_LOCAL)
    done = subprocess.run(
        ["gradle", "--offline", "--no-daemon", "--init-script", str(tmp_path / "local.gradle"), "show"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    jars = {line.removeprefix("jar: ") for line in done.stdout.splitlines() if line.startswith("jar: ")}
    assert {f"kafka-streams-{KAFKA_STREAMS}.jar", JAR} <= jars
    assert list((folder / "build" / "classes").rglob("Orders.class"))


def maven(folder: Path, **variables: str) -> None:
    command = ["mvn", "--batch-mode", "--no-transfer-progress", "verify"]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **_QUICK, **variables},  # also for the JVM of the tests
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def command(*arguments: str) -> list[str]:
    """Return the command of the README."""
    path = "target/orders-app-1.0.0.jar:target/dependency/*"
    return ["java", "-Xmx128m", "-cp", path, "com.example.orders.Orders", *arguments]


def java(folder: Path, variables: Mapping[str, str], *arguments: str) -> str:
    """Run the application until it ends; return what it printed."""
    done = subprocess.run(
        command(*arguments),
        cwd=folder,
        env={**os.environ, **_QUICK, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def started(folder: Path, variables: Mapping[str, str], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("wb") as output:
        return subprocess.Popen(
            command(), cwd=folder, env={**os.environ, **_QUICK, **variables}, stderr=output
        )
