"""Each mistake, and the whole text that its writer gets to read. `UPDATE_GOLDEN=1` rewrites the texts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from infra.model.problems import Severity
from infra.spec import load_documents
from tests.spec.rendering import problems_text

FOLDER = Path(__file__).parents[1] / "fixtures/documents/invalid"
DOCUMENTS = sorted(file for file in FOLDER.iterdir() if file.suffix != ".txt")
_ONLY_TOLD = {"ids_overlap_acknowledged"}


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.stem)
def test_mistakes_are_told(
    file: Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[Path, str], None]
) -> None:
    monkeypatch.chdir(FOLDER)
    loaded = load_documents([Path(file.name)])

    golden(file.with_suffix(".txt"), problems_text(loaded.problems))
    refused = any(problem.severity is Severity.ERROR for problem in loaded.problems)
    assert refused is (file.stem not in _ONLY_TOLD)


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.stem)
def test_every_problem_says_where_why_and_what_to_do(file: Path) -> None:
    for problem in load_documents([file]).problems:
        assert problem.location is not None
        assert problem.location.file == str(file)
        assert problem.location.line > 0 or file.stem == "empty"
        assert problem.why.endswith((".", "?"))
        assert problem.fix.endswith((".", "?"))
        assert problem.summary.endswith(".")
