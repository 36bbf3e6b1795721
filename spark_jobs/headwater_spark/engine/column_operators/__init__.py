"""Operators that process a batch in columns: all its records in one call, or one update per key."""
