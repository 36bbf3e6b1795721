"""The example documents, compiled."""

from functools import cache
from pathlib import Path

from headwater.compiler import compile_documents
from headwater.model.compiled import CompiledApplication
from headwater.spec import load_documents

EXAMPLES = Path(__file__).parents[2] / "topology_schemas" / "examples"
COUNTS = {"orders": 6, "customers": 6, "payments": 6, "stock": 3, "open-orders": 6}


@cache
def compiled_examples() -> tuple[CompiledApplication, ...]:
    loaded = load_documents(
        [EXAMPLES / f"{name}.yaml" for name in ("fulfilment", "order-enrichment", "revenue-by-category")]
    )
    assert not loaded.problems
    return compile_documents(loaded.documents, COUNTS)
