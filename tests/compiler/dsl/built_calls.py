"""Documents as the list of their calls."""

from headwater.compiler import build_nodes
from headwater.model.nodes import NodeTopology
from headwater.spec import load_text


def built(calls: str) -> NodeTopology:
    loaded = load_text(f"application: {{id: app}}\ntopology:\n{calls}", "calls.yaml")
    assert not loaded.problems, loaded.problems
    return build_nodes(loaded.documents[0])
