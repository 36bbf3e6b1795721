"""`headwater threads`: the stream threads of a running application."""

from headwater.cli.lazy import Lazy, LazyGroup

_HELP = """List, add and remove the stream threads of a running application.

A stream thread runs one Spark task of the application at a time (KIP-663). Changes last until the application
ends: num.stream.threads says how many threads it starts with. Read more: docs/stream-threads.md.

\b
Examples:
  headwater threads list
  headwater threads add runtime-1:9878
  headwater threads remove --timeout 30
"""

threads = LazyGroup(
    "threads",
    lazy={
        "list": Lazy("headwater.cli.threads_list", "list_", "Show the stream threads of an application."),
        "add": Lazy("headwater.cli.threads_change", "add", "Add a stream thread."),
        "remove": Lazy("headwater.cli.threads_change", "remove", "Remove the oldest stream thread."),
    },
    help=_HELP,
)
