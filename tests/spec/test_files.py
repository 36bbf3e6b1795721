"""The documents that files, folders and patterns select."""

import os
from pathlib import Path

import pytest

from headwater.model.problems import ProblemCode
from headwater.spec import load_documents


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.yaml", "a.yml", "sub/c.json", "sub/deeper/d.yaml", ".hidden.yaml", ".git/e.yaml"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        identity = file.stem.strip(".")
        file.write_text(
            f'{{"application": {{"id": "{identity}"}}, "topology": [{{"stream": {{"topic": "t"}}}}]}}'
        )
    (tmp_path / "notes.txt").write_text("not a document")
    (tmp_path / "topology.v1.schema.json").write_text("{}")
    return tmp_path


def ids(*paths: Path) -> list[str]:
    loaded = load_documents(paths)
    assert loaded.problems == ()
    return [document.application.id for document in loaded.documents]


def test_a_folder_selects_all_documents_below_it(folder: Path) -> None:
    assert ids(folder) == ["a", "b", "c", "d"]


def test_a_pattern_selects_the_documents_that_it_matches(folder: Path) -> None:
    assert ids(folder / "*.y*ml") == ["a", "b"]
    assert ids(folder / "**/*.yaml") == ["b", "d"]
    assert ids(folder / "su?") == ["c", "d"]


def test_a_file_that_is_selected_several_times_is_read_once(folder: Path) -> None:
    (folder / "link.yaml").symlink_to(folder / "b.yaml")

    assert ids(folder / "b.yaml", folder, folder / "sub/../b.yaml", folder / "link.yaml") == [
        "b",
        "a",
        "c",
        "d",
    ]


OTHER_FILES = {
    "Pulumi.yaml": "name: orders\nruntime: {name: python}\n",
    "Pulumi.local.yaml": "config: {headwater:documents: topologies}\n",
    "Pulumi.team-a.production.yml": "config: {}\n",
    "headwater-policies.yaml": "policies: [topicPartitions: {max: 3}]\n",
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_settings_of_a_stack_and_policies_are_no_documents(name: str, folder: Path) -> None:
    """Followed: the folder is named, which skips the file."""
    (folder / "sub" / name).write_text(OTHER_FILES[name])
    (problem,) = load_documents([folder / "sub" / name]).problems
    assert problem.code is ProblemCode.UNREADABLE_DOCUMENT
    assert problem.summary.startswith(f"`{name}` cannot be used. It has ")
    assert problem.fix == (
        "Name the files of the documents, or their folder: in a folder, this file is skipped."
    )
    assert ids(folder / "sub") == ["c", "d"]


def test_a_document_with_the_name_of_another_file_is_read_if_it_is_named(folder: Path) -> None:
    file = folder / "Pulumi.orders.yaml"
    file.write_text("application: {id: orders}\ntopology: [{stream: {topic: t}}]\n")
    assert ids(file) == ["orders"]


def test_an_existing_file_is_not_interpreted_as_a_pattern(folder: Path) -> None:
    (folder / "[x].yaml").write_text("application: {id: x}\ntopology: [{stream: {topic: t}}]\n")

    assert ids(folder / "[x].yaml") == ["x"]


def test_a_folder_with_a_link_to_itself_is_read_once(folder: Path) -> None:
    (folder / "sub/loop").symlink_to(folder)

    assert ids(folder) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("name", ["missing.yaml", "*.toml", "empty", "", "x" * 5_000, "a\0b", "[", "**/[!"])
def test_a_path_without_documents_is_a_problem(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (problem,) = load_documents([tmp_path / name]).problems

    assert problem.code is ProblemCode.UNREADABLE_DOCUMENT
    assert problem.found == "nothing"


def test_an_unreadable_folder_is_a_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("deeper"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    loaded = load_documents([folder])

    assert [document.application.id for document in loaded.documents] == ["a", "b", "c"]
    assert [problem.summary for problem in loaded.problems] == ["`deeper` cannot be used. Permission denied."]


def test_a_broken_link_is_a_problem(tmp_path: Path) -> None:
    link = tmp_path / "gone.yaml"
    link.symlink_to(tmp_path / "missing.yaml")
    (problem,) = load_documents([link]).problems

    assert problem.summary == "`gone.yaml` cannot be used. It cannot be read: No such file or directory."


def test_valid_documents_are_loaded_together_with_invalid_ones(folder: Path) -> None:
    (folder / "b.yaml").write_text("application: [")
    (folder / "sub/c.json").write_text('{"application": {"id": "c"}, "topology": []}')

    loaded = load_documents([folder])

    assert [document.application.id for document in loaded.documents] == ["a", "d"]
    assert [problem.location.file for problem in loaded.problems if problem.location] == [
        str(folder / "b.yaml"),
        str(folder / "sub/c.json"),
    ]


def test_a_duplicate_id_is_reported_with_both_files(folder: Path) -> None:
    (folder / "b.yaml").write_text("application: {id: a}\ntopology: [{stream: {topic: t}}]\n")

    (problem,) = load_documents([folder]).problems

    assert problem.code is ProblemCode.DUPLICATE_APPLICATION
    assert problem.found == f"{folder / 'a.yml'}:1:24 and {folder / 'b.yaml'}:1:19"


def test_thousands_of_ids_are_compared(tmp_path: Path) -> None:
    documents = [f"application: {{id: a-{n}}}\ntopology: [{{stream: {{topic: t}}}}]" for n in range(2_000)]
    (tmp_path / "many.yaml").write_text(
        "\n---\n".join([*documents, "application: {id: a}\ntopology: [{stream: {topic: t}}]"])
    )

    loaded = load_documents([tmp_path])

    assert {problem.code for problem in loaded.problems} == {ProblemCode.APPLICATION_ID_OVERLAP}
    assert len(loaded.problems) == 2_000
