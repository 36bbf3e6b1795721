"""The complete texts of the problems in invalid documents. `UPDATE_GOLDEN=1` rewrites them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.model.problems import Severity
from headwater.spec import load_documents
from tests.spec.rendering import problems_text

FOLDER = Path(__file__).parents[1] / "fixtures/documents/invalid"
DOCUMENTS = sorted(file for file in FOLDER.iterdir() if file.suffix != ".txt")
_WITHOUT_ERRORS = {"ids_overlap_acknowledged"}


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.stem)
def test_mistakes_are_reported(
    file: Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[Path, str], None]
) -> None:
    monkeypatch.chdir(FOLDER)
    loaded = load_documents([Path(file.name)])

    golden(file.with_suffix(".txt"), problems_text(loaded.problems))
    has_errors = any(problem.severity is Severity.ERROR for problem in loaded.problems)
    assert has_errors is (file.stem not in _WITHOUT_ERRORS)


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.stem)
def test_each_problem_has_a_location_a_reason_and_a_fix(file: Path) -> None:
    for problem in load_documents([file]).problems:
        assert problem.location is not None
        assert problem.location.file == str(file)
        assert problem.location.line > 0 or file.stem == "empty"
        assert problem.why.endswith((".", "?"))
        assert problem.fix.endswith((".", "?"))
        assert problem.summary.endswith(".")
