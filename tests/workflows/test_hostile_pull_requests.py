"""What a pull request can get: the previews of a hostile one, with the real Pulumi and a broker with users.

The production job has set the stack up with the credentials of the user who writes. Then the author of the
pull request changes every file that he can.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs
import pytest

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker, SaslUser, Settings
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import Deployment, make_deployment
from tests.pulumi.driver import STACK, time_saving_variables
from tests.pulumi.finished_stacks import FinishedStacks
from tests.workflows.forge import TOKEN, Forge, running_forge
from tests.workflows.scripts import Done, Pipeline, clean_environment

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

WRITER = SaslUser("writer", "coral-ibis-writes-2216")
READER = SaslUser("reader", "coral-ibis-reads-7340")
HOSTILE = """
import os, pathlib, subprocess
out = pathlib.Path({stolen!r})
out.write_text(str(dict(os.environ)))
export = ["pulumi", "stack", "export", "--show-secrets", "--stack", "test"]
done = subprocess.run(export, capture_output=True, text=True)
out.write_text(out.read_text() + done.stdout + done.stderr)
"""


@attrs.frozen
class Repository:
    """A repository whose stack is set up. `stolen` is the file that hostile code writes."""

    deployment: Deployment
    pipeline: Pipeline
    broker: Broker
    stolen: Path

    @property
    def folder(self) -> Path:
        return self.deployment.stack.folder

    def run(self, forge: str, job: str, user: SaslUser | None, *, backend: str = "") -> Done:
        """Run a job with the credentials of a user, and those of the backend (`read`, `all`)."""
        stack = self.deployment.stack.variables
        given = {
            **(self.reader(user) if user else {}),
            **({"PULUMI_BACKEND_URL": stack["PULUMI_BACKEND_URL"]} if backend else {}),
            **({"PULUMI_CONFIG_PASSPHRASE": stack["PULUMI_CONFIG_PASSPHRASE"]} if backend == "all" else {}),
        }
        if forge == "gitlab":
            of_gitlab = {
                name: value for name, value in self.pipeline.variables.items() if "GITHUB" not in name
            }
            pipeline = attrs.evolve(self.pipeline, variables=of_gitlab)
            return pipeline.gitlab(f"headwater:{job}", given)
        name, _, job = job.rpartition("/")
        context = {
            **{
                f"{kind}.{variable}": given.get(variable, "")
                for kind in ("vars", "secrets")
                for variable in _ALL
            },
            "github.token": TOKEN,
            "github.event.pull_request.number": "12",
            "needs.preview.outputs.code": "0",
        }
        return self.pipeline.github(name, job, context)

    def reader(self, user: SaslUser) -> dict[str, str]:
        return {
            "HEADWATER_BOOTSTRAP_SERVERS": self.broker.address("SASL_PLAINTEXT"),
            "HEADWATER_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "HEADWATER_SASL_MECHANISM": "SCRAM-SHA-512",
            "HEADWATER_SASL_USERNAME": user.name,
            "HEADWATER_SASL_PASSWORD": user.password,
        }

    def state(self) -> str:
        """Return a digest of all files of the backend."""
        files = sorted(path for path in (self.folder / "state").rglob("*") if path.is_file())
        return hashlib.sha256(b"".join(str(path).encode() + path.read_bytes() for path in files)).hexdigest()


_ALL = (
    "PULUMI_BACKEND_URL",
    "PULUMI_ACCESS_TOKEN",
    "PULUMI_CONFIG_PASSPHRASE",
    "HEADWATER_BOOTSTRAP_SERVERS",
    "HEADWATER_SECURITY_PROTOCOL",
    "HEADWATER_SASL_MECHANISM",
    "HEADWATER_SASL_USERNAME",
    "HEADWATER_SASL_PASSWORD",
)


@pytest.fixture(scope="module")
def secured(own_broker: Callable[..., Broker]) -> Iterator[Broker]:
    with own_broker(Settings(sasl_users=(WRITER, READER))) as broker:
        yield broker


@pytest.fixture
def forge() -> Iterator[Forge]:
    with running_forge() as forge:
        yield forge


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedStacks:
    """Keep what `up` leaves with the users of this broker, and with a passphrase."""
    return FinishedStacks(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def repository(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    secured: Broker,
    unique: Callable[[str], str],
    forge: Forge,
    *,
    finished: FinishedStacks,
) -> Repository:
    deployment = make_deployment(
        tmp_path / "stack",
        pulumi_toolchain,
        Cluster(secured.bootstrap_servers),
        unique,
        has_passphrase=True,
        finished=finished,
    )
    deployment.stack.configure({"bootstrapServers": None})
    artifacts = tmp_path / "artifacts"
    artifacts.mkdir()
    stack = deployment.stack._environment()
    variables: Mapping[str, str] = {
        **clean_environment(),
        **{
            name: value
            for name, value in stack.items()
            if name.startswith("PULUMI_") and name not in deployment.stack.variables
        },
        "PATH": deployment.stack.environment_of_run()["PATH"],
        **time_saving_variables(),
        "GITHUB_API_URL": forge.address,
        "GITHUB_REPOSITORY": "acme/shop",
        "CI_API_V4_URL": forge.address,
        "CI_PROJECT_ID": "7",
        "CI_MERGE_REQUEST_IID": "12",
        "CI_JOB_TOKEN": TOKEN,
        "GITLAB_TOKEN": TOKEN,
    }
    settings = {"TOPOLOGIES": "documents", "STACK": STACK, "SOURCES": f"{deployment.source}=4"}
    repository = Repository(
        deployment,
        Pipeline(deployment.stack.folder, artifacts, variables, settings),
        secured,
        tmp_path / "stolen",
    )
    deployment.with_environment(**repository.reader(WRITER)).set_up()
    return repository


def _change_everything(repository: Repository) -> None:
    """Change the files of the project as the author of a pull request may."""
    folder, hostile = repository.folder, HOSTILE.format(stolen=str(repository.stolen))
    for module in (
        "__main__.py",
        "sitecustomize.py",
        "venv.py",
        "pip.py",
        "headwater.py",
        "click.py",
        "json.py",
    ):
        (folder / module).write_text(hostile)
    plugin = folder / "plugin" / "pulumi-resource-kafka"
    plugin.parent.mkdir()
    plugin.write_text(f"#!/bin/sh\nenv > {repository.stolen}\n")
    plugin.chmod(0o755)
    (folder / "Pulumi.yaml").write_text(
        "name: headwater\nruntime: {name: python, options: {virtualenv: plugin}}\n"
        f"backend: {{url: 'file://{folder}/elsewhere'}}\n"
        "plugins: {providers: [{name: kafka, path: plugin}]}\n"
    )
    (folder / "pulumi").write_text(plugin.read_text())
    (folder / "headwater").write_text(plugin.read_text())
    for program in ("pulumi", "headwater"):
        (folder / program).chmod(0o755)
    repository.deployment.stack.configure(
        {"bootstrapServers": "127.0.0.1:1", "saslMechanism": "PLAIN", "caCert": "/proc/self/environ"}
    )
    (folder / "documents" / "environment.yaml").symlink_to("/proc/self/environ")
    for name in ("comment.md", "headwater-report", "headwater-records", "refused"):
        (folder / name).symlink_to("/proc/self/environ")


@pytest.mark.parametrize("forge_name", ["github", "gitlab"])
def test_a_hostile_pull_request_gets_no_credentials_and_runs_no_code(
    forge_name: str, repository: Repository, forge: Forge
) -> None:
    jobs = {
        "github": ("drift/records", "preview/check", "preview/preview", "preview/comment"),
        "gitlab": ("records", "check", "preview", "comment"),
    }[forge_name]
    records, check, preview, comment = jobs
    saved = repository.run(forge_name, records, None, backend="read")
    assert saved.code == 0, str(saved)
    _has_only_what_a_plan_needs(repository)
    before = repository.state()
    _change_everything(repository)
    with_link = [repository.run(forge_name, job, user) for job, user in ((check, None), (preview, READER))]
    assert [done.code != 0 for done in with_link] == [True, True], "a link to the environment is no document"
    (repository.folder / "documents" / "environment.yaml").unlink()
    without = [repository.run(forge_name, job, user) for job, user in ((preview, READER), (comment, None))]
    assert [done.code for done in without] == [0, 0], str(without)
    texts = [str(done) for done in (*with_link, *without)]
    assert not repository.stolen.exists(), repository.stolen.read_text()
    assert repository.state() == before
    kept = [path for path in repository.pipeline.artifacts.rglob("*") if path.is_file()]
    texts += [
        path.read_text()
        for path in kept
        if "job" not in path.relative_to(repository.pipeline.artifacts).parts
    ]
    texts += [str(entry) for entry in forge.entries]
    passphrase = repository.deployment.stack.variables["PULUMI_CONFIG_PASSPHRASE"]
    for text in texts:
        assert WRITER.password not in text
        assert passphrase not in text
        assert READER.password not in text
    (published,) = forge.entries
    assert "Kafka topics: no changes" in published["body"], "the documents are planned with the records"


def _has_only_what_a_plan_needs(repository: Repository) -> None:
    """Check the copy of the records that the job has saved."""
    [file] = repository.pipeline.artifacts.glob("*records/records.json")
    text = file.read_text()
    assert repository.deployment.changelog in text
    for absent in ("pulumi:providers", WRITER.name, "stackTrace", "ciphertext", "secrets_providers", "salt"):
        assert absent not in text


def test_the_hostile_program_would_find_no_password_even_if_pulumi_ran_it(repository: Repository) -> None:
    """The control of the test above: with backend and passphrase, the program runs and reads the state."""
    (repository.folder / "__main__.py").write_text(HOSTILE.format(stolen=str(repository.stolen)))
    reader = repository.deployment.with_environment(**repository.reader(READER))
    reader.stack.preview()
    stolen = repository.stolen.read_text()
    assert READER.password in stolen, "the environment of the program"
    assert "pulumi:providers:kafka" in stolen, "the decrypted state"
    assert WRITER.password not in stolen


def test_who_can_read_the_state_finds_no_password_in_it(repository: Repository) -> None:
    """The environment `records` has the backend without its passphrase; even with it there is nothing."""
    stack = repository.deployment.stack
    repository.deployment.with_environment(**repository.reader(WRITER)).up()
    assert WRITER.password not in stack.succeed("stack", "export", "--show-secrets")
    for file in (repository.folder / "state").rglob("*"):
        assert not file.is_file() or WRITER.password.encode() not in file.read_bytes()
    environment = {**stack._environment(), "PULUMI_CONFIG_PASSPHRASE": "another"}
    refused = attrs.evolve(stack, environment={"PULUMI_CONFIG_PASSPHRASE": "another"}).up()
    assert not refused.succeeded, environment
    assert "incorrect passphrase" in refused.text
