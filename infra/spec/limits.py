"""What a document may cost at most: far above any real one, low enough to refuse a hostile one at once."""

MAX_BYTES = 5 * 1024 * 1024
"""Of one file; a larger one is refused before it is read."""
MAX_DEPTH = 60
"""Of nested mappings and lists."""
MAX_NODES = 200_000
"""Of scalars, mappings and lists in one file."""
MAX_PROBLEMS = 100
"""Of one document; those beyond are counted, not shown."""
