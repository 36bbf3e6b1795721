"""`headwater processors`: the processors of applications with state."""

from headwater.cli.lazy import Lazy, LazyGroup

_HELP = """Show the processors of applications with state, add and remove some.

A processor owns the state of some keys (`application.processors`). Read more: docs/processors.md.

\b
Examples:
  headwater processors status topologies/ --bootstrap-server localhost:9092
  headwater processors expand runtime-1:9878 --to 8
  headwater processors move --offline orders.yaml --bootstrap-server localhost:9092
"""

processors = LazyGroup(
    "processors",
    lazy={
        "status": Lazy(
            "headwater_spark.commands.processors_status", "status", "Show how many processors the state has."
        ),
        "expand": Lazy(
            "headwater.cli.processors_expand", "expand", "Add processors to a running application."
        ),
        "move": Lazy(
            "headwater_spark.commands.processors_move",
            "move",
            "Move state to the declared number of processors.",
        ),
    },
    help=_HELP,
)
