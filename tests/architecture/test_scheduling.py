"""`make test` schedules the tests that take minutes: one that it does not know would run alone at the end."""

from pathlib import Path

import pytest

from tests.scheduling import is_scheduled

_ROOT = Path(__file__).parents[2]
_SIGNS = ("pytest.mark.broker", "pytest.mark.spark", "spark: SparkSession", "own_broker:")
_LONG = {
    str(path.relative_to(_ROOT))
    for path in sorted((_ROOT / "tests").rglob("test_*.py"))
    if any(sign in path.read_text(encoding="utf-8") for sign in _SIGNS)
}


@pytest.mark.parametrize("path", sorted(_LONG - {"tests/architecture/test_scheduling.py"}))
def test_modules_with_spark_or_brokers_are_scheduled(path: str) -> None:
    assert is_scheduled(path), "add it to tests/scheduling.py"
