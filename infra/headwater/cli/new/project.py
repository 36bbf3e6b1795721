"""The files of a new project: their paths and contents. All of them are written, or none.

`streams_project_files` adds an application of Kafka Streams on the JVM whose internal topics are declared.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

import attrs

from headwater.model.problems import Location, Problem, ProblemCode, ProblemsError, first_names
from headwater.model.versions import DEFAULT_VERSION
from headwater.toolchain.streams_jar import VERSION

POLICIES = "headwater-policies.yaml"
_UPGRADE = (
    "# To upgrade Headwater, run `headwater new` of its new version, and copy this file and HEADWATER.\n"
)
_PINNED_WHEEL = re.compile(r"(https|file)://[^\s#]+\.whl#sha256=[0-9a-f]{64}")
_GITHUB = ("headwater-preview.yml", "headwater-up.yml", "headwater-drift.yml")
_GITLAB = "headwater.gitlab-ci.yml"


class Forge(StrEnum):
    """Where the repository is hosted, which decides the format of its workflows."""

    GITHUB = "github"
    GITLAB = "gitlab"
    NONE = "none"


@attrs.frozen
class Example:
    """A document in `files/`, and the partition counts of its source topics."""

    document: str
    sources: str


EXAMPLES: Mapping[str, Example] = {"orders": Example("orders.yaml", "orders=2")}


@attrs.frozen(kw_only=True)
class Project:
    """What the user chose. `wheel` is the URL of Headwater's wheel with its hash."""

    name: str
    wheel: str
    forge: Forge = Forge.GITHUB
    example: Example = EXAMPLES["orders"]


def wheel_of(direct_url: str) -> str:
    """Return the URL of the wheel in a `direct_url.json` (PEP 610) with its hash, or "": it is not known.

    A wheel of a package index has no such file. Its name alone is not used: `headwater` is not registered in
    the public index, so anyone could publish a package of that name.
    """
    content = json.loads(direct_url) if direct_url else {}
    url, archive = str(content.get("url", "")), content.get("archive_info") or {}
    digest = (archive.get("hashes") or {}).get("sha256") or str(archive.get("hash", "")).removeprefix(
        "sha256="
    )
    found = f"{url.partition('#')[0]}#sha256={digest}"
    return found if is_pinned_wheel(found) else ""


def is_pinned_wheel(url: str) -> bool:
    """Return whether this is the URL of a wheel with its hash, and no one can change it on the way."""
    return _PINNED_WHEEL.fullmatch(url) is not None


def project_files(project: Project, template: Callable[[str], str]) -> Mapping[str, str]:
    """Return path → content; `template` reads a file of `files/`."""
    name = {"PROJECT_NAME": project.name}
    return {
        ".gitignore": template("gitignore"),
        "Pulumi.yaml": fill_template(template("Pulumi.yaml"), name),
        "Pulumi.local.yaml": template("Pulumi.local.yaml"),
        "Pulumi.production.yaml": template("Pulumi.production.yaml"),
        "README.md": fill_template(template("README.md"), {**name, **_workflow_texts(project.forge)}),
        "__main__.py": template("program.txt"),
        POLICIES: template(POLICIES),
        "requirements.txt": f"{_UPGRADE}headwater @ {project.wheel}\n{template('requirements.txt')}",
        "requirements-spark.txt": f"{_UPGRADE}-r requirements.txt\nheadwater[spark] @ {project.wheel}\n"
        + template("requirements-spark.txt"),
        f"topologies/{project.example.document}": template(project.example.document),
        **dict(_workflow_files(project, template)),
    }


def _workflow_files(project: Project, template: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    settings = {
        'HEADWATER: "" #': f"HEADWATER: {project.wheel} #",
    }
    checks = {
        'SOURCES: "" #': f"SOURCES: {project.example.sources} #",
        'POLICIES: "" #': f"POLICIES: {POLICIES} #",
    }
    if project.forge is Forge.GITHUB:
        for file in _GITHUB:
            text = template(f"workflows/github/{file}")
            yield (
                f".github/workflows/{file}",
                fill_template(text, settings | (checks if "SOURCES" in text else {})),
            )
    elif project.forge is Forge.GITLAB:
        yield f".gitlab/{_GITLAB}", fill_template(template(f"workflows/gitlab/{_GITLAB}"), settings | checks)
        yield ".gitlab-ci.yml", template("gitlab-ci.yml")


def _workflow_texts(forge: Forge) -> Mapping[str, str]:
    folder, what = {
        Forge.GITHUB: ("`.github/workflows/`", "pull request"),
        Forge.GITLAB: ("`.gitlab-ci.yml`, `.gitlab/`", "merge request"),
        Forge.NONE: ("", ""),
    }[forge]
    if not folder:
        return {"WORKFLOW_ROW\n": "", "WORKFLOW_STEP\n": ""}
    row = f"| {folder} | a comment on each {what}, `pulumi up` after approval, nightly drift reports |"
    step = (
        "5. Create the environments `preview`, `records`, `production` and `alerts` with their secrets, and",
        "   restrict `records` and `production` to the default branch. Check the settings at the top of each",
        f"   file in {folder}. Merge them, and start the workflow of drift once: it saves",
        f"   the setup records. From then on, each {what} shows what it changes.",
    )
    return {"WORKFLOW_ROW": row, "WORKFLOW_STEP": "\n".join(step)}


def fill_template(text: str, values: Mapping[str, str]) -> str:
    """Replace each key by its value; every key must occur."""
    for key, value in values.items():
        if key not in text:
            raise ValueError(f"a template does not contain {key!r}")
        text = text.replace(key, value)
    return text


KAFKA_STREAMS = str(DEFAULT_VERSION)
"""The version in the build; the exported document belongs to it."""
_NAME = f"headwater-streams-{VERSION}"
_LIBRARY = f"libs/io/headwater/headwater-streams/{VERSION}"
_POM = f"""<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.headwater</groupId>
  <artifactId>headwater-streams</artifactId>
  <version>{VERSION}</version>
</project>
"""
_WORKFLOWS = {
    Forge.GITHUB: (".github/workflows/application.yml", "github.yml"),
    Forge.GITLAB: (".gitlab-ci.yml", "gitlab-ci.yml"),
}


def streams_project_files(
    name: str, forge: Forge, template: Callable[[str], str], jar: bytes
) -> Mapping[str, str | bytes]:
    """Return path → content of a project for the Maven artifact `name`; `template` reads a file of `files/`.

    `jar` is Headwater's library. It is part of the project, as a repository of Maven: no public one has it.
    """
    kafka_streams = {"KAFKA_STREAMS_VERSION": KAFKA_STREAMS}
    versions = {**kafka_streams, "LIBRARY_VERSION": VERSION}
    project = {"PROJECT_NAME": name}
    workflow, source = _WORKFLOWS.get(forge, ("", ""))
    row = {
        f"WORKFLOW_ROW{'' if workflow else chr(10)}": f"| `{workflow}` | builds each change |"
        if workflow
        else ""
    }
    library = {"LIBRARY_FOLDER": _LIBRARY, "LIBRARY_NAME": _NAME}
    package = "java/com/example/orders"
    return {
        ".gitignore": template("streams/gitignore"),
        "README.md": fill_template(template("streams/README.md"), {**row, **project, **versions, **library}),
        "pom.xml": fill_template(template("streams/pom.xml"), {**project, **versions}),
        f"src/main/{package}/Orders.java": template("streams/Orders.java"),
        "src/main/resources/application.properties": template("streams/application.properties"),
        f"src/test/{package}/OrdersTest.java": template("streams/OrdersTest.java"),
        "topologies/orders.yaml": fill_template(template("streams/orders.yaml"), kafka_streams),
        f"{_LIBRARY}/{_NAME}.pom": _POM,
        f"{_LIBRARY}/{_NAME}.jar": jar,
        **({workflow: template(f"streams/{source}")} if workflow else {}),
    }


_PROJECT_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_TOLERATED = frozenset({".git", ".venv"})
"""What a folder may contain: a repository without files, and the environment with Headwater."""
_WHY = "Nothing has been written."


def read_template(name: str) -> str:
    return files("headwater.cli.new").joinpath("files", name).read_text(encoding="utf-8")


def check_name(name: str) -> None:
    """Raise `ProblemsError` if `name` cannot be the name of a Pulumi project or of a Maven artifact."""
    if not _PROJECT_NAME.fullmatch(name):
        raise ProblemsError(
            [
                Problem(
                    code=ProblemCode.PROJECT_NOT_CREATED,
                    summary=f"{name!r} cannot be the name of a project.",
                    expected="letters, digits, `-`, `_` and `.`, at most 100 characters",
                    found=name or "an empty name",
                    why=_WHY,
                    fix="Choose another folder, or another name by --name.",
                )
            ]
        )


def write_project(folder: Path, contents: Mapping[str, str | bytes]) -> None:
    """Write path → content below `folder`, which is created if it does not exist.

    Raises:
        ProblemsError: The folder is not empty, or cannot be written. Files that were written are removed.
    """
    written: list[Path] = []
    try:
        if found := sorted(path.name for path in _list_entries(folder) if path.name not in _TOLERATED):
            raise ProblemsError([_not_empty(folder, found)])
        for path, content in contents.items():
            file = folder / path
            for parent in reversed([parent for parent in file.parents if not parent.exists()]):
                parent.mkdir()
                written.append(parent)
            written.append(file)
            if isinstance(content, str):
                file.write_text(content, encoding="utf-8", newline="")
            else:
                file.write_bytes(content)
    except OSError as error:
        _remove_paths(written)
        raise ProblemsError([_not_writable(folder, error)]) from None


def _list_entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


def _remove_paths(paths: list[Path]) -> None:
    for path in reversed(paths):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


def _not_empty(folder: Path, found: list[str]) -> Problem:
    shown = first_names(found, 3)
    return Problem(
        code=ProblemCode.PROJECT_NOT_CREATED,
        summary=f"The folder {folder} is not empty.",
        expected="a folder that does not exist or is empty, except for .git and .venv",
        found=shown,
        why="Existing files are never overwritten. " + _WHY,
        fix="Choose another folder. To use an existing repository, create the project in a new folder and "
        "move the files.",
        location=Location(str(folder)),
    )


def _not_writable(folder: Path, error: OSError) -> Problem:
    return Problem(
        code=ProblemCode.PROJECT_NOT_CREATED,
        summary=f"The project cannot be written to {folder}.",
        expected="a folder in which this user can create files",
        found=f"{error.strerror or error}: {error.filename}" if error.filename else str(error),
        why=_WHY,
        fix="Choose another folder, or change the permissions of this one.",
        location=Location(str(folder)),
    )
