"""Which processors of a text are suppressions.

The buffer of a suppression `X` is `X-store` if `X` is a user's name. Other processors can have a store of
this name, too, so the processor before it decides: a suppression follows a table.
"""

from collections.abc import Mapping

import attrs

from headwater.compiler.described.names import GENERATED, TABLE, is_suppression
from headwater.compiler.described.structure import Structure
from headwater.model.nodes import ProcessorNode, SourceNode
from headwater.model.topology import StoreDetail

_KINDS_OF_BUFFERS = ("keyValue", "timestampedKeyValue")


@attrs.frozen
class Suppressions:
    """Names of processors.

    `generated` are suppressions. `after_tables` are suppressions or, printed in the same way, other operators
    of tables. `unclear` may also be aggregations of streams, whose stores may be windowed.
    """

    generated: frozenset[str]
    after_tables: frozenset[str]
    unclear: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.generated | self.after_tables | self.unclear

    @property
    def with_buffer(self) -> frozenset[str]:
        """The processors whose store is certainly a key-value store."""
        return self.generated | self.after_tables


def find_suppressions(structure: Structure, details: Mapping[str, StoreDetail]) -> Suppressions:
    """Return the suppressions of a text; `details` are those of the document, by store."""
    generated: set[str] = set()
    after_tables: set[str] = set()
    unclear: set[str] = set()
    for node in structure.nodes.values():
        if not isinstance(node, ProcessorNode) or len(node.stores) != 1:
            continue
        (store,) = node.stores
        if is_suppression(node.name, store):
            generated.add(node.name)
        elif store == f"{node.name}-store" and len(node.parents) == 1 and _may_be_buffer(details.get(store)):
            follows_table = _is_table(node.parents[0], structure)
            if follows_table is not False:
                (after_tables if follows_table else unclear).add(node.name)
    return Suppressions(frozenset(generated), frozenset(after_tables), frozenset(unclear))


def _may_be_buffer(detail: StoreDetail | None) -> bool:
    return detail is None or detail.kind is None or detail.kind in _KINDS_OF_BUFFERS


def _is_table(name: str, structure: Structure) -> bool | None:
    """Return whether the result of a node is a table; None = names and structure do not show it."""
    pending, seen = [name], set[str]()
    while pending:
        name = pending.pop()
        node = structure.nodes.get(name)
        if name in seen or not isinstance(node, ProcessorNode):
            continue
        seen.add(name)
        if TABLE.fullmatch(name) or name in structure.cogroup_merges or _is_named_table(node, structure):
            return True if len(seen) == 1 else None
        if GENERATED.fullmatch(name):
            continue  # an operator of streams
        if node.stores:
            return None
        pending += node.parents
    return False


def _is_named_table(node: ProcessorNode, structure: Structure) -> bool:
    source = structure.nodes.get(f"{node.name}-source")
    return isinstance(source, SourceNode) and node.parents == (source.name,)
