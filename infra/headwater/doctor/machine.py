"""Checks of this machine: the programs and packages that Headwater runs, and whether their versions fit."""

from collections.abc import Iterator, Mapping

import attrs

from headwater.doctor.findings import Check, Finding, Section, version_text

_GET = "Run `headwater toolchain`."
# Not by its name alone: it is not registered in the public package index.
_INSTALL = "pip install 'headwater @ URL_OF_THE_WHEEL'"
_SPARK = "pip install 'headwater[spark] @ URL_OF_THE_WHEEL'"


@attrs.frozen(kw_only=True)
class Program:
    """A program: `version` and `minimum` as numbers, None if the program prints no version."""

    path: str
    version: tuple[int, ...] | None
    minimum: tuple[int, ...]

    @property
    def is_sufficient(self) -> bool:
        return self.version is not None and self.version >= self.minimum


@attrs.frozen
class Package:
    """A Python package: the required versions (such as `>=6,<7`), and the installed one; None = not found."""

    required: str
    installed: str | None
    is_fitting: bool


@attrs.frozen(kw_only=True)
class MachineFacts:
    """What was found on this machine; None = not found.

    `packages` are by the name of the distribution, `spark_packages` are the packages of the extra `spark`.
    `connector` is the version of Spark's Kafka connector that Headwater uses. `pulumi_is_on_path` says that a
    shell finds this CLI, and `plugin_is_visible` that the CLI then finds the plugin.
    """

    python: tuple[int, ...]
    java: Program | None
    maven: Program | None
    go: Program | None
    pulumi: Program | None
    pulumi_is_on_path: bool
    plugin: str | None
    plugin_is_visible: bool
    plugin_version: str
    kafka: bool
    connector_found: bool
    connector: str
    packages: Mapping[str, Package]
    spark_packages: Mapping[str, Package]


def machine_findings(facts: MachineFacts) -> Iterator[Finding]:
    """Yield the findings about the programs and packages of this machine."""
    yield _check_of("python").ok(version_text(facts.python))
    yield _check_packages(facts)
    yield _check_java(facts.java)
    yield _check_pulumi(facts)
    yield _check_plugin(facts)
    yield _local_kafka(facts)
    yield _check_spark(facts)
    yield _check_connector(facts)


def _check_of(name: str) -> Check:
    return Check(Section.MACHINE, name)


def _check_packages(facts: MachineFacts) -> Finding:
    wrong = _list_differing(facts.packages)
    if not wrong:
        return _check_of("packages").ok(f"{len(facts.packages)} required packages are installed")
    return _check_of("packages").error(
        f"Python packages differ from the versions that Headwater requires: {wrong}.",
        why="Commands may fail, or behave differently.",
        fix=f"Install Headwater in an environment of its own: {_INSTALL}",
    )


def _list_differing(packages: Mapping[str, Package]) -> str:
    return ", ".join(
        f"{name} {package.installed or 'is missing'} (required: {package.required})"
        for name, package in sorted(packages.items())
        if not package.is_fitting
    )


def _check_java(java: Program | None) -> Finding:
    check = _check_of("java")
    if java is not None and java.is_sufficient:
        return check.ok(f"{version_text(java.version or ())} ({java.path})")
    found = "Java is not installed." if java is None else f"{java.path} is {_version_of(java)}."
    return check.warning(
        found,
        why="`headwater run` (Spark) and `headwater local` (a Kafka broker) need Java 17 or newer.",
        fix="Install a JDK, for example: apt install openjdk-17-jre-headless. Or set JAVA_HOME.",
    )


def _version_of(program: Program) -> str:
    if program.version is None:
        return "a program that prints no version"
    return f"version {version_text(program.version)}, older than {version_text(program.minimum)}"


def _check_pulumi(facts: MachineFacts) -> Finding:
    check = _check_of("pulumi")
    pulumi = facts.pulumi
    if pulumi is None:
        return check.error(
            "No Pulumi CLI of a fitting version is on PATH or in the cache.",
            why="`pulumi preview` and `pulumi up` apply the documents to a cluster.",
            fix=f"{_GET} It downloads Pulumi, or builds it with Go 1.24 or newer "
            f"({_go_text(facts.go)}). Or install Pulumi 3.250 or newer: https://www.pulumi.com/docs/install",
        )
    if not pulumi.is_sufficient:
        return check.error(
            f"{pulumi.path} is {_version_of(pulumi)}.",
            why="An incompatible CLI fails in the middle of a run.",
            fix="Install Pulumi 3.250 or newer, below 4: https://www.pulumi.com/docs/install. Or remove it "
            "from PATH, and run `headwater toolchain`.",
        )
    if not facts.pulumi_is_on_path:
        return check.warning(
            f"Pulumi {version_text(pulumi.version or ())} is not on the PATH of this shell ({pulumi.path}).",
            why="`headwater` finds it, but a shell does not find the command `pulumi`.",
            fix='Run `eval "$(headwater toolchain env)"` in each shell.',
        )
    return check.ok(f"{version_text(pulumi.version or ())} ({pulumi.path})")


def _go_text(go: Program | None) -> str:
    return f"found: {go.path}" if go is not None and go.is_sufficient else "not found"


def _check_plugin(facts: MachineFacts) -> Finding:
    check = _check_of("kafka-plugin")
    if facts.plugin is not None and not facts.plugin_is_visible:
        return check.warning(
            "Your own Pulumi does not find the Kafka plugin, which is in the cache of Headwater.",
            why="Pulumi downloads it at the first run, which fails without access to get.pulumi.com.",
            fix='Run `eval "$(headwater toolchain env)"` in each shell: it puts the plugin on PATH.',
        )
    if facts.plugin is not None:
        return check.ok(f"{facts.plugin_version} ({facts.plugin})")
    return check.warning(
        f"The Kafka plugin {facts.plugin_version} of Pulumi is not installed.",
        why="Pulumi downloads it at the first run, which fails without access to get.pulumi.com.",
        fix=_GET,
    )


def _local_kafka(facts: MachineFacts) -> Finding:
    check = _check_of("local-broker")
    if facts.kafka:
        return check.ok("Kafka for `headwater local` is downloaded")
    return check.warning(
        "Kafka for `headwater local` and `headwater demo` is not downloaded.",
        why="Only these two commands need it.",
        fix=_with_maven(facts.maven, "headwater toolchain kafka"),
    )


def _with_maven(maven: Program | None, command: str) -> str:
    if maven is not None and maven.is_sufficient:
        return f"Run `{command}`."
    return f"Install Maven 3.6 or newer (apt install maven), then run `{command}`."


def _check_spark(facts: MachineFacts) -> Finding:
    check = _check_of("spark")
    installed = facts.spark_packages["pyspark"].installed
    if installed is None:
        return check.warning(
            "PySpark is not installed.", why="Only `headwater run` needs it.", fix=f"Run `{_SPARK}`."
        )
    if wrong := _list_differing(facts.spark_packages):
        return check.error(
            f"Packages of Spark differ from the versions that Headwater requires: {wrong}.",
            why="`headwater run` may fail: it uses parts of these packages that change between versions.",
            fix=f"Run `{_SPARK}` in an environment of its own.",
        )
    return check.ok(f"PySpark {installed}")


def _check_connector(facts: MachineFacts) -> Finding:
    """Check the connector. `make spark-versions` runs applications with it and each supported PySpark."""
    check = _check_of("spark-connector")
    spark = facts.spark_packages["pyspark"]
    if spark.installed is not None and not spark.is_fitting:
        return check.unknown(
            "the connector is checked if PySpark has a supported version", fix=f"Run `{_SPARK}`."
        )
    if facts.connector_found:
        return check.ok(f"{facts.connector} is downloaded")
    return check.warning(
        f"Spark's Kafka connector {facts.connector} is not downloaded.",
        why="`headwater run` downloads it at the first start, which fails without Maven or Maven Central.",
        fix=_with_maven(facts.maven, "headwater toolchain spark"),
    )
