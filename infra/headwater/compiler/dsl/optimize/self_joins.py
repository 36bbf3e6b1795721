"""`single.store.self.join`: a stream joined with itself needs one window store only."""

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.declarations import SelfJoinDeclaration, StreamJoinDeclaration
from headwater.compiler.dsl.graph import reachable
from headwater.model.behaviors import StreamSelfJoin, StreamStreamJoin


def rewrite_self_joins(builder: Builder) -> None:
    """Replace a join of a stream with itself by one processor with one store (`rewriteSelfJoin`)."""
    for node in reachable(builder.graph.root):
        join = node.declares
        if not isinstance(join, StreamJoinDeclaration) or len(node.parents) != 1:
            continue
        (parent,) = node.parents
        other = builder.other_windowed[node]
        parent.remove_child(other)
        node.declares = SelfJoinDeclaration(join.this_windowed, join.merge, join.this_store, _behavior(join))


def _behavior(join: StreamJoinDeclaration) -> StreamSelfJoin | None:
    left = join.this_behavior
    if not isinstance(left, StreamStreamJoin):
        return None
    return StreamSelfJoin(left.window, left.value, join.this_store.name)
