"""The complete texts of the problems in invalid policy files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.model.problems import errors
from headwater.spec.policies import load_policies
from tests.spec.rendering import problems_text

FOLDER = Path(__file__).parent / "invalid"
FILES = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_mistakes_are_reported(
    file: Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[Path, str], None]
) -> None:
    monkeypatch.chdir(FOLDER)
    loaded = load_policies([Path(file.name)])
    golden(file.with_suffix(".txt"), problems_text(loaded.problems))
    assert errors(loaded.problems)
    assert loaded.policies == ()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_problem_has_a_location_a_reason_and_a_fix(file: Path) -> None:
    for problem in load_policies([file]).problems:
        assert problem.location is not None
        assert problem.location.line > 0 or file.stem == "empty"
        assert problem.why.endswith(".")
        assert problem.fix.endswith((".", "?"))


def test_unreadable_files_are_problems(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_bytes(b"#" * (5 * 1024 * 1024 + 1))
    (tmp_path / "binary.yaml").write_bytes(b"policies: \xff")
    for name in ("missing.yaml", "large.yaml", "binary.yaml", "."):
        (problem,) = load_policies([tmp_path / name]).problems
        assert problem.why == (
            "It was not read: a file of this size could use up the memory of this machine."
            if name == "large.yaml"
            else "Policies that cannot be read cannot be checked, so nothing is planned."
        )
