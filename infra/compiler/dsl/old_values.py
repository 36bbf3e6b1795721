"""Which nodes of tables tell old values: `enableSendingOldValues`, as calls downstream ask for it.

A table without a store asks the one that it is made from; a source table tells old values only once it has a
store. Nothing here recurses: chains of tables may be long.
"""

import attrs

from infra.compiler.dsl.stores import LazyStore


@attrs.define(eq=False)
class OldValues:
    """Of one table's node. `source` is the store without which nobody above knows old values."""

    upstream: "tuple[OldValues, ...]" = ()
    source: LazyStore | None = None
    enabled: bool = False

    @classmethod
    def derived(cls, upstream: "OldValues") -> "OldValues":
        """Of a table without a store of its own."""
        return cls((upstream,), upstream.source)

    def enable(self, *, only_if_materialized: bool = False) -> None:
        """Ask for old values; with `only_if_materialized` only if nothing needs to be materialized for it."""
        if only_if_materialized and self.source is not None and not self.source.needed:
            return
        pending = [self]
        while pending:
            each = pending.pop()
            if not each.enabled:
                each.enabled = True
                pending.extend(each.upstream)
