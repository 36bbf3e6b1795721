"""Programs that run permanently: the agent that expands topics, and the runtime that runs applications."""
