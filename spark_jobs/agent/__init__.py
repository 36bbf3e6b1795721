"""The agent: expands internal topics while their applications run, when source topics grow (KIP-878).

`state`, `events` and `decide` are PURE: what is known, what happened, what follows from it. `ports` says
what the loop needs from around it (cluster, leadership, journal, instruments, clock); `loop` does what was
decided. The other modules are adapters of the ports.
"""
