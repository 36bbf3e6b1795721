"""Serializers and deserializers by format name.

| name | bytes | value |
|---|---|---|
| string | UTF-8 | `str` |
| long, integer, short | 8, 4, 2 bytes, big endian | `int` |
| double, float | 8, 4 bytes, IEEE 754, big endian | `float` |
| boolean | 1 byte, 0 or 1 | `bool` |
| bytes | unchanged | `bytes` |
| uuid | its text | `str` |
| json | compact JSON, keys in insertion order | any JSON value |
| json:FILE | the same, validated by a JSON Schema | any JSON value |
| avro:FILE | Avro without a header, schema in a file | `dict`, `list`, … without logical types |
| avro-registry:SUBJECT | 0, schema id in 4 bytes, Avro | the same |
| json-registry:SUBJECT | 0, schema id in 4 bytes, JSON that a JSON Schema validates | any JSON value |
| protobuf:FILE, protobuf:FILE#MESSAGE | a Protobuf message without a header | `dict` by field names |
| protobuf-registry:SUBJECT, …#MESSAGE | 0, schema id, message indexes, a Protobuf message | the same |
| (windowed) | key ‖ start; sessions: key ‖ end ‖ start | `Windowed` |

Names of schema files are relative to the document.
"""

from headwater_spark.engine.serdes.formats import (
    CompilerUnavailableError,
    RegistryUnavailableError,
    ReportUnread,
    SchemaOf,
    UnknownFormatError,
    UnreadFields,
    is_schema_format,
    no_registry,
    plain_serde,
    report_nothing,
    schema_key,
    schema_kind,
    schema_subject,
    schema_type,
    serde_of,
)
from headwater_spark.engine.serdes.internal_topics import (
    Response,
    Subscription,
    changed_serde,
    response_serde,
    subscription_serde,
)
from headwater_spark.engine.serdes.plain import (
    DeserializationError,
    Plain,
    SerializationError,
    reads_anything,
)

__all__ = [
    "CompilerUnavailableError",
    "DeserializationError",
    "Plain",
    "RegistryUnavailableError",
    "ReportUnread",
    "Response",
    "SchemaOf",
    "SerializationError",
    "Subscription",
    "UnknownFormatError",
    "UnreadFields",
    "changed_serde",
    "is_schema_format",
    "no_registry",
    "plain_serde",
    "reads_anything",
    "report_nothing",
    "response_serde",
    "schema_key",
    "schema_kind",
    "schema_subject",
    "schema_type",
    "serde_of",
    "subscription_serde",
]
