"""Commands of `headwater` that need Spark: `headwater.cli` loads them by their names."""
