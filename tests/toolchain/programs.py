"""Programs that only tests run, such as promtool, actionlint, Helm, Apicurio Registry, Spark's operator."""

import hashlib
import os
import shutil
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from headwater.toolchain import machine
from headwater.toolchain.broker.readiness import HOST, free_ports, until
from headwater.toolchain.cache import Cache, file_contents, fingerprint
from headwater.toolchain.commands import Progress, ToolchainError, run_logged
from headwater.toolchain.go_modules import GoModule
from tests.quick_java import QUICK_JAVA

GO_MODULES = Path(__file__).parent / "go"
_go_module = partial(GoModule, source=GO_MODULES)

PROMETHEUS_VERSION = "3.11.3"
_PROMTOOL_ON_PATH = machine.Program(
    title="promtool",
    executable="promtool",
    version_command=("--version",),
    version_pattern=r"version (\d+\.\d+\.\d+)",
    minimum=(3, 0),
    purpose="checks the alert rules",
    remedies=("https://prometheus.io/download",),
)
_PROMTOOL = _go_module(
    name="promtool",
    title=f"promtool {PROMETHEUS_VERSION}",
    packages="tool",
    duration="4 minutes",
    tags=("remove_all_sd",),  # the service discovery libraries of cloud providers are most of Prometheus
)
ACTIONLINT_VERSION = "1.7.12"
_ACTIONLINT = _go_module(
    name="actionlint", title=f"actionlint {ACTIONLINT_VERSION}", packages="tool", duration="half a minute"
)
HELM_VERSION = "4.3.1"
_HELM = _go_module(
    name="helm",
    title=f"Helm {HELM_VERSION}",
    packages="tool",
    duration="3 minutes",
    variables={"helm.sh/helm/v4/internal/version.version": f"v{HELM_VERSION}"},
)
PULUMI_YAML_VERSION = "1.25.0"
_PULUMI_YAML = _go_module(
    name="yaml", title=f"Pulumi's YAML host {PULUMI_YAML_VERSION}", packages="tool", duration="3 minutes"
)
# Later versions of the hosts are modules of their own, which no tool of this project needs.
PULUMI_HOSTS_VERSION = "3.66.0"
_PULUMI_HOSTS = _go_module(
    name="hosts",
    title=f"Pulumi's hosts for Go and Node.js {PULUMI_HOSTS_VERSION}",
    packages="tool",
    duration="2 minutes",
)
SPARK_OPERATOR_VERSION = "2.4.0"
_SPARK_OPERATOR = _go_module(
    name="spark-operator",
    title=f"Spark operator {SPARK_OPERATOR_VERSION}",
    packages="",
    duration="5 seconds",
)

REGISTRY_VERSION = "3.0.9"
_REGISTRY_SHA256 = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
_REGISTRY_ARTIFACT = f"io.apicurio:apicurio-registry-app:{REGISTRY_VERSION}:tar.gz:all"
_MAVEN_GET = "org.apache.maven.plugins:maven-dependency-plugin:2.8:get"
_MAVEN_REPOSITORY = "repository"
_REGISTRY_START_SECONDS = 240
_REGISTRY_JAVA_OPTIONS = ("-Xmx256m", *QUICK_JAVA, "-Xshare:auto")


def ensure_promtool() -> Path:
    """Return the program, and build it on first use; raises `ToolchainError` if Go is not installed."""
    found = machine.inspect_program(_PROMTOOL_ON_PATH)
    if found.executable is not None and found.sufficient:
        return found.executable
    return _ensure_program(_PROMTOOL, PROMETHEUS_VERSION) / "promtool"


def ensure_actionlint() -> Path:
    """Return the program, and build it on first use; raises `ToolchainError` if Go is not installed."""
    return _ensure_program(_ACTIONLINT, ACTIONLINT_VERSION) / "actionlint"


def ensure_helm() -> Path:
    """Return the program, and build it on first use; raises `ToolchainError` if Go is not installed."""
    return _ensure_program(_HELM, HELM_VERSION) / "helm"


def ensure_pulumi_yaml() -> Path:
    """Return the folder of the host of YAML programs, and build it on first use; raises `ToolchainError`."""
    return _ensure_program(_PULUMI_YAML, PULUMI_YAML_VERSION)


def ensure_pulumi_hosts() -> Path:
    """Return the folder of the hosts of programs in Go and TypeScript, and build them on first use.

    Raises:
        ToolchainError: Go is not installed, or the build failed.
    """
    return _ensure_program(_PULUMI_HOSTS, PULUMI_HOSTS_VERSION)


def ensure_node_modules(project: Path) -> Path:
    """Return the folder `node_modules` of the lock in `project`, and install it on first use.

    Raises:
        ToolchainError: npm is not installed, or failed.
    """
    cache = Cache()
    names = ("package.json", "package-lock.json")
    npm = shutil.which("npm")
    if npm is None:
        raise ToolchainError("npm is not installed. It comes with Node.js: https://nodejs.org")

    def install(folder: Path, progress: Progress) -> None:
        for name in names:
            shutil.copy(project / name, folder)
        with progress.step("Node.js packages: installing with npm", expected="half a minute") as show:
            run_logged(
                [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                folder=folder,
                log=cache.root / "logs" / "npm.log",
                environment=os.environ,
                show=show,
                failure="npm could not install the packages",
            )

    entry = f"node-{project.parent.name}-{fingerprint(*file_contents(project, names))}"
    return cache.ensure(entry, install, Progress()) / "node_modules"


def ensure_spark_operator() -> Path:
    """Return the sources of Kubeflow's operator for Spark, which contain its resource definitions."""
    return _SPARK_OPERATOR.source_of("github.com/kubeflow/spark-operator/v2")


def _ensure_program(module: GoModule, version: str) -> Path:
    """Return the folder with the programs of a module, and build them on first use."""
    cache = Cache()

    def build(folder: Path, progress: Progress) -> None:
        module.build(folder, cache, progress)

    return cache.ensure(f"{module.name}-{version}-{module.fingerprint}", build, Progress())


def ensure_schema_registry() -> Path:
    """Return the runnable jar of Apicurio Registry, which serves the API of Confluent's schema registry.

    It is downloaded on first use, alone: some mirrors do not have the parents of its POM, which `MavenJars`
    would need.

    Raises:
        ToolchainError: Maven is not installed, or the download failed.
    """
    cache = Cache()

    def fetch(folder: Path, shown: Progress) -> None:
        maven = machine.require_programs([machine.MAVEN])[machine.MAVEN]
        with shown.step(
            f"Apicurio Registry {REGISTRY_VERSION}: downloading with Maven", expected="a minute"
        ) as show:
            run_logged(
                [
                    *(maven, _MAVEN_GET, f"-Dartifact={_REGISTRY_ARTIFACT}", "-Dtransitive=false"),
                    *(f"-Dmaven.repo.local={folder / _MAVEN_REPOSITORY}", "--batch-mode"),
                    *("--no-transfer-progress", "-Dstyle.color=never"),
                ],
                log=cache.root / "logs" / "schema-registry.log",
                environment=os.environ,
                show=show,
                failure="Maven could not download Apicurio Registry",
            )
            _unpack_archive(folder)

    entry = f"schema-registry-{REGISTRY_VERSION}-{fingerprint(_REGISTRY_SHA256)}"
    folder = cache.ensure(entry, fetch, Progress())
    return next(folder.glob("*-runner.jar"))


def _unpack_archive(folder: Path) -> None:
    """Unpack the archive: in a local repository of its own it is the only one."""
    (archive,) = (folder / _MAVEN_REPOSITORY).rglob("*-all.tar.gz")
    if hashlib.sha256(archive.read_bytes()).hexdigest() != _REGISTRY_SHA256:
        raise ToolchainError(
            f"Maven downloaded an {archive.name} that differs from the locked one.\n"
            "  Check the mirrors in ~/.m2/settings.xml. With a new version, update its checksum."
        )
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    shutil.rmtree(folder / _MAVEN_REPOSITORY)


@contextmanager
def running_schema_registry(log: Path) -> Iterator[str]:
    """Yield the URL of the API of an in-memory registry, which stops with the block."""
    java = machine.require_programs([machine.JAVA])[machine.JAVA]
    jar = ensure_schema_registry()
    (port,) = free_ports(1)
    address = (f"-Dquarkus.http.host={HOST}", f"-Dquarkus.http.port={port}")
    url = f"http://{HOST}:{port}/apis/ccompat/v7"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [java, *_REGISTRY_JAVA_OPTIONS, *address, "-jar", jar], stdout=output, stderr=output
        )
    try:
        if (
            not until(lambda: process.poll() is not None or _is_answering(url), _REGISTRY_START_SECONDS)
            or process.poll()
        ):
            raise ToolchainError(f"The schema registry did not start. Its log: {log}")
        yield url
    finally:
        process.kill()
        process.wait()


def _is_answering(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/subjects", timeout=5):  # noqa: S310 - the registry started above
            return True
    except OSError:  # HTTPError is one
        return False


if __name__ == "__main__":  # before the tests, which have a time limit
    ensure_promtool()
    ensure_actionlint()
    ensure_helm()
    ensure_pulumi_yaml()
    ensure_pulumi_hosts()
    ensure_spark_operator()
