"""`headwater drift` on a real cluster, without Pulumi: findings, formats and exit codes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import pytest
from click.testing import CliRunner, Result

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.toolchain.broker.local import LocalBroker
from tests.drift.test_formats import SCHEMA
from tests.pulumi.cluster import Cluster

_DECLARED = ("cleanup.policy", "segment.bytes", "retention.ms", "message.timestamp.type")
FORMATS = ("text", "json", "markdown", "html", "junit")
_DOCUMENT = """\
application: {{id: {id}}}
topology:
  - stream: {{topic: {source}}}
  - groupBy: {{key: value.k, name: by-k}}
  - count: {{materialized: counts}}
"""


@attrs.frozen
class Shop:
    """An application that is set up on the cluster, and the folder with its document."""

    id: str
    source: str
    cluster: Cluster
    folder: Path

    @property
    def repartition(self) -> str:
        return f"{self.id}-by-k-repartition"

    @property
    def changelog(self) -> str:
        return f"{self.id}-counts-changelog"

    def drift(self, *arguments: str) -> Result:
        server = ("--bootstrap-server", self.cluster.bootstrap_servers)
        return headwater("drift", str(self.folder / "app.yaml"), *server, *arguments)

    def kinds(self, *arguments: str) -> list[tuple[str, str]]:
        """Return kind and topic of each finding. Assert that the exit code matches."""
        done = self.drift("--format", "json", *arguments)
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        findings = document["applications"][0]["findings"]
        has_drift = any(finding["kind"] != "suspected" for finding in findings)
        assert document["hasDrift"] == has_drift
        assert done.exit_code == (ExitCode.DRIFT if has_drift else ExitCode.DONE), done.output
        return [(finding["kind"], finding["topic"]) for finding in findings]

    def state(self) -> Path:
        """Write the output of `pulumi stack export` for a stack that has set up the application."""
        topics = {
            name: {"id": self.cluster.topic_id(name), "partitions": 3, "sink": False}
            for name in (self.repartition, self.changelog)
        }
        resource = {
            "urn": f"urn:pulumi:test::headwater::headwater:kafka:InternalTopics::{self.id}",
            "type": "headwater:kafka:InternalTopics",
            "outputs": {"topics": topics, "initialProcessors": 3, "generatedNames": [], "retired": False},
        }
        file = self.folder / "state.json"
        file.write_text(json.dumps({"version": 3, "deployment": {"resources": [resource]}}))
        return file


def headwater(*arguments: str, **options: Any) -> Result:  # noqa: ANN401 - passed to click's runner
    return CliRunner().invoke(main, arguments, prog_name="headwater", **options)


def make_shop(folder: Path, cluster: Cluster, unique: Callable[[str], str]) -> Shop:
    shop = Shop(unique("shop"), unique("source"), cluster, folder)
    (folder / "app.yaml").write_text(_DOCUMENT.format(id=shop.id, source=shop.source))
    cluster.create(shop.source, 3)
    cluster.create(
        shop.repartition, 3, {"cleanup.policy": "delete", "segment.bytes": "52428800", "retention.ms": "-1"}
    )
    cluster.create(shop.changelog, 3, {"cleanup.policy": "compact"})
    return shop


@pytest.fixture
def shop(kafka: LocalBroker, unique: Callable[[str], str], tmp_path: Path) -> Shop:
    return make_shop(tmp_path, Cluster(kafka.bootstrap_servers), unique)


@pytest.mark.broker
def test_no_drift_is_found_on_an_unchanged_cluster(shop: Shop) -> None:
    assert shop.kinds() == []
    for form in FORMATS:
        done = shop.drift("--format", form)
        assert done.exit_code == ExitCode.DONE, done.output
        assert done.stderr == ""
    assert shop.drift().stdout.startswith("No drift: 2 topics of 1 application are as declared.\n")


@pytest.mark.broker
def test_changes_of_other_clients_are_found(shop: Shop) -> None:
    shop.cluster.expand(shop.repartition, 5)
    shop.cluster.set_config(shop.changelog, cleanup_policy="delete", flush_ms="1000")
    created = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
    shop.cluster.create(f"{shop.id}-forgotten-changelog", 1, created)
    assert shop.kinds() == [
        ("over-partitioned", shop.repartition),
        ("config", shop.changelog),
        ("config", shop.changelog),
        ("orphaned", f"{shop.id}-forgotten-changelog"),
    ]
    for form in FORMATS:
        done = shop.drift("--format", form)
        assert done.exit_code == ExitCode.DRIFT
        assert shop.repartition in done.stdout


@pytest.mark.broker
def test_settings_that_equal_the_defaults_of_the_broker_are_no_drift(shop: Shop) -> None:
    defaults = shop.cluster.defaults(shop.changelog)
    assert len(defaults) > 25
    for topic in (shop.repartition, shop.changelog):
        settings = {key: value for key, value in defaults.items() if key not in _DECLARED}
        shop.cluster.set_config(topic, **settings)
    assert shop.kinds() == []
    shop.cluster.set_config(shop.changelog, retention_bytes="1000000", file_delete_delay_ms="1000")
    assert shop.kinds() == [("config", shop.changelog)] * 2


@pytest.mark.broker
def test_policies_tolerate_drift(shop: Shop, tmp_path: Path) -> None:
    shop.cluster.set_config(shop.changelog, flush_ms="1000", preallocate="true")
    shop.cluster.expand(shop.repartition, 5)
    policies = tmp_path / "headwater-policies.yaml"

    def found(policy: str) -> tuple[int, list[bool], bool]:
        policies.write_text(f"policies: [{policy}]")
        done = shop.drift("--policies", str(policies), "--format", "json")
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        findings = document["applications"][0]["findings"]
        return done.exit_code, [finding["counts"] for finding in findings], document["hasDrift"]

    assert found("drift: {ignoreSettings: [flush.*]}") == (ExitCode.DRIFT, [True, True], True)
    assert found("drift: {failOn: error}") == (ExitCode.DRIFT, [True, False, False], True)
    assert found("drift: {tolerated: 3}") == (ExitCode.DONE, [False] * 3, False)
    assert found("drift: {tolerated: 2}") == (ExitCode.DRIFT, [True] * 3, True)
    assert found("drift: {tolerated: 3, applications: another}") == (ExitCode.DRIFT, [True] * 3, True)
    both = "drift: {ignoreSettings: [flush.ms, preallocate]}}, {drift: {tolerated: 1, kinds: [repartition]}"
    assert found(f"{{{both}}}") == (ExitCode.DONE, [False], False)
    assert "Policies tolerate all of them." in shop.drift("--policies", str(policies)).stdout
    planned = headwater(
        *("plan", str(shop.folder / "app.yaml"), "--policies", str(policies)),
        *("--bootstrap-server", shop.cluster.bootstrap_servers),
    )
    assert "flush.ms" not in planned.stdout


@pytest.mark.broker
def test_a_policy_about_drift_that_tolerates_nothing_is_refused(shop: Shop, tmp_path: Path) -> None:
    policies = tmp_path / "headwater-policies.yaml"
    policies.write_text("policies: [drift: {applications: shop}]")
    done = shop.drift("--policies", str(policies))
    assert (done.exit_code, "`drift` limits nothing" in done.stderr) == (ExitCode.PROBLEMS, True)


@pytest.mark.broker
def test_topics_of_other_clients_are_not_orphaned(shop: Shop) -> None:
    created = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
    other, users, read = (f"{shop.id}-{name}-changelog" for name in ("v1-counts", "cdc", "old"))
    shop.cluster.create(other, 1, created)
    shop.cluster.commit(f"{shop.id}-v1", shop.source)
    shop.cluster.create(users, 1)
    shop.cluster.create(read, 1, created)
    shop.cluster.commit(f"{shop.id}audit", read)
    assert shop.kinds() == [("suspected", users), ("suspected", read)]
    done = shop.drift()
    assert done.exit_code == ExitCode.DONE, done.output
    assert "--delete" not in done.stdout
    assert "retire" not in done.stdout


@pytest.mark.broker
def test_an_expanded_source_and_a_deleted_topic_are_found(shop: Shop) -> None:
    shop.cluster.expand(shop.source, 4)
    shop.cluster.delete(shop.changelog)
    assert shop.kinds() == [("missing", shop.changelog), ("under-partitioned", shop.repartition)]


@pytest.mark.broker
def test_the_state_of_the_stack_shows_lost_and_re_created_topics(shop: Shop) -> None:
    state = str(shop.state())
    assert shop.kinds("--stack-state", state) == []
    shop.cluster.delete(shop.changelog)
    lost = shop.drift("--stack-state", state)
    assert f"Internal topic {shop.changelog} was set up and no longer exists." in " ".join(
        lost.stdout.split()
    )
    shop.cluster.create(shop.changelog, 3, {"cleanup.policy": "compact"})
    assert shop.kinds("--stack-state", state) == [("re-created", shop.changelog)]
    assert shop.kinds() == []
    piped = headwater(
        *("drift", str(shop.folder / "app.yaml"), "--stack-state", "-"),
        *("--bootstrap-server", shop.cluster.bootstrap_servers),
        input=Path(state).read_text(),
    )
    assert piped.exit_code == ExitCode.DRIFT


@pytest.mark.broker
def test_plan_errors_that_are_not_drift_have_their_own_exit_code(shop: Shop) -> None:
    shop.cluster.delete(shop.source)
    done = shop.drift()
    assert done.exit_code == ExitCode.REFUSED
    assert "The comparison is not complete: 1 error." in done.stdout
    assert "error[MissingSourceTopic]" in done.stdout


@pytest.mark.broker
def test_the_report_is_written_to_a_file(shop: Shop) -> None:
    file = shop.folder / "drift.html"
    done = shop.drift("--format", "html", "--output", str(file))
    assert (done.exit_code, done.stdout) == (ExitCode.DONE, "")
    assert file.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_an_unreachable_cluster_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(_DOCUMENT.format(id="a", source="b"))
    done = headwater("drift", str(tmp_path / "app.yaml"), "--bootstrap-server", "127.0.0.1:1")
    assert done.exit_code == ExitCode.PROBLEMS
    assert "error[ClusterUnreachable]" in done.stderr


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"deployment": {"resources": [{}]}}', '{"deployment": 1}'])
def test_an_invalid_stack_state_is_a_problem(text: str, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(_DOCUMENT.format(id="a", source="b"))
    (tmp_path / "state.json").write_text(text)
    done = headwater(
        *("drift", str(tmp_path / "app.yaml"), "--bootstrap-server", "127.0.0.1:1"),
        *("--stack-state", str(tmp_path / "state.json")),
    )
    assert done.exit_code == ExitCode.PROBLEMS
    assert "is not an exported stack state" in done.stderr


def test_a_stack_with_a_state_needs_its_file_and_no_pulumi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    (tmp_path / "app.yaml").write_text(_DOCUMENT.format(id="a", source="b"))
    (tmp_path / "state.json").write_text('{"deployment": null}')
    done = headwater(
        *("drift", str(tmp_path / "app.yaml"), "--bootstrap-server", "127.0.0.1:1", "--stack", "shop"),
        *("--project", str(tmp_path), "--stack-state", str(tmp_path / "state.json")),
    )
    assert done.exit_code == ExitCode.PROBLEMS
    assert "Pulumi.shop.yaml" in done.stderr
    assert "No such file" in done.stderr


@pytest.mark.parametrize("command", ["drift", "plan"])
def test_files_may_be_omitted_only_with_a_stack(command: str, tmp_path: Path) -> None:
    """A broken document shows which files are read; no cluster and no Pulumi are asked."""
    done = headwater(command, "--bootstrap-server", "127.0.0.1:1")
    assert (done.exit_code, "Missing argument 'FILES...'" in done.stderr) == (ExitCode.USAGE, True)
    for folder in ("topologies", "one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "app.yaml").write_text("topologies: []")
    for setting, folders in (
        ("", ["topologies"]),
        ("headwater:documents: [one, two/*.yaml]", ["one", "two"]),
    ):
        (tmp_path / "Pulumi.staging.yaml").write_text(f"config: {{{setting}}}")
        of_stack = ("--stack", "staging", "--project", str(tmp_path))
        done = headwater(command, "--bootstrap-server", "127.0.0.1:1", *of_stack)
        assert done.exit_code == ExitCode.PROBLEMS
        read = {folder for folder in ("topologies", "one", "two") if f"{folder}/app.yaml" in done.stderr}
        assert read == set(folders), done.stderr
    (tmp_path / "topologies" / "app.yaml").unlink()
    (tmp_path / "Pulumi.staging.yaml").write_text("config: {}")
    (tmp_path / "state.json").write_text('{"deployment": null}')
    state = ("--stack-state", str(tmp_path / "state.json"))
    done = headwater(command, "--bootstrap-server", "127.0.0.1:1", *of_stack, *state)
    assert "error[ClusterUnreachable]" in done.stderr
    assert "error[UnreadableDocument]" not in done.stderr, "a stack may have no application left, as for `up`"


@pytest.mark.parametrize("command", ["drift", "plan", "change"])
def test_a_state_of_another_stack_is_refused(command: str, tmp_path: Path) -> None:
    """Otherwise applications of this stack would count as set up, or as removed."""
    (tmp_path / "app.yaml").write_text(_DOCUMENT.format(id="a", source="b"))
    (tmp_path / "Pulumi.staging.yaml").write_text("config: {}")
    resource = {"urn": "urn:pulumi:production::shop::pulumi:pulumi:Stack::shop-production", "type": "x"}
    (tmp_path / "state.json").write_text(json.dumps({"deployment": {"resources": [resource]}}))
    done = headwater(
        *(command, str(tmp_path / "app.yaml"), "--bootstrap-server", "127.0.0.1:1"),
        *("--stack", "acme/shop/staging", "--project", str(tmp_path)),
        *("--stack-state", str(tmp_path / "state.json")),
    )
    assert done.exit_code == ExitCode.PROBLEMS
    assert "state.json is of stack shop/production, not of acme/shop/staging." in done.stderr
