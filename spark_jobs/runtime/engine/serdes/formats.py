"""From a format's name to its serde."""

from collections.abc import Callable, Mapping
from functools import lru_cache

from infra.model.behaviors import Format
from spark_jobs.runtime.engine.serdes.avro_format import avro
from spark_jobs.runtime.engine.serdes.json_format import JSON, checked_json
from spark_jobs.runtime.engine.serdes.plain import PLAIN, Plain
from spark_jobs.runtime.engine.serdes.registered_avro import SchemaOf, no_registry, registered_avro
from spark_jobs.runtime.engine.serdes.windowed import session_windowed, time_windowed

_WITH_SCHEMA: Mapping[str, Callable[[str, str], Plain]] = {"json": checked_json, "avro": avro}


_REGISTERED = "avro-registry"


class UnknownFormatError(ValueError):
    """No serde of this name."""


def is_schema_format(name: str) -> bool:
    """Whether a schema file stands behind the colon."""
    kind, colon, _file = name.partition(":")
    return bool(colon) and kind in _WITH_SCHEMA


def subject(name: str) -> str | None:
    """The subject of a schema registry that a format names, if it is such a one."""
    kind, colon, named = name.partition(":")
    return named if colon and kind == _REGISTERED else None


def schema_key(name: str) -> str:
    """Under what name a format's schema is kept: its file's, or for a registry's the format's own."""
    return name if subject(name) is not None else name.partition(":")[2]


@lru_cache(maxsize=1024)
def plain_serde(name: str, schema: str | None = None, schema_of: SchemaOf = no_registry) -> Plain:
    """The serde of an unwindowed format.

    `schema` is the text of the file that the name points to; of a registry's subject the latest version, as
    JSON with `id` and `schema`. `schema_of` is asked for the versions that others wrote with.

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
    if subject(name) is not None:
        if schema is None:
            raise UnknownFormatError(f"the schema of {name} is not there")
        return registered_avro(name, schema, schema_of)
    known = ", ".join(sorted((*PLAIN, "json", "json:FILE", "avro:FILE", f"{_REGISTERED}:SUBJECT")))
    raise UnknownFormatError(f"no format is called {name}; there are {known}")


def serde_of(wanted: Format, schemas: Mapping[str, str], schema_of: SchemaOf = no_registry) -> Plain:
    """The serde of a format; `schemas` = `schema_key` → text."""
    inner = plain_serde(wanted.name, schemas.get(schema_key(wanted.name)), schema_of)
    if wanted.window is None:
        return inner
    return time_windowed(inner, wanted.size_ms) if wanted.window == "time" else session_windowed(inner)
