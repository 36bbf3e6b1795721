class ToolchainError(Exception):
    """What could not be had or started, and what to do about it; the text is meant for the operator."""
