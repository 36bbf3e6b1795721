"""The `headwater` command: parses arguments, calls the other packages, prints, and sets the exit code."""
