"""The manifest: documents, the files that they refer to, and their compiled counts, in one file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from headwater.agent.manifest import ManifestFile
from headwater.cli.main import main
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.spec import load_documents
from tests.agent.simulation import ORDERS, RANKS

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "topology_schemas" / "agent-manifest.v1.schema.json"
COUNTS = ("--partitions", "orders=4", "--partitions", "returns=6")
DESCRIBED = """
application: {id: described-app}
describe: {file: described.txt}
"""
TEXT = """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
      --> KSTREAM-SINK-0000000001
    Sink: KSTREAM-SINK-0000000001 (topic: copies)
      <-- KSTREAM-SOURCE-0000000000

"""


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Result]:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "both.yaml").write_text(f"{ORDERS}---\n{RANKS}")
    (documents / "described.yaml").write_text(DESCRIBED)
    (documents / "described.txt").write_text(TEXT)

    def write(*arguments: str) -> Result:
        return CliRunner().invoke(
            main,
            ["agent", "manifest", str(documents), "-o", str(tmp_path / "manifest.json"), *arguments],
        )

    return write


@pytest.fixture
def manifest(tmp_path: Path, written: Callable[..., Result]) -> Path:
    done = written(*COUNTS)
    assert done.exit_code == 0, done.output
    return tmp_path / "manifest.json"


def test_manifest_contains_sources_and_expected_counts(manifest: Path) -> None:
    document = json.loads(manifest.read_text())
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)
    assert document["sources"] == {"orders": 4, "returns": 6}
    assert document["expected"]["totals-app"] == {
        "totals": 6,
        "totals-app-by-customer-repartition": 6,
        "totals-app-counts-changelog": 6,
    }
    assert document["expected"]["ranks-app"] == {"ranks-app-latest-changelog": 6}


def test_manifest_documents_need_no_other_file(manifest: Path, tmp_path: Path) -> None:
    originals = load_documents([tmp_path / "documents"]).documents
    (tmp_path / "documents" / "described.txt").unlink()
    read = ManifestFile(manifest).current()
    assert [document.application.id for document in read] == [
        document.application.id for document in originals
    ]
    assert [document.application.config for document in read] == [
        document.application.config for document in originals
    ]
    assert [[step.operator for step in document.steps] for document in read] == [
        [step.operator for step in document.steps] for document in originals
    ]
    assert [document.sinks for document in read] == [document.sinks for document in originals]


def test_manifest_with_other_counts_is_refused(manifest: Path) -> None:
    document = json.loads(manifest.read_text())
    document["expected"]["ranks-app"]["ranks-app-latest-changelog"] = 7
    manifest.write_text(json.dumps(document))
    with pytest.raises(ProblemsError) as refused:
        ManifestFile(manifest)
    (problem,) = refused.value.problems
    assert problem.code is ProblemCode.INVALID_CONFIG
    assert "ranks-app" in problem.summary


@pytest.mark.parametrize(
    "damage",
    [
        lambda document: document.pop("documents"),
        lambda document: document.update(manifestVersion=2),
        lambda document: document["sources"].update(orders=0),
        lambda document: document["documents"][0].pop("topology"),
    ],
)
def test_damaged_manifest_is_reported_with_location(manifest: Path, damage: Callable[[Any], Any]) -> None:
    document = json.loads(manifest.read_text())
    damage(document)
    manifest.write_text(json.dumps(document))
    with pytest.raises(ProblemsError) as refused:
        ManifestFile(manifest)
    location = refused.value.problems[0].location
    assert location is not None
    assert str(manifest) in location.file


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff", pytest.param("[" * 100_000, id="deep")])
def test_a_manifest_that_cannot_be_read_is_written_again(
    written: Callable[..., Result], tmp_path: Path, text: str
) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ProblemsError) as refused:
        ManifestFile(path)
    (problem,) = refused.value.problems
    assert (
        f"--bootstrap-server BROKER --output {path}`; without a cluster, give the partition count"
        in problem.fix
    )
    assert written(*COUNTS).exit_code == 0
    ManifestFile(path)


def test_no_manifest_without_counts(written: Callable[..., Result], tmp_path: Path) -> None:
    done = written()
    assert done.exit_code == 1
    assert not (tmp_path / "manifest.json").exists()


def test_run_requires_files_or_manifest(manifest: Path) -> None:
    for arguments in ([], [str(manifest), "--manifest", str(manifest)]):
        done = CliRunner().invoke(main, ["agent", "run", *arguments, "--bootstrap-server", "nowhere:1"])
        assert done.exit_code == 64
        assert "one manifest" in done.output
