"""Which table nodes send old values (`KTableImpl#enableSendingOldValues`).

A downstream call enables it. A table without a store also enables it on its upstream tables; a source table
then needs a store. Nothing recurses, because chains of tables may be long.
"""

import attrs

from headwater.compiler.dsl.stores import LazyStore


@attrs.define(eq=False)
class OldValues:
    """Whether a table's node sends old values; `source` is the upstream store that this needs."""

    upstream: "tuple[OldValues, ...]" = ()
    source: LazyStore | None = None
    enabled: bool = False

    @classmethod
    def derived(cls, upstream: "OldValues") -> "OldValues":
        """Return the value for a table without a store of its own."""
        return cls((upstream,), upstream.source)

    def enable(self, *, only_if_materialized: bool = False) -> None:
        """Send old values; with `only_if_materialized` only if that creates no further store."""
        if only_if_materialized and self.source is not None and not self.source.needed:
            return
        pending = [self]
        while pending:
            each = pending.pop()
            if not each.enabled:
                each.enabled = True
                pending.extend(each.upstream)
