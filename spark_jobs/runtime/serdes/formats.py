"""From a format's name to its serde."""

from collections.abc import Callable, Mapping
from functools import lru_cache

from infra.model.behaviours import Format
from spark_jobs.runtime.serdes.avro_format import avro
from spark_jobs.runtime.serdes.json_format import JSON, checked_json
from spark_jobs.runtime.serdes.plain import PLAIN, Plain
from spark_jobs.runtime.serdes.windowed import session_windowed, time_windowed

_WITH_SCHEMA: Mapping[str, Callable[[str, str], Plain]] = {"json": checked_json, "avro": avro}


class UnknownFormatError(ValueError):
    """No serde of this name."""


def is_schema_format(name: str) -> bool:
    """Whether a schema file stands behind the colon."""
    kind, colon, _file = name.partition(":")
    return bool(colon) and kind in _WITH_SCHEMA


@lru_cache(maxsize=1024)
def plain_serde(name: str, schema: str | None = None) -> Plain:
    """The serde of an unwindowed format; `schema` is the text of the file that the name points to.

    Raises:
        UnknownFormatError: There is no such format.
        ValueError: The schema is not one.
    """
    if name == "json":
        return JSON
    if name in PLAIN:
        return PLAIN[name]
    kind, colon, _file = name.partition(":")
    if colon and kind in _WITH_SCHEMA:
        if schema is None:
            raise UnknownFormatError(f"the schema file of {name} is not there")
        return _WITH_SCHEMA[kind](name, schema)
    known = ", ".join(sorted((*PLAIN, "json", "json:FILE", "avro:FILE")))
    raise UnknownFormatError(f"no format is called {name}; there are {known}")


def serde_of(wanted: Format, schemas: Mapping[str, str]) -> Plain:
    """The serde of a format; `schemas` = file name → text."""
    inner = plain_serde(wanted.name, schemas.get(wanted.name.partition(":")[2]))
    if wanted.window is None:
        return inner
    return time_windowed(inner, wanted.size_ms) if wanted.window == "time" else session_windowed(inner)
