"""What a processor does as a text without the names of stores and nodes, to compare processors."""

import attrs

_NAMES = frozenset(
    {"store", "stores", "own_store", "other_store", "shared", "buffer", "node", "children", "default"}
)
"""The fields of behaviors and of views of tables that have names of stores or nodes."""


def behavior_text(value: object) -> str:
    """Return a behavior, or a part of it, with `*` for each name; texts of expressions stay."""
    kind = type(value)
    if not attrs.has(kind):
        return repr(value)
    parts = {field.name: getattr(value, field.name) for field in attrs.fields(kind)}
    fields = (
        f"{name}={_without_names(part) if name in _NAMES else behavior_text(part)}"
        for name, part in parts.items()
    )
    return f"{kind.__name__}({', '.join(fields)})"


def _without_names(value: object) -> str:
    """Return how many names there are: whether a table has a store is a part of what it does."""
    if isinstance(value, tuple):
        return "*" * len(value)
    return "*" if value is not None else "None"
