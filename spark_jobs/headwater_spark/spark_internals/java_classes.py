"""Java classes of this package, compiled in the driver's JVM by Janino, Spark's own compiler."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]

_CAUSE = "Caused by: "
"""In the text of a Java exception, the last such line names what has failed."""


@lru_cache(maxsize=8)
def load_methods(gateway: Any, source: Path, names: tuple[str, ...]) -> Mapping[str, JavaObject]:  # noqa: ANN401 - py4j has no types
    """Return the static methods of a Java class by name; once for each JVM, because that takes long.

    Raises:
        Py4JError, TypeError, AttributeError: This Spark has other private parts.
    """
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source.read_text(encoding="utf-8"))
    methods = compiler.getClassLoader().loadClass(source.stem).getMethods()
    return {name: each for each in methods if (name := each.getName()) in names}


def call_method(gateway: Any, method: JavaObject, *arguments: object) -> Any:  # noqa: ANN401 - same
    """Call a static method."""
    given = gateway.new_array(gateway.jvm.java.lang.Object, len(arguments))
    for at, each in enumerate(arguments):
        given[at] = each
    return method.invoke(None, given)


def reason_of(error: Exception) -> str:
    """Return the cause of a Java exception, in one line."""
    lines = str(error).splitlines()
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    return (causes[-1:] or lines[:1] or [""])[0]
