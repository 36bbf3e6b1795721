"""What is only known once all calls are made: which stores exist, who tells old values, who is versioned."""

from typing import Any

import attrs

from infra.compiler.dsl.changes import Changes
from infra.compiler.dsl.graph import GraphNode
from infra.compiler.dsl.stores import Reserved
from infra.model import behaviors as does
from infra.model.behaviors import Behavior

_SENDS_OLD = (
    does.StreamAggregate,
    does.TableSource,
    does.TableFilter,
    does.TableMapValues,
    does.TableTransformValues,
    does.TableAggregate,
    does.TableTableJoin,
    does.TableJoinMerge,
    does.ForeignKeyResult,
)
_VERSIONED = (
    does.TableFilter,
    does.TableRepartitionMap,
    does.TableTableJoin,
    does.ForeignKeySend,
    does.ForeignKeyNotify,
)


def settled(
    behavior: Behavior | None,
    node: GraphNode,
    changes: Changes | None,
    reserved: Reserved | None = None,
    *,
    side_of: str | None = None,
) -> Behavior | None:
    """`side_of` = only the parent of this name counts for versioning (one side of a table-table join)."""
    told: dict[str, Any] = {}
    if reserved is not None and reserved.needed:
        told["store"] = reserved.store.name
    if changes is not None and changes.sends_old and isinstance(behavior, _SENDS_OLD):
        told["sends_old"] = True
    if isinstance(behavior, _VERSIONED):
        parents = [parent for parent in node.parents if side_of is None or parent.name == side_of]
        if any(parent.is_versioned for parent in parents):
            told["versioned"] = True
    if behavior is None or not told:
        return behavior
    return attrs.evolve(behavior, **told)
