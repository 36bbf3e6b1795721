"""Users' classes that a document names as `module:Class`."""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from headwater.model.nodes import NodeTopology, SinkNode
from headwater.model.problems import Location
from headwater.model.topology import Application
from headwater_spark.engine.partitioners.static import CLASS
from headwater_spark.engine.program.expressions import class_of

_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def is_class_name(text: str) -> bool:
    """Return whether a text has the form `module:Class`."""
    return _NAME.fullmatch(text) is not None


def load_class(name: str) -> Any:  # noqa: ANN401 - an object of the user
    """Import and return a class. Raises ImportError if `name` is not `module:Class`, or does not exist."""
    module, colon, path = name.partition(":")
    if not colon:
        raise ImportError(f"{name} is not of the form module:Class")
    try:
        found = import_module(module)
    except SystemExit as error:  # a program, not a module: it would end this process, too
        raise ImportError(f"{module} ends the process when it is imported: {error}") from None
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ImportError(f"{module} has no {path}") from None
    return found


def named_classes(
    nodes: NodeTopology, application: Application
) -> Iterator[tuple[str, str, Location | None]]:
    """Yield (class, node or config key that needs it, location): processors, then partitioners."""
    for node in nodes.nodes:
        _, name = class_of(node)
        if name is not None:
            yield name, node.name, node.at
        if isinstance(node, SinkNode) and node.writes is not None and ":" in (node.writes.partitioner or ""):
            yield node.writes.partitioner or "", node.name, node.at
    if ":" in application.config.get(CLASS, ""):
        yield application.config[CLASS], CLASS, application.at
