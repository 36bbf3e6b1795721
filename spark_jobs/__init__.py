"""What runs beside the declared topics: the agent that expands them live, and the runtime on Spark."""
