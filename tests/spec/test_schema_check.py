"""The quick check of documents and policies finds the same as the validator that names violations."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from infra.spec.schema import TOPOLOGY, published_schema
from infra.spec.schema_check import _KEYWORDS, ANNOTATIONS, fits
from infra.spec.violations import find_violations
from infra.spec.yaml_reader import read_yaml
from tests.spec.generated import damaged, documents
from tests.spec.test_schema import schemas

EXAMPLES = sorted((Path(__file__).parents[2] / "topology_schemas/examples").rglob("*.yaml"))


@pytest.mark.parametrize("name", [TOPOLOGY, "policies.v1"])
def test_each_keyword_is_checked(name: str) -> None:
    used = {keyword for _, part in schemas(published_schema(name)) for keyword in part}
    assert used <= {"$ref"} | _KEYWORDS.keys() | ANNOTATIONS


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_fit(example: Path) -> None:
    documents, _ = read_yaml(example.read_text(), str(example))
    policies = example.stem == "headwater-policies"
    assert documents
    assert all(fits(each.data, "policies.v1" if policies else TOPOLOGY) for each in documents)


@given(damaged() | documents())
@settings(max_examples=3 * settings().max_examples)
def test_what_fits_has_no_violations(data: Any) -> None:  # noqa: ANN401 - any value
    assert fits(data, TOPOLOGY) is not any(find_violations(data))


@pytest.mark.parametrize("value", [0, 1, 0.0, "", None, [], {}])
def test_other_values_are_not_booleans(value: object) -> None:
    data = {"application": {"id": "shop", "setup": {"adopt": value}}, "topology": []}
    assert not fits(data, TOPOLOGY)


def test_long_lists_of_mappings_are_left_to_the_validator() -> None:
    """Comparing each pair of many mappings would take too long."""

    def process(stores: int) -> dict[str, Any]:
        named = [{"name": f"store-{number}"} for number in range(stores)]
        step = {"process": {"from": "orders", "stores": named}}
        return {
            "application": {"id": "shop"},
            "topology": [{"stream": {"topic": "orders", "as": "orders"}}, step],
        }

    assert fits(process(100), TOPOLOGY)
    assert not fits(process(101), TOPOLOGY)


def test_a_document_without_problems_does_not_import_jsonschema() -> None:
    """The import takes longer than reading the document."""
    program = (
        "import sys\n"
        "from infra.spec import load_text\n"
        "text = 'application: {id: shop}\\ntopology: [{stream: {topic: orders}}]'\n"
        "assert load_text(text, 'shop.yaml').documents\n"
        "assert 'infra.spec.schema_problems' in sys.modules\n"
        "assert 'jsonschema' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
