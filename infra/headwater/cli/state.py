"""`headwater state`: the state of applications that are stopped."""

from headwater.cli.lazy import Lazy, LazyGroup

_HELP = """Copy the state of stopped applications.

A store or topic is copied to another name, for example after a rename.

\b
Examples:
  headwater state copy orders.yaml --store old-counts=counts --bootstrap-server localhost:9092
  headwater state copy orders.yaml --topic orders-app-a-repartition=orders-app-b-repartition
"""

state = LazyGroup(
    "state",
    lazy={
        "copy": Lazy(
            "headwater_spark.commands.state_copy",
            "copy",
            "Copy state to topics with other names, after a rename.",
        ),
    },
    help=_HELP,
)
