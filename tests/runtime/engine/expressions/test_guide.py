"""The guide lists every function, and no other. `UPDATE_GOLDEN=1` rewrites its table."""

import os
import re
from pathlib import Path

from headwater_spark.engine.expressions.forms import FORMS
from headwater_spark.engine.expressions.functions import arrays, encodings, numbers, strings, times

GUIDE = Path(__file__).parents[4] / "docs" / "expressions.md"
FAMILIES = {
    "choices, objects, lambdas": FORMS,
    "strings": strings.FUNCTIONS,
    "numbers, casts": numbers.FUNCTIONS,
    "arrays, objects": arrays.FUNCTIONS,
    "dates, times": times.FUNCTIONS,
    "digests, encodings, JSON in strings": encodings.FUNCTIONS,
}
_TABLE = re.compile(r"(?<=\| family \| functions \|\n\|---\|---\|\n).*?(?=\n\n)", re.DOTALL)


def test_the_guide_lists_the_functions() -> None:
    rows = "\n".join(
        f"| {family} | {', '.join(f'`{name}`' for name in sorted(functions))} |"
        for family, functions in FAMILIES.items()
    )
    text = GUIDE.read_text(encoding="utf-8")
    if "UPDATE_GOLDEN" in os.environ:
        text = _TABLE.sub(lambda _: rows, text)
        GUIDE.write_text(text, encoding="utf-8")
    found = _TABLE.search(text)
    assert found is not None
    assert found[0] == rows
