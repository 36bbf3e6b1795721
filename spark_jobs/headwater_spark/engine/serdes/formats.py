"""Find the serde of a format by its name."""

from collections.abc import Callable, Mapping
from functools import lru_cache

from headwater.model.behaviors import Format
from headwater_spark.engine.serdes.avro import SchemaOf, avro, no_registry, registered_avro
from headwater_spark.engine.serdes.json_format import JSON, checked_json
from headwater_spark.engine.serdes.plain import PLAIN, Plain, session_windowed, time_windowed

_WITH_SCHEMA: Mapping[str, Callable[[str, str], Plain]] = {"json": checked_json, "avro": avro}


_REGISTERED = "avro-registry"


class UnknownFormatError(ValueError):
    """There is no format of this name, or its schema is missing."""


def is_schema_format(name: str) -> bool:
    """Return whether the format names a schema file."""
    kind, colon, _file = name.partition(":")
    return bool(colon) and kind in _WITH_SCHEMA


def subject(name: str) -> str | None:
    """Return the subject of the schema registry that the format names, if any."""
    kind, colon, named = name.partition(":")
    return named if colon and kind == _REGISTERED else None


def schema_key(name: str) -> str:
    """Return the key of the format's schema: the file name, or the format itself for a subject."""
    return name if subject(name) is not None else name.partition(":")[2]


@lru_cache(maxsize=1024)
def plain_serde(name: str, schema: str | None = None, schema_of: SchemaOf = no_registry) -> Plain:
    """Return the serde of a format without windows.

    Args:
        name: The format.
        schema: The text of the schema file; of a subject the latest version, as JSON with `id` and `schema`.
        schema_of: Returns the other versions of a subject's schema by id.

    Raises:
        UnknownFormatError: There is no such format, or its schema is missing.
        ValueError: The schema is not valid.
    """
    if name == "json":
        return JSON
    if name in PLAIN:
        return PLAIN[name]
    kind, colon, _file = name.partition(":")
    if colon and kind in _WITH_SCHEMA:
        if schema is None:
            raise UnknownFormatError(f"the schema file of {name} is missing")
        return _WITH_SCHEMA[kind](name, schema)
    if subject(name) is not None:
        if schema is None:
            raise UnknownFormatError(f"the schema of {name} is missing")
        return registered_avro(name, schema, schema_of)
    known = ", ".join(sorted((*PLAIN, "json", "json:FILE", "avro:FILE", f"{_REGISTERED}:SUBJECT")))
    raise UnknownFormatError(f"unknown format {name}; the formats are {known}")


def serde_of(wanted: Format, schemas: Mapping[str, str], schema_of: SchemaOf = no_registry) -> Plain:
    """Return the serde of a format. `schemas`: `schema_key` → text. Raises as `plain_serde` does."""
    inner = plain_serde(wanted.name, schemas.get(schema_key(wanted.name)), schema_of)
    if wanted.window is None:
        return inner
    return time_windowed(inner, wanted.size_ms) if wanted.window == "time" else session_windowed(inner)
