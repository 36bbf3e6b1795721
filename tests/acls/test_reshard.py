"""`headwater reshard` with the permissions that `headwater acls --self --for reshard` lists, or fewer."""

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # public, but not exported explicitly

from headwater.cli.main import main
from headwater.compiler import compile_document
from headwater.kafka import Connection
from headwater.model.acls import Operation, Permission, ResourceKind
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.model.topology import TopologyDocument
from headwater.planner.acls import Purpose, headwater_needs
from headwater.spec import load_text
from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker.launch import broker_tool_command
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.reshard.request_failures import denied_on_topics
from headwater_spark.driver.reshard.start import ReshardOptions, reshard_application
from headwater_spark.driver.reshard.state_copy import copy_state
from tests.acls.conftest import APPLICATION
from tests.acls.secured_cluster import SecuredCluster
from tests.runtime.reshard.stopped_application import StoppedApplication
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

_PRINCIPAL = f"User:{APPLICATION.name}"


@pytest.fixture
def app(secured_cluster: SecuredCluster, unique: Callable[[str], str]) -> StoppedApplication:
    servers = secured_cluster.broker.bootstrap_servers
    app = StoppedApplication(servers, Topics(servers), unique("stopped"))
    app.create()
    return app


def _document(app: StoppedApplication, totals: str = "totals") -> TopologyDocument:
    (document,) = load_text(app.text(totals), "app.yaml").documents
    return document


def _needs(app: StoppedApplication) -> set[Permission]:
    compiled = compile_document(_document(app), {app.source: 2})
    return {need.permission for need in headwater_needs(Purpose.RESHARD, [compiled])}


def _refusal(app: StoppedApplication, connection: Connection, *, checks_only: bool = False) -> Problem:
    options = ReshardOptions(partitions={app.source: 5}, checks_only=checks_only)
    with pytest.raises(ProblemsError) as raised:
        reshard_application(_document(app), connection, options, report_no_progress)
    (problem,) = raised.value.problems
    return problem


def test_state_moves_with_the_listed_permissions(
    secured_cluster: SecuredCluster, app: StoppedApplication
) -> None:
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    secured_cluster.set_acls(_PRINCIPAL, _needs(app))
    begin = secured_cluster.log_length
    options = ReshardOptions(partitions={app.source: 5})
    reshard_application(_document(app), secured_cluster.connection(APPLICATION), options, report_no_progress)
    assert secured_cluster.denials(begin, app.id) == set()
    app.check(before, waiting)


def test_a_missing_permission_is_named_before_anything_changes_and_its_command_grants_it(
    secured_cluster: SecuredCluster, app: StoppedApplication
) -> None:
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    needs, connection, internal = _needs(app), secured_cluster.connection(APPLICATION), app.internal.values()
    expected = {
        (ResourceKind.GROUP, Operation.READ): [app.id],
        (ResourceKind.TOPIC, Operation.READ): [*internal, app.source],
        (ResourceKind.TOPIC, Operation.WRITE): [*internal],
        (ResourceKind.TOPIC, Operation.ALTER): [*internal, app.source],
    }
    for (kind, operation), names in expected.items():
        missing = {each for each in needs if (each.kind, each.operation) == (kind, operation)}
        kept = {Permission(each.kind, each.name, Operation.DESCRIBE, each.pattern) for each in missing}
        secured_cluster.set_acls(
            _PRINCIPAL, (needs - missing) | (kept if kind is ResourceKind.TOPIC else set())
        )
        for checks_only in (True, False) if kind is ResourceKind.GROUP else (False,):
            problem = _refusal(app, connection, checks_only=checks_only)
            noun = kind.lower() if len(names) == 1 else f"{kind.lower()}s"
            assert problem.code is ProblemCode.NOT_AUTHORIZED
            assert problem.expected == f"permission {operation} on {noun} {', '.join(sorted(names))}"
        assert {app.topics.partitions(topic) for topic in (app.source, *internal)} == {2}
    transactions = {each for each in needs if each.kind is ResourceKind.TRANSACTIONAL_ID}
    secured_cluster.set_acls(_PRINCIPAL, needs - transactions)
    problem = _refusal(app, connection)
    assert (problem.code, "Transactional Id" in (problem.found or "")) == (ProblemCode.NOT_AUTHORIZED, True)
    assert {app.topics.partitions(topic) for topic in (app.source, *internal)} == {2}

    group = (ResourceKind.GROUP, Operation.READ)
    missing = {
        each for each in needs if (each.kind, each.operation) == group or each.operation is Operation.ALTER
    }
    secured_cluster.set_acls(_PRINCIPAL, needs - missing)
    for operation in (Operation.READ, Operation.ALTER):
        problem = _refusal(app, connection)
        assert problem.expected is not None
        assert problem.expected.startswith(f"permission {operation} on ")
        secured_cluster.grant(problem.fix, _PRINCIPAL)
    options = ReshardOptions(partitions={app.source: 5})
    reshard_application(_document(app), connection, options, report_no_progress)
    app.check(before, waiting)


def test_the_commands_that_the_advice_prints_grant_all_permissions(
    secured_cluster: SecuredCluster,
    app: StoppedApplication,
    kafka_distribution: KafkaDistribution,
    tmp_path: Path,
) -> None:
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    connection, document = secured_cluster.connection(APPLICATION), tmp_path / "app.yaml"
    document.write_text(app.text())
    secured_cluster.set_acls(_PRINCIPAL, set())
    found = re.search(r"`headwater (acls DOCUMENT [^`]+)`", _refusal(app, connection).fix)
    assert found is not None
    words = found[1].replace("DOCUMENT", str(document)).replace("User:NAME", _PRINCIPAL)
    printed = CliRunner().invoke(main, shlex.split(words))
    assert printed.exit_code == 0, printed.output
    commands = re.findall(r"^kafka-acls\.sh --bootstrap-server BROKER (.+)$", printed.output, re.MULTILINE)
    assert commands
    for each in commands:
        line = broker_tool_command(
            kafka_distribution, "acls", secured_cluster.broker.bootstrap_servers, shlex.split(each)
        )
        subprocess.run(line, check=True)
    options = ReshardOptions(partitions={app.source: 5})
    reshard_application(_document(app), connection, options, report_no_progress)
    app.check(before, waiting)


def test_a_permission_that_reading_the_cluster_needs_is_found_in_the_list_of_a_reshard(
    secured_cluster: SecuredCluster, app: StoppedApplication
) -> None:
    needs = _needs(app)
    secured_cluster.set_acls(
        _PRINCIPAL, {each for each in needs if each.operation is not Operation.DESCRIBE_CONFIGS}
    )
    options = ReshardOptions(partitions={app.source: 5})
    with pytest.raises(ProblemsError) as raised:
        reshard_application(
            _document(app), secured_cluster.connection(APPLICATION), options, report_no_progress
        )
    names = {app.source, *app.internal.values()}  # all have the prefix of internal topics
    assert {problem.topic for problem in raised.value.problems} == names
    for problem in raised.value.problems:
        assert problem.expected == f"permission DescribeConfigs on topic {problem.topic}"
        assert "`headwater acls FILES --self --for reshard " in problem.fix


def test_brokers_that_do_not_return_what_a_user_may_do_refuse_no_reshard() -> None:
    known = {"hidden": None, "invisible": frozenset[int](), "read": frozenset({AclOperation.READ.value})}
    (problem,) = denied_on_topics("app", known, {Operation.READ: [*known, "unknown"]})
    assert problem.expected == "permission Read on topic invisible"


def test_a_copy_names_a_missing_permission_for_the_group_and_the_old_topic(
    secured_cluster: SecuredCluster, app: StoppedApplication
) -> None:
    """A group that the user may not see looks stopped."""
    needs, connection = _needs(app), secured_cluster.connection(APPLICATION)
    old, new = app.internal["totals-changelog"], f"{app.id}-renamed-changelog"
    for kind, operation, name in (
        (ResourceKind.GROUP, Operation.READ, f"group {app.id}"),
        (ResourceKind.TOPIC, Operation.READ, f"topic {old}"),
    ):
        granted = {each for each in needs if (each.kind, each.operation) != (kind, operation)}
        secured_cluster.set_acls(_PRINCIPAL, granted)
        with pytest.raises(ProblemsError) as raised:
            copy_state(_document(app, "renamed"), connection, [(old, new)], report_no_progress)
        (problem,) = raised.value.problems
        assert problem.expected == f"permission {operation} on {name}"
        assert new not in app.topics.names()
