class ToolchainError(Exception):
    """A program could not be obtained or started. The text is for the operator and says what to do."""
