"""Limits of files: far above any real one, and low enough to refuse a malicious one immediately."""

MAX_BYTES = 5 * 1024 * 1024
"""Size of one file; a larger one is refused before it is read."""
MAX_DEPTH = 60
"""Levels of nested mappings and lists."""
MAX_NODES = 200_000
"""Number of scalars, mappings and lists in one file."""
MAX_PROBLEMS = 100
"""Problems of one document; the others are not shown."""
