"""`headwater import --all` with a fixed survey: options, files, documents and output."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headwater.cli import import_all
from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.compiler import compile_documents
from headwater.kafka import Connection
from headwater.model.cluster import GroupFacts, LiveTopic, Survey
from headwater.report.graph import build_graph, mermaid_text
from headwater.spec import load_documents, load_text

STREAMS_CONFIG = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
SURVEY = Survey(
    "cluster",
    {
        name: LiveTopic(name, "", 2, 1, STREAMS_CONFIG)
        for name in ("in", "shop-x-changelog", "Shop-x-changelog", ".dot-x-changelog", "gone-x-changelog")
    }
    | {"shop-old-changelog": LiveTopic("shop-old-changelog", "", 2, 1, {"cleanup.policy": "compact"})},
    {
        id_: GroupFacts(id=id_, state="Stable", assignor="stream", members=1, subscribed=frozenset({"in"}))
        for id_ in ("shop", "Shop", ".dot", "stateless")
    },
)
Import = Callable[..., Result]


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Import:
    monkeypatch.chdir(tmp_path)

    def surveyed(_: Connection, patterns: Sequence[str], named: Sequence[str]) -> Survey:
        assert patterns
        del named
        return SURVEY

    monkeypatch.setattr(import_all, "survey_cluster", surveyed)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["import", "--all", "--bootstrap-server", "b:9092", *arguments])

    return run


def test_each_application_gets_a_file_with_a_portable_name(imported: Import, tmp_path: Path) -> None:
    done = imported("-o", "new/folder")
    assert done.exit_code == ExitCode.DONE
    written = sorted(file.name for file in (tmp_path / "new/folder").iterdir())
    assert written == ["Shop.yaml", "application.dot.yaml", "shop-2.yaml"]
    loaded = load_documents([tmp_path / "new"])
    assert loaded.problems == ()
    assert {document.application.id for document in loaded.documents} == {"shop", "Shop", ".dot"}
    assert "stateless has no internal topics and needs no document." in done.stdout
    command = "headwater import --jar JAR --topology CLASS::METHOD --application-id"
    for id_, file in (("Shop", "Shop.yaml"), (".dot", "application.dot.yaml"), ("shop", "shop-2.yaml")):
        assert f"complete it from its code: {command} {id_} -o new/folder/{file}" in done.stdout
    assert "Skipped gone-x-changelog: no group has the id of its application." in done.stdout


def test_standard_output_contains_only_the_documents(imported: Import) -> None:
    done = imported("--config", "num.stream.threads=2")
    assert done.exit_code == ExitCode.DONE
    documents = load_text(done.stdout, "all.yaml").documents
    assert [document.application.config for document in documents] == [{"num.stream.threads": "2"}] * 3
    assert "Found 3 applications with 3 internal topics." in done.stderr
    assert imported("-o", "-").stdout.count("\nobserved:\n") == 3


def test_a_second_import_writes_nothing(imported: Import, tmp_path: Path) -> None:
    imported("-o", "found")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "found").iterdir()}
    done = imported("-o", "found")
    assert (done.exit_code, done.stdout.count("already declared in")) == (ExitCode.DONE, 3)
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "found").iterdir()} == before


def test_a_file_that_is_not_a_document_is_not_overwritten(imported: Import, tmp_path: Path) -> None:
    folder = tmp_path / "found"
    folder.mkdir()
    (folder / "shop-2.yaml").symlink_to(tmp_path / "nowhere")
    refused = imported("-o", "found")
    assert refused.exit_code == ExitCode.PROBLEMS
    assert "found/shop-2.yaml" in refused.output
    assert not (tmp_path / "nowhere").exists()


def test_application_id_imports_an_application_without_a_group(imported: Import) -> None:
    assert "id: gone\n" in imported("--application-id", "gone").stdout


def test_topic_option_includes_a_topic_of_an_older_kafka_streams(imported: Import) -> None:
    assert (
        "To include a topic that Kafka Streams created before version 2.5, use --topic." in imported().stderr
    )
    assert "old-changelog" not in imported().stdout
    assert "    old-changelog:\n" in imported("--topic", "shop-old-changelog").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--describe", "-"), "--describe cannot be combined with --all"),
        (("--store", "a=keyValue"), "--store cannot be combined with --all"),
        (("-o", "file"), "'file' is a file; --all requires a folder"),
    ],
)
def test_options_that_cannot_be_combined_are_usage_errors(
    imported: Import, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "file").touch()
    done = imported(*arguments)
    assert done.exit_code == ExitCode.USAGE
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "arguments",
    [(), ("--describe", "-"), ("--describe", "-", "--application-id", "a", "--application-id", "b")],
)
def test_import_requires_all_or_one_description_with_one_id(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, ["import", *arguments], input="")
    assert done.exit_code == ExitCode.USAGE
    assert "or --all" in done.stderr


def test_force_requires_all() -> None:
    done = CliRunner().invoke(
        main, ["import", "--describe", "-", "--application-id", "a", "--force"], input=""
    )
    assert (done.exit_code, "--force cannot be combined with --describe" in done.stderr) == (
        ExitCode.USAGE,
        True,
    )


def test_a_graph_of_an_observed_application_shows_its_topics(imported: Import) -> None:
    compiled = compile_documents(load_text(imported().stdout, "all.yaml").documents[-1:], {})
    picture = mermaid_text(build_graph(compiled, {"in": 2}))
    assert 'topology not known<br/>as observed"' in picture
    assert 'x-changelog<br/>2 partitions"' in picture
    assert 'in<br/>2 partitions"' in picture
