"""The pages about Python: importable names, and unit tests that pass."""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

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
    assert public <= listed


_GUIDE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
_FUNCTIONS, _PROGRAM, _TEST, _TOPICS = re.findall(r"^```python\n(.*?)^```$", _GUIDE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Write the files of the guide, and return the names that its tests define."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "shop_functions", raising=False)
    (tmp_path / "shop_functions.py").write_text(_FUNCTIONS, encoding="utf-8")
    imports = "from headwater.topology import StreamsBuilder\nimport shop_functions\n"
    builder = _PROGRAM[_PROGRAM.index("builder = ") : _PROGRAM.index("with run(")]
    made: dict[str, Any] = {}
    exec(imports + builder, made)  # noqa: S102 - of this repository
    made["document"].write(tmp_path / "topologies" / "shop-totals.yaml")
    exec(_TEST, made)  # noqa: S102 - of this repository
    exec(_TOPICS, made)  # noqa: S102 - of this repository
    return made


_TESTS = ("test_totals_of_each_customer_are_with_tax", "test_orders_without_an_amount_have_no_total")


@pytest.mark.parametrize("name", _TESTS)
def test_the_tests_of_the_guide_pass(guide: dict[str, Any], name: str) -> None:
    guide[name]()


@pytest.mark.parametrize("name", _TESTS)
def test_the_tests_of_the_guide_can_fail(
    guide: dict[str, Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("shop_functions.add_tax", lambda record: record.with_value({"total": 1.0}))
    with pytest.raises(AssertionError):
        guide[name]()
