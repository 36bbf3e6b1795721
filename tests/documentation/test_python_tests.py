"""The unit tests that the guide to Python shows pass with the functions and the topology of the guide."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

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
