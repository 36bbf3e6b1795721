"""Serialize and deserialize messages by Confluent's own serializers, in a process that has their packages.

Reads JSON from standard input: `schema`, a compiled `FileDescriptorSet` in Base64, and `cases`, each with the
full name of a `message` and the hex of its `payload` and of `framed`, the value that Headwater writes. Writes
the list of the values of Confluent's serializer, as hex. Each `framed` must be read as the same message.
"""

import base64
import json
import sys
from collections.abc import Mapping

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

_CONTEXT = SerializationContext("orders", MessageField.VALUE)
_CONFIG = {"use.deprecated.format": False}


def _written(registry: SchemaRegistryClient, case: Mapping[str, str]) -> str:
    type_ = message_factory.GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(case["message"]))
    message = type_.FromString(bytes.fromhex(case["payload"]))
    data = ProtobufSerializer(type_, registry, _CONFIG)(message, _CONTEXT)
    read = ProtobufDeserializer(type_, _CONFIG, registry)(bytes.fromhex(case["framed"]), _CONTEXT)
    if data is None or read != message:
        sys.exit(f"{case['message']}: {read} instead of {message}")
    return bytes(data).hex()


def main() -> None:
    """Run the cases."""
    given = json.load(sys.stdin)
    for file in descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(given["schema"])).file:
        if not file.name.startswith("google/"):
            descriptor_pool.Default().Add(file)
    registry = SchemaRegistryClient.new_client({"url": "mock://tests"})
    json.dump([_written(registry, case) for case in given["cases"]], sys.stdout)


main()
