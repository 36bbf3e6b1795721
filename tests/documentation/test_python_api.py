"""The page of the Python API lists importable names, and all names that the public modules export."""

import re
from importlib import import_module
from pathlib import Path

import pytest

_PAGE = (Path(__file__).parents[2] / "docs" / "python-api.md").read_text(encoding="utf-8")
_LISTED = re.findall(r"^\| `([\w.]+)`(?:: ([^|]+))? \|", _PAGE, re.MULTILINE)


@pytest.mark.parametrize(("module", "names"), _LISTED)
def test_listed_names_are_exported(module: str, names: str) -> None:
    exported = set(import_module(module).__all__)
    assert set(re.findall(r"`(\w+)`", names)) <= exported


def test_every_public_module_of_the_runtime_is_listed() -> None:
    folder = Path(import_module("headwater_spark").__path__[0])
    public = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")}
    listed = {module.rpartition(".")[2] for module, _ in _LISTED}
    assert public - listed == {"processor_expansion"}, "its requests come over HTTP"
