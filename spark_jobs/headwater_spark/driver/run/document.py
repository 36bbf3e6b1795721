"""The only document of an application's file."""

from pathlib import Path

from headwater.model.problems import Problem, ProblemCode, ProblemsError, errors
from headwater.model.topology import TopologyDocument
from headwater.spec import load_documents


def load_document(file: Path) -> TopologyDocument:
    """Return the only document of `file`.

    Raises:
        ProblemsError: The file holds no document or several, or the document is not valid.
    """
    loaded = load_documents([file])
    if wrong := errors(loaded.problems):
        raise ProblemsError(wrong)
    if len(loaded.documents) != 1:
        raise ProblemsError([_not_one_document(file, len(loaded.documents))])
    return loaded.documents[0]


def folder_of(file: Path) -> Path:
    """Return the folder that the paths of schema files in a document are relative to."""
    return file.parent if file.is_file() else file


def _not_one_document(file: Path, found: int) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        summary="One process runs one application.",
        expected="one document",
        found=f"{found} in {file}",
        why="Each application is a client of its own, with its own state, checkpoints and restarts.",
        fix="Pass the file of one document; run the other applications as separate processes.",
    )
