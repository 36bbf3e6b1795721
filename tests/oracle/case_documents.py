"""Write the document of each recorded case next to it: `python -m tests.oracle.case_documents`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.oracle.case_topologies.translation import translate

CASES = Path(__file__).parent / "cases"
_HEAD = "# By rule from topology.txt: python -m tests.oracle.case_documents\n"


def case_folders() -> list[Path]:
    return sorted(path.parent for path in CASES.glob("*/topology.txt"))


def document_of(case: Path) -> dict[str, Any]:
    return translate((case / "topology.txt").read_text(encoding="utf-8"), case.name, runs=True)


def document_text(document: Mapping[str, Any]) -> str:
    """Return the document as YAML, with one line per call."""
    calls = "".join(f"  - {_flow(step)}\n" for step in document["topology"])
    return f"{_HEAD}application: {_flow(document['application'])}\ntopology:\n{calls}"


def _flow(value: Mapping[str, Any]) -> str:
    if value.keys() == {"id"}:
        return yaml.safe_dump(value, default_flow_style=True, width=10_000).strip()
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000).strip()
    return text[1:-1] if len(value) == 1 else text


if __name__ == "__main__":
    for folder in case_folders():
        (folder / "document.yaml").write_text(document_text(document_of(folder)), encoding="utf-8")
