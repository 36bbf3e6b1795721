"""The documents of the test cases, without an application."""

from pathlib import Path
from typing import Any

from headwater.compiler import build_nodes
from headwater.compiler.dsl import build_dsl
from headwater.compiler.streams_config import StreamsConfig
from headwater.model.nodes import NodeTopology
from headwater.model.problems import Problem
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from tests.yaml_text import load_yaml

CASES = Path(__file__).parent / "cases"


def texts(family: str) -> list[tuple[str, str]]:
    """Return title and text of each document of a family."""
    found = []
    for text in (CASES / f"{family}.yaml").read_text(encoding="utf-8").split("---\n"):
        title, _, rest = text.partition("\n")
        found.append((title.removeprefix("title: "), rest))
    return found


def whole(text: str) -> dict[str, Any]:
    """Return the document as data, with an application id."""
    data: dict[str, Any] = load_yaml(text)
    data.setdefault("application", {}).setdefault("id", "app")
    return data


def typed(text: str) -> TopologyDocument | tuple[Problem, ...]:
    """Return the document of `text`, or its problems."""
    head = "" if "application:" in text else "application: {id: app}\n"
    text = text.replace("application: {config:", "application: {id: app, config:")
    loaded = load_text(text + head, "case.yaml")
    return loaded.documents[0] if loaded.documents else loaded.problems


def built(text: str) -> NodeTopology:
    """Return the node topology of a document that is valid for the schema."""
    document = typed(text)
    assert isinstance(document, TopologyDocument), document
    return build_dsl(document, StreamsConfig.from_application(document.application))


def built_calls(calls: str) -> NodeTopology:
    """Return the topology of a document with these calls, which have no problems."""
    loaded = load_text(f"application: {{id: app}}\ntopology:\n{calls}", "calls.yaml")
    assert not loaded.problems, loaded.problems
    return build_nodes(loaded.documents[0])
