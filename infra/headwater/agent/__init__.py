"""The agent: expands internal topics while their applications run, when source topics are expanded (KIP-878).

`state`, `events` and `decide` are pure: the state, what happened, and what follows from it. `ports` defines
the interfaces that the loop uses; the other modules implement them with Kafka, files and HTTP.
"""
