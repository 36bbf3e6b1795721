"""`headwater doctor`: observe this machine, a stack and a cluster, and report findings."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click
from packaging.requirements import Requirement

from headwater.cli.console import ExitCode, print_json
from headwater.cli.doctor.kafka_cluster import has_authorizer, has_groups, observe_agents, observe_cluster
from headwater.cli.doctor.permissions import observe_permissions
from headwater.cli.doctor.pulumi_stack import ObservedStack, observe_policies, observe_stack, workflow_texts
from headwater.cli.options import project_option
from headwater.control.logs import redact_text, redacted_texts
from headwater.doctor import Finding, Section, Status, has_errors
from headwater.doctor.agents import agent_findings
from headwater.doctor.cluster import cluster_findings
from headwater.doctor.findings import Check
from headwater.doctor.machine import MachineFacts, Package, Program, machine_findings
from headwater.doctor.permissions import (
    PermissionFacts,
    Purpose,
    SeparationFacts,
    permission_findings,
    separation_findings,
)
from headwater.doctor.stack import policy_findings, stack_findings, topic_findings
from headwater.kafka.command_line import NamedCluster, cluster_options
from headwater.kafka.connection import names_cluster
from headwater.model.problems import ProblemsError
from headwater.report.doctor import doctor_json, doctor_rich
from headwater.toolchain import (
    PulumiToolchain,
    fetched_spark_jars,
    kafka,
    kafka_plugin,
    machine,
    pulumi_cli,
    spark,
)
from headwater.toolchain.pulumi_cli import find_pulumi

if TYPE_CHECKING:
    from headwater.kafka import Connection
    from headwater.model.topology import TopologyDocument

_OLDEST_PULUMI = (3, 250)
_WIDTH = 110
_NO_CLUSTER = Check(Section.CLUSTER, "connection")


@click.command()
@click.option("--stack", metavar="STACK", help="Also check this Pulumi stack, and its cluster and documents.")
@project_option
@cluster_options("The cluster to check. It is not changed. Default: of the stack or the environment.")
@click.option(
    "--for",
    "purpose",
    type=click.Choice([purpose.value for purpose in Purpose]),
    default=Purpose.UP.value,
    show_default=True,
    help="What the Kafka user is for: to plan, to run `pulumi up`, or to run applications.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def doctor(
    context: click.Context,
    *,
    stack: str | None,
    project: Path,
    cluster: NamedCluster,
    purpose: str,
    form: str,
) -> None:
    """Check this machine, a stack and a cluster, and say how to fix what does not work.

    Checks programs and versions; the backend of the stack, what a killed run left behind, whether its
    documents follow its policies, and settings of their topics; connection, TLS, credentials, permissions and
    settings of the cluster; agents and their leader. Nothing is changed.
    Exit code 1: there is an error.

    \b
    Examples:
      headwater doctor
      headwater doctor --bootstrap-server localhost:9092
      headwater doctor --stack production --for plan
      headwater doctor --command-config client.properties --format json
    """
    findings = list(machine_findings(_observe_machine()))
    observed = None
    if stack is not None:
        observed = _check_stack(stack, project, findings)
    findings += _check_separation(project, observed)
    secrets: list[str] = []
    try:
        if target := _choose_connection(cluster, observed):
            secrets += target.secrets
            findings += _check_cluster(target, observed, Purpose(purpose))
            if observed is not None and purpose != Purpose.RUN.value:
                findings += _check_policies(target, observed, is_connected=_is_connected(findings))
        else:
            findings.append(_no_cluster(observed))
    except ProblemsError as error:
        findings += [_NO_CLUSTER.of_problem(problem) for problem in error.problems]
    texts = redacted_texts(secrets, os.environ)
    shown = [_redact_finding(finding, texts) for finding in findings]
    _print_findings(shown, form)
    context.exit(ExitCode.PROBLEMS if has_errors(shown) else ExitCode.DONE)


def _observe_machine() -> MachineFacts:
    found = pulumi_cli.find_pulumi()
    return MachineFacts(
        python=sys.version_info[:3],
        java=_convert_program(machine.JAVA),
        maven=_convert_program(machine.MAVEN),
        go=_convert_program(machine.GO),
        pulumi=_pulumi_program(found),
        pulumi_is_on_path=found is not None and shutil.which("pulumi") == str(found.cli),
        plugin=str(plugin) if (plugin := kafka_plugin.find_plugin()) else None,
        plugin_is_visible=found is None or not found.is_users or kafka_plugin.is_visible(),
        plugin_version=kafka_plugin.PLUGIN_VERSION,
        kafka=kafka.is_fetched(),
        connector_found=bool(fetched_spark_jars()),
        connector=spark.CONNECTOR_VERSION,
        packages=_required_packages(""),
        spark_packages=_required_packages("spark"),
    )


def _convert_program(program: machine.Program) -> Program | None:
    found = machine.inspect_program(program)
    if found.executable is None:
        return None
    return Program(path=str(found.executable), version=found.version, minimum=program.minimum)


def _pulumi_program(found: PulumiToolchain | None) -> Program | None:
    if found is None:
        return None
    return Program(path=str(found.cli), version=pulumi_cli.pulumi_version(found.cli), minimum=_OLDEST_PULUMI)


def _required_packages(extra: str) -> Mapping[str, Package]:
    """Return distribution → package of Headwater's requirements for `extra`, "" = of every command."""
    found = {}
    for requirement in map(Requirement, requires("headwater") or ()):
        of_base = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        of_extra = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        if of_extra and (of_base is (extra == "")):
            found[requirement.name] = _inspect_package(requirement)
    return found


def _inspect_package(requirement: Requirement) -> Package:
    installed = _installed_version(requirement.name)
    is_fitting = installed is not None and requirement.specifier.contains(installed, prereleases=True)
    return Package(str(requirement.specifier), installed, is_fitting)


def _installed_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _no_cluster(observed: ObservedStack | None) -> Finding:
    if observed is None:
        return _NO_CLUSTER.unknown("No cluster is named.", fix="Use --bootstrap-server, or --stack.")
    return _NO_CLUSTER.unknown(
        "Not checked without the connection settings of the stack.",
        fix="Fix the stack first, or use --bootstrap-server.",
    )


def _check_stack(stack: str, project: Path, findings: list[Finding]) -> ObservedStack | None:
    pulumi = find_pulumi()
    if pulumi is None:
        check = Check(Section.STACK, "backend")
        findings.append(check.unknown("Not checked without Pulumi.", fix="Run `headwater toolchain` first."))
        return None
    observed = observe_stack(pulumi, stack, project)
    findings += stack_findings(observed.facts)
    return observed


def _check_separation(project: Path, observed: ObservedStack | None) -> Iterator[Finding]:
    has_state = observed is not None and observed.settings is not None
    return separation_findings(
        SeparationFacts(
            workflows=workflow_texts(project),
            stored_secrets=observed.stored_secrets if observed else (),
            has_state=has_state,
        )
    )


def _choose_connection(cluster: NamedCluster, observed: ObservedStack | None) -> "Connection | None":
    """Return the connection of the options, the stack or the environment, None if none names a cluster."""
    if named := cluster.named_connection():
        return named
    if observed is not None:
        return observed.settings.connection if observed.settings else None
    try:
        return cluster.connection()
    except ProblemsError:
        if names_cluster(os.environ):
            raise
        return None


def _check_cluster(
    target: "Connection", observed: ObservedStack | None, purpose: Purpose
) -> Iterator[Finding]:
    settings = observed.settings if observed else None
    documents: Sequence[TopologyDocument] = settings.documents if settings else ()
    expected = settings.policy.cluster_id if settings else None
    cluster = observe_cluster(target, documents, expected)
    yield from cluster_findings(cluster.facts)
    if cluster.admin is None:
        return
    try:
        with_groups = has_groups(cluster)
        permissions = PermissionFacts(purpose=purpose, has_authorizer=False)
        if has_authorizer(cluster.facts):
            permissions = observe_permissions(
                target,
                cluster.admin,
                documents,
                purpose,
                with_groups=with_groups,
                existing=cluster.metadata.topics if cluster.metadata else (),
                with_ownership=settings is not None
                and settings.has_ownership_records
                and purpose is not Purpose.RUN,
            )
        yield from permission_findings(permissions)
        yield from agent_findings(observe_agents(cluster, documents, with_groups=with_groups))
    except ProblemsError as error:
        for problem in error.problems:
            yield Check(Section.PERMISSIONS, "requests").of_problem(problem)
    finally:
        cluster.admin.settle()


def _check_policies(
    target: "Connection", observed: ObservedStack, *, is_connected: bool
) -> Iterator[Finding]:
    facts = observe_policies(target, observed, is_connected=is_connected)
    if facts is not None:
        yield from policy_findings(facts)
        yield from topic_findings(facts)


def _is_connected(findings: Iterable[Finding]) -> bool:
    """Return whether the check of the connection has not failed."""
    name = (_NO_CLUSTER.section, _NO_CLUSTER.name, Status.ERROR)
    return all((finding.section, finding.check, finding.status) != name for finding in findings)


def _redact_finding(finding: Finding, texts: Sequence[str]) -> Finding:
    """Redact secrets that a program or a client library printed."""
    fields: dict[str, Any] = {
        name: redact_text(getattr(finding, name), texts) for name in ("text", "why", "fix")
    }
    return attrs.evolve(finding, **fields)


def _print_findings(findings: Sequence[Finding], form: str) -> None:
    if form == "json":
        print_json(doctor_json(findings))
        return
    from headwater.report.problems import output_console  # noqa: PLC0415 - only for text

    console = output_console()
    console.print(doctor_rich(findings, min(console.width, _WIDTH) if console.is_terminal else _WIDTH))
