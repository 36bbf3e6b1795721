"""The `headwater` command: parses arguments, calls the parts, prints, and chooses the exit code."""
