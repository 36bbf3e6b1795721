"""Which nodes of tables tell old values: `enableSendingOldValues`, as calls downstream ask for it.

A table without a store asks the one that it is made from; a source table tells old values only once it has a
store. Nothing here recurses: chains of tables may be long.
"""

import attrs

from infra.compiler.dsl.stores import Reserved


@attrs.define(eq=False)
class Changes:
    """Of one table's node. `source` is the store without which nobody above knows old values."""

    upstream: "tuple[Changes, ...]" = ()
    source: Reserved | None = None
    sends_old: bool = False

    @classmethod
    def derived(cls, upstream: "Changes") -> "Changes":
        """Of a table without a store of its own."""
        return cls((upstream,), upstream.source)

    def send_old(self, *, only_if_kept: bool = False) -> None:
        """Ask for old values; with `only_if_kept` only if nothing needs to be materialized for it."""
        if only_if_kept and self.source is not None and not self.source.needed:
            return
        pending = [self]
        while pending:
            changes = pending.pop()
            if not changes.sends_old:
                changes.sends_old = True
                pending.extend(changes.upstream)
