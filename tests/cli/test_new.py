"""`headwater new`: the files of a new repository pass Headwater's own checks, and nothing is overwritten."""

import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from headwater.cli.main import main
from headwater.cli.new.project import EXAMPLES, Forge, wheel_of
from headwater.model.problems import errors
from headwater.pulumi.settings import stack_settings
from tests.locks import closure, locked
from tests.toolchain.programs import ensure_actionlint
from tests.workflows.scripts import read

_ROOT = Path(__file__).parents[2]
_FILES = _ROOT / "infra" / "headwater" / "cli" / "new" / "files"
_GOLDEN = Path(__file__).parent / "golden"
_BIN = Path(sys.prefix) / "bin"
_FORGES = [forge.value for forge in Forge]

Golden = Callable[[Path, str], None]


WHEEL = f"https://example.com/headwater-0.1.0-py3-none-any.whl#sha256={'ab' * 32}"


def run(*arguments: str | Path) -> Result:
    """Run the command; `new` gets a wheel, because Headwater is not installed from one here."""
    given = ("--wheel", WHEEL) if arguments[0] == "new" and "--wheel" not in arguments else ()
    return CliRunner().invoke(main, [*map(str, arguments), *given])


def created(folder: Path, *options: str) -> Path:
    result = run("new", folder, *options)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return created(tmp_path_factory.mktemp("new") / "shop-topics")


def files_of(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("forge", _FORGES)
def test_the_command_lists_the_files_that_it_creates(forge: str, tmp_path: Path, golden: Golden) -> None:
    result = run("new", tmp_path / "shop-topics", "--ci", forge)
    assert result.exit_code == 0
    golden(_GOLDEN / f"new_{forge}.txt", result.output.replace(str(tmp_path), ""))
    listed = re.findall(r"^  (.+)$", result.output, re.MULTILINE)
    assert sorted(listed) == files_of(tmp_path / "shop-topics")


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_documents_and_policies_are_valid(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(created(tmp_path / "shop-topics", "--example", example))
    policies = ("--policies", "headwater-policies.yaml")
    checked = run("validate", "topologies", *policies)
    assert (checked.exit_code, checked.stderr) == (0, "")
    sources = [word for source in EXAMPLES[example].sources.split() for word in ("--partitions", source)]
    compiled = run("compile", "topologies", *sources, *policies)
    assert (compiled.exit_code, compiled.stderr) == (0, "")


@pytest.mark.parametrize("stack", ["local", "production"])
def test_the_settings_of_the_stacks_are_accepted(
    stack: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    config = yaml.safe_load(Path(f"Pulumi.{stack}.yaml").read_text())["config"]
    values = {key.removeprefix("headwater:"): value for key, value in config.items()}
    credentials = {"HEADWATER_SASL_USERNAME": "headwater", "HEADWATER_SASL_PASSWORD": "secret"}
    settings = stack_settings(values, environment=credentials if stack == "production" else {})
    assert not errors(settings.problems)
    assert settings.connection is not None
    assert [document.application.id for document in settings.documents] == ["order-counts"]
    assert settings.policy.policies


def test_the_pulumi_project_has_the_name_of_the_folder_and_the_program_of_this_repository(
    project: Path, tmp_path: Path
) -> None:
    named = yaml.safe_load((project / "Pulumi.yaml").read_text())
    assert named["name"] == "shop-topics"
    assert (project / "__main__.py").read_text() == (_ROOT / "__main__.py").read_text()
    other = created(tmp_path / "folder", "--name", "other.name_1")
    assert yaml.safe_load((other / "Pulumi.yaml").read_text())["name"] == "other.name_1"


def test_requirements_are_those_of_the_lock_with_hashes(project: Path, golden: Golden) -> None:
    base, spark = closure({"headwater"}), closure({"headwater"}, "spark")
    for file, names in (("requirements.txt", base), ("requirements-spark.txt", spark - base)):
        pinned = locked(names - {"headwater"})
        assert pinned.count("--hash=sha256:") >= len(names) - 1
        golden(_FILES / file, pinned)
        assert (project / file).read_text().endswith(pinned)
    assert f"\nheadwater @ {WHEEL}\n" in (project / "requirements.txt").read_text()
    text = (project / "requirements-spark.txt").read_text()
    assert f"\n-r requirements.txt\nheadwater[spark] @ {WHEEL}\n" in text


def test_workflows_install_the_same_wheel_and_check_the_example(project: Path, tmp_path: Path) -> None:
    gitlab = created(tmp_path / "merge", "--ci", "gitlab")
    settings = [read(file)["env"] for file in sorted((project / ".github" / "workflows").iterdir())]
    settings.append(read(gitlab / ".gitlab" / "headwater.gitlab-ci.yml")["variables"])
    assert len(settings) == 4
    assert {each["HEADWATER"] for each in settings} == {WHEEL}
    checks = [(each["SOURCES"], each["POLICIES"]) for each in settings if "SOURCES" in each]
    assert checks == [("orders=2", "headwater-policies.yaml")] * 2
    included = yaml.safe_load((gitlab / ".gitlab-ci.yml").read_text())["include"]
    assert [(gitlab / each["local"]).is_file() for each in included] == [True]


@pytest.mark.slow
def test_the_workflows_pass_actionlint_and_the_schema_of_gitlab(project: Path, tmp_path: Path) -> None:
    shellcheck = shutil.which("shellcheck", path=str(_BIN))
    workflows = sorted((project / ".github" / "workflows").iterdir())
    gitlab = created(tmp_path / "merge", "--ci", "gitlab") / ".gitlab" / "headwater.gitlab-ci.yml"
    schema = [
        str(_BIN / "check-jsonschema"),
        "--builtin-schema",
        "vendor.gitlab-ci",
        "--data-transform",
        "gitlab-ci",
    ]
    linter = [str(ensure_actionlint()), "-shellcheck", shellcheck or "", "-pyflakes="]
    for command in ([*linter, *map(str, workflows)], [*schema, str(gitlab)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_wheel_of_this_machine_is_pinned_by_its_hash(tmp_path: Path) -> None:
    file = tmp_path / "headwater-0.1.0-py3-none-any.whl"
    file.write_bytes(b"wheel")
    url = f"file://{file}#sha256={hashlib.sha256(b'wheel').hexdigest()}"
    folder = created(tmp_path / "local", "--wheel", str(file))
    assert f"\nheadwater @ {url}\n" in (folder / "requirements.txt").read_text()
    assert read(folder / ".github/workflows/headwater-up.yml")["env"]["HEADWATER"] == url
    assert "Headwater is installed from a file" in run("new", tmp_path / "noted", "--wheel", file).stderr


@pytest.mark.parametrize(
    "wheel",
    [
        "headwater-0.1.0",
        "headwater==0.1.0",
        "none.whl",
        WHEEL.partition("#")[0],
        WHEEL.replace("https:", "http:"),
        WHEEL[:-1],
        WHEEL.replace("sha256", "md5"),
        WHEEL.replace(".whl", ".tar.gz"),
        f"{WHEEL} --index-url https://example.com",
    ],
)
def test_a_wheel_that_another_could_replace_is_refused(wheel: str, tmp_path: Path) -> None:
    result = run("new", tmp_path / "none", "--wheel", wheel)
    assert result.exit_code == 64
    assert "#sha256=HASH" in " ".join(result.stderr.split())
    assert not (tmp_path / "none").exists()


def test_nothing_is_created_if_the_wheel_is_not_known(tmp_path: Path) -> None:
    """The name of the package is not registered: whoever registers it would get the credentials."""
    result = CliRunner().invoke(main, ["new", str(tmp_path / "none")])
    assert result.exit_code == 1
    assert "error[ProjectNotCreated] The wheel of this Headwater is not known." in result.stderr
    assert not (tmp_path / "none").exists()


def test_no_text_advises_to_install_the_package_by_its_name() -> None:
    searched = subprocess.run(
        [
            *("git", "grep", "-nE", r"pip install.* ['\"]?headwater(\[\w+\])?['\"]?( |`|$|[=<>~])", "--"),
            *("README.md", "docs", "deploy", "infra", "spark_jobs", ":!docs/own-repository.md"),
        ],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line for line in searched.stdout.splitlines() if " @ " not in line] == []


def test_no_file_names_the_package_without_its_wheel(project: Path, tmp_path: Path) -> None:
    gitlab = created(tmp_path / "merge", "--ci", "gitlab")
    for folder in (project, gitlab):
        for file in (path for path in folder.rglob("*") if path.is_file()):
            text = file.read_text()
            assert not re.search(r"headwater(\[\w+\])? *[=~<>]=", text), file
            assert not re.search(r"pip install (?!-r requirements|--no-deps --only-binary)", text), file


def test_the_wheel_that_is_installed_is_the_default() -> None:
    url, digest = WHEEL.split("#sha256=")
    for info in ({"hash": f"sha256={digest}"}, {"hashes": {"sha256": digest}}):
        assert wheel_of(json.dumps({"archive_info": info, "url": url})) == WHEEL
    assert wheel_of(json.dumps({"archive_info": {}, "url": url})) == ""
    assert wheel_of(json.dumps({"archive_info": {"hash": f"sha256={digest}"}, "url": "http://a/b.whl"})) == ""
    assert wheel_of(json.dumps({"dir_info": {"editable": True}, "url": "file:///src/headwater"})) == ""
    assert wheel_of("") == ""


@pytest.mark.parametrize("kept", [[], [".git", ".venv"]])
def test_an_empty_folder_with_a_repository_and_an_environment_is_used(
    kept: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shop-topics"
    folder.mkdir()
    for name in kept:
        (folder / name).mkdir()
    monkeypatch.chdir(folder)
    created(Path())
    assert yaml.safe_load((folder / "Pulumi.yaml").read_text())["name"] == "shop-topics"


def test_refused_folders_and_names(tmp_path: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("full").mkdir()
    for name in ("README.md", "a", "b", "c"):
        Path("full", name).write_text("mine")
    Path("file").write_text("mine")
    texts = []
    for arguments in (
        ["full"],
        ["name with spaces"],
        ["new", "--name", ""],
        ["file"],
        ["file/below"],
        ["/proc/none"],
    ):
        before = sorted(tmp_path.rglob("*"))
        result = run("new", *arguments)
        assert result.exit_code == 1, result.output
        assert sorted(tmp_path.rglob("*")) == before
        texts.append(f"$ headwater new {shlex.join(arguments)}\n{result.stderr}")
    golden(_GOLDEN / "new_refused.txt", "\n".join(texts))
    assert Path("full", "README.md").read_text() == "mine"


def test_nothing_remains_if_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_text

    def fail(path: Path, *arguments: str, **options: str) -> int:
        if path.name == "orders.yaml":
            write(path, "half", encoding="utf-8")
            raise OSError(28, "No space left on device", str(path))
        return write(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", fail)
    result = run("new", tmp_path / "deep" / "shop")
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr
    assert not list(tmp_path.iterdir())
