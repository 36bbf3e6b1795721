"""Where the published schemas and examples are: in a clone, and when Headwater is installed."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def topology_schemas() -> Traversable:
    """Return the folder `topology_schemas`, which the wheel has inside the package `headwater`."""
    installed = files("headwater").joinpath("topology_schemas")
    return installed if installed.is_dir() else Path(__file__).parents[3] / "topology_schemas"
