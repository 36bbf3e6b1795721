"""The steps of the workflow files with the real Pulumi, a real broker and a test server as forge."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs
import pytest

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import Deployment, finished_stacks, make_deployment
from tests.pulumi.driver import STACK, time_saving_variables
from tests.pulumi.finished_stacks import FinishedStacks
from tests.wheel.walk import blocks
from tests.workflows.forge import TOKEN, Forge, running_forge
from tests.workflows.scripts import Done, Pipeline, bash, clean_environment, clone_without_files, commit

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]
__all__ = ["finished_stacks"]  # a fixture
MARKER = f"<!-- headwater plan-comment headwater/{STACK} -->"
_SECRETS = ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE")
_CREATED = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
"""The settings of a changelog topic that Kafka Streams has created."""
_WITHOUT_PASSPHRASE = pytest.mark.parametrize("has_passphrase", [False])
"""For tests of steps that do not depend on it: each run of Pulumi takes less CPU time."""
OTHER_COMMENTS = 120
"""The number of comments by users: more than one page."""


@pytest.fixture
def forge() -> Iterator[Forge]:
    with running_forge() as forge:
        yield forge


@attrs.frozen
class Repository:
    """A user's repository with its newest commit `head`, and the pipelines that run on it."""

    deployment: Deployment
    forge: Forge
    origin: Path
    head: str
    pipeline: Pipeline

    def github(self, name: str, job: str, needs: Mapping[str, str] | None = None) -> Done:
        variables = self.deployment.stack.variables
        secrets = ("PULUMI_BACKEND_URL", "PULUMI_ACCESS_TOKEN", "PULUMI_CONFIG_PASSPHRASE")
        reader = ("SECURITY_PROTOCOL", "SASL_MECHANISM", "SASL_USERNAME", "SASL_PASSWORD")
        context = {
            **{f"secrets.{name}": variables.get(name, "") for name in secrets},
            **{f"{kind}.HEADWATER_{name}": "" for kind in ("vars", "secrets") for name in reader},
            "vars.HEADWATER_BOOTSTRAP_SERVERS": self.deployment.cluster.bootstrap_servers,
            "secrets.CHAT_WEBHOOK": f"{self.forge.address}/chat",
            "github.token": TOKEN,
            "github.event.pull_request.number": "12",
            "github.server_url": self.origin.parents[1].as_uri(),
            "github.repository": "acme/shop",
            "github.run_id": "99",
            **(needs or {}),
        }
        return self.pipeline.github(name, job, context)

    def previewed(self) -> Done:
        """Run the jobs of a pull request on GitHub that use the cluster; return how the last one ended."""
        preview = self.github("preview", "preview")
        assert preview.code == 0, str(preview)
        return self.github("preview", "comment", {"needs.preview.outputs.code": preview.outputs["code"]})

    def save_records(self) -> None:
        saved = self.github("drift", "records")
        assert saved.code == 0, str(saved)

    def plan(self) -> Done:
        """Run the jobs of a push to the default branch on GitHub that precede the approval."""
        saved = self.github("up", "records")
        assert saved.code == 0, str(saved)
        return self.github("up", "plan")

    def drift(self) -> str:
        """Run the drift jobs after `records` on GitHub; return the exit code of `headwater drift`."""
        compared = self.github("drift", "compare")
        assert compared.code == 0, str(compared)
        self.report_drift(compared.outputs["found"])
        return compared.outputs["found"]

    def report_drift(self, found: str) -> None:
        """Run the job that writes the issue, with the exit code of `headwater drift`."""
        issue = self.github("drift", "issue", {"needs.compare.outputs.found": found})
        assert issue.code == 0, str(issue)


@pytest.fixture(scope="module")
def broker(own_broker: Callable[[], Broker]) -> Iterator[Broker]:
    """A broker without the topics of other tests: a drift report names those that look renamed."""
    with own_broker() as broker:
        yield broker


@pytest.fixture
def has_passphrase() -> bool:
    return True


@pytest.fixture
def deployment(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    broker: Broker,
    unique: Callable[[str], str],
    finished_stacks: FinishedStacks,
    *,
    has_passphrase: bool,
) -> Deployment:
    deployment = make_deployment(
        tmp_path / "stack",
        pulumi_toolchain,
        Cluster(broker.bootstrap_servers),
        unique,
        has_passphrase=has_passphrase,
        finished=finished_stacks,
    )
    deployment.declare()
    return deployment


@pytest.fixture
def repository(tmp_path: Path, deployment: Deployment, forge: Forge) -> Repository:
    origin = tmp_path / "forge" / "acme" / "shop"
    head = commit(origin, "README.md")
    clone_without_files(origin, deployment.stack.folder)
    artifacts = tmp_path / "artifacts"
    artifacts.mkdir()
    variables = {
        **clean_environment(),
        **{
            name: value
            for name, value in deployment.stack._environment().items()
            if name.startswith(("PULUMI_", "VAULT_")) and name not in _SECRETS
        },
        "PATH": deployment.stack.environment_of_run()["PATH"],
        **time_saving_variables(),
        "GITHUB_API_URL": forge.address,
        "GITHUB_REPOSITORY": "acme/shop",
        "GITHUB_SHA": head,
        "GITHUB_REF": "refs/heads/main",
    }
    settings = {"TOPOLOGIES": "documents", "STACK": STACK, "SOURCES": f"{deployment.source}=4"}
    return Repository(
        deployment, forge, origin, head, Pipeline(deployment.stack.folder, artifacts, variables, settings)
    )


def test_a_pull_request_gets_one_comment_that_is_kept_up_to_date(repository: Repository) -> None:
    deployment, forge = repository.deployment, repository.forge
    comments_path = "issues/12/comments"
    for number in range(OTHER_COMMENTS):
        forge.add(comments_path, body=f"{number}: what does `{MARKER}` mean?\n{MARKER}")
    assert not repository.github("preview", "check").code
    done = repository.previewed()
    assert done.code == 0, str(done)
    assert forge.done == ["created"]
    comment = forge.texts(comments_path)[OTHER_COMMENTS]
    assert comment.startswith(f"{MARKER}\n### 🟢 Kafka topics: 2 to create\n")
    again = repository.github("preview", "comment", {"needs.preview.outputs.code": "0"})
    assert again.code == 0, str(again)
    assert forge.done == ["created"], "the same comment is not written again"
    deployment.cluster.create(deployment.changelog, 9, _CREATED)
    refused = repository.previewed()
    assert refused.code == 1
    assert "The plan is refused" in refused.text
    assert forge.done == ["created", "updated"]
    assert len(forge.texts(comments_path)) == OTHER_COMMENTS + 1
    assert "refused, 1 error" in forge.texts(comments_path)[OTHER_COMMENTS]


def test_up_runs_only_the_plan_that_was_approved(repository: Repository) -> None:
    deployment = repository.deployment
    assert repository.plan().code == 0
    newest = commit(repository.origin, "topologies/new.yaml")
    done = repository.github("up", "up")
    assert (done.code, "has newer changes" in done.text) == (1, True), str(done)
    variables = {**repository.pipeline.variables, "GITHUB_SHA": newest}
    repository = attrs.evolve(repository, pipeline=attrs.evolve(repository.pipeline, variables=variables))
    deployment.cluster.create(deployment.changelog, 4, _CREATED)
    done = repository.github("up", "up")
    assert (done.code, "error[PlanNotApproved]" in done.text) == (1, True), str(done)
    assert f"Different: {deployment.changelog}" in " ".join(done.text.split())
    assert deployment.partitions() == (None, 4)
    assert repository.plan().code == 0
    done = repository.github("up", "up")
    assert done.code == 0, str(done)
    deployment.settles_at(4, 4)
    deployment.cluster.expand(deployment.repartition, 9)
    done = repository.plan()
    assert (done.code, "The plan is refused" in done.text) == (1, True), str(done)


@_WITHOUT_PASSPHRASE
def test_drift_has_one_issue_that_is_closed_without_drift(repository: Repository) -> None:
    deployment, forge = repository.deployment, repository.forge
    deployment.set_up()
    repository.save_records()
    assert repository.drift() == "0"
    assert forge.texts("issues") == []
    deployment.cluster.set_config(deployment.changelog, cleanup_policy="delete")
    assert repository.drift() == "2"
    repository.report_drift("2")
    assert forge.done == ["created"], "the same issue is not written again"
    deployment.cluster.set_config(deployment.repartition, cleanup_policy="compact")
    assert repository.drift() == "2"
    assert forge.done == ["created", "updated"]
    (issue,) = forge.texts("issues")
    assert deployment.changelog in issue
    chat = repository.github("drift", "chat")
    assert chat.code == 0, str(chat)
    (message,) = forge.chat
    assert message["text"].endswith("/acme/shop/actions/runs/99")
    deployment.up()
    repository.save_records()
    assert repository.drift() == "0"
    assert forge.texts("issues") == []


def test_gitlab_jobs(repository: Repository) -> None:
    deployment, forge = repository.deployment, repository.forge
    variables = {
        **{name: value for name, value in repository.pipeline.variables.items() if "GITHUB" not in name},
        "CI_API_V4_URL": forge.address,
        "CI_PROJECT_ID": "7",
        "CI_MERGE_REQUEST_IID": "12",
        "CI_COMMIT_BRANCH": "main",
        "CI_COMMIT_SHA": repository.head,
        "CI_PIPELINE_URL": "https://gitlab.example.com/acme/shop/-/pipelines/99",
        "HEADWATER_BOOTSTRAP_SERVERS": deployment.cluster.bootstrap_servers,
        "GITLAB_TOKEN": TOKEN,
        "CI_JOB_TOKEN": TOKEN,
        "CHAT_WEBHOOK": f"{forge.address}/chat",
    }
    pipeline = attrs.evolve(repository.pipeline, variables=variables)

    stack = deployment.stack.variables
    backend = {"PULUMI_BACKEND_URL": stack["PULUMI_BACKEND_URL"]}
    production = {**backend, "PULUMI_CONFIG_PASSPHRASE": stack["PULUMI_CONFIG_PASSPHRASE"]}
    of_environment = {"records": backend, "up": production}

    def succeeds(*jobs: str) -> None:
        for job in jobs:
            done = pipeline.gitlab(f"headwater:{job}", of_environment.get(job))
            assert done.code == 0, str(done)

    succeeds("check", "records", "preview", "comment", "comment")
    assert forge.done == ["created"]
    (comment,) = forge.texts("merge_requests/12/notes")
    assert comment.startswith(MARKER)
    succeeds("records", "plan", "up", "records", "drift", "alert")
    deployment.settles_at(4, 4)
    assert forge.done == ["created"]
    deployment.cluster.set_config(deployment.changelog, cleanup_policy="delete")
    succeeds("drift", "alert", "alert")
    assert forge.done == ["created", "created"]
    assert len(forge.chat) == 2
    (issue,) = forge.texts("issues")
    assert deployment.changelog in issue
    deployment.cluster.expand(deployment.repartition, 9)
    succeeds("records", "preview")
    refused = pipeline.gitlab("headwater:comment")
    assert (refused.code, "The plan is refused" in refused.text) == (1, True), str(refused)
    assert pipeline.gitlab("headwater:plan").code == 1


@_WITHOUT_PASSPHRASE
def test_the_scripts_for_other_servers_review_and_apply_a_plan(repository: Repository) -> None:
    """As the page prints them: without the setup records, a plan refuses topics that the stack has set up."""
    review, records, apply = (block.text for block in blocks("gitops.md", "On other CI servers"))
    deployment = repository.deployment
    deployment.declare({"internal.topics.setup": "manual"})
    folder = deployment.stack.folder
    (folder / "client.properties").write_text(f"bootstrap.servers={deployment.cluster.bootstrap_servers}\n")

    def run(script: str) -> tuple[int, str]:
        own = script.replace("topologies/", "documents/").replace("production", STACK)
        return bash(own, folder, deployment.stack.environment_of_run())

    def succeeds(*scripts: str) -> None:
        for script in scripts:
            code, text = run(script)
            assert code == 0, text

    succeeds(records, review)
    assert "2 to create" in (folder / "comment.md").read_text()
    succeeds(apply)
    deployment.settles_at(4, 4)
    succeeds(records, review)
    assert "no changes" in (folder / "comment.md").read_text()
    assert (folder / "drift.xml").exists()
    deployment.cluster.expand(deployment.repartition, 9)
    code, text = run(review)
    assert (code, "OverPartitionedInternalTopic" in text) == (3, True), text
