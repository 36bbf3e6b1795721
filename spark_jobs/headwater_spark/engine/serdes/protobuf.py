"""The serdes of Protobuf messages, without a header or as Confluent's serializers write them.

A schema is a compiled `FileDescriptorSet` in Base64: imported files first, the schema's own file last. A name
after `#` chooses one of its messages, otherwise it is the first. After the schema id, a registered value has
the path of its message in the file (`MessageIndexes` of Confluent): the number of indexes, then the index of
each message in the one around it, as variable-length integers with zigzag encoding. The most frequent path,
the first message of the file, is one byte 0. Java counts the messages in the text of the schema
(`ProtobufSchema#toMessageIndexes`); the entries of maps that the compiler adds come after these.

A message is an object with the names of its fields, a map an object whose keys are texts, an enum the name of
its value (a number, if the schema has no name for it). A field that is not set is null if it has presence,
otherwise it has its default. Well-known types are messages like all others.
"""

import base64
import binascii
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError, EncodeError  # type: ignore[import-untyped]

from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes.plain import (
    DeserializationError,
    Plain,
    SerializationError,
    equal_in_bytes,
    equal_in_java,
    kind_of,
)

_Descriptor = Any
_Message = Any
_FIRST = b"\0"
_MOST_DEPTH = 100
"""The depth of messages, and of paths, that Protobuf reads by default."""
_MOST_VARINT_BYTES = 5
_LOW, _MORE = 0x7F, 0x80
"""The bits of a byte that are part of a number, and the bit that says that another byte follows."""


def protobuf_serde(name: str, schema: str) -> Plain:
    """Return the serde of one message without a header.

    Raises:
        ValueError: The text is not a compiled schema, or has no such message.
    """
    return _message_serde(name, _find_message(_own_file(schema), chosen_message(name)))


def registered_protobuf(name: str, schema: str) -> Plain:
    """Return the serde of values after the schema id: it writes one message, and reads each of the schema.

    Raises:
        ValueError: The text is not a compiled schema, or has no such message.
    """
    file = _own_file(schema)
    descriptor = _find_message(file, chosen_message(name))
    writer, read = _message_serde(name, descriptor), _path_reader(name, file, {})
    prefix = write_path(_path_of(descriptor))

    def write(value: Value) -> bytes:
        return prefix + writer.serialize(value)

    return Plain(write, read, writer.equal)


def protobuf_of_other_version(name: str, schema: str, known: str) -> Plain:
    """Return the serde that reads values of another version as messages of the known one.

    A field that the known version does not have is not read. A message that it does not have is a value of
    another type, and is read as it is.

    Raises:
        ValueError: A text is not a compiled schema.
    """
    messages = {each.full_name: each for each in _messages_of(_own_file(known))}
    read = _path_reader(name, _own_file(schema), messages)

    def write(_: Value) -> bytes:
        raise SerializationError(name, "only the latest version of the schema is written")

    return Plain(write, read)


def unread_protobuf_fields(schema: str, known: str) -> Iterator[str]:
    """Yield the fields that messages of another version have, and the known one does not: `Message.field`.

    Raises:
        ValueError: A text is not a compiled schema.
    """
    messages = {each.full_name: each for each in _messages_of(_own_file(known))}
    for message in _messages_of(_own_file(schema)):
        if message.full_name in messages:
            numbers = messages[message.full_name].fields_by_number
            yield from (field.full_name for field in message.fields if field.number not in numbers)


def _messages_of(file: _Descriptor) -> Iterator[_Descriptor]:
    pending = list(file.message_types_by_name.values())
    while pending:
        message = pending.pop()
        yield message
        pending += message.nested_types


def chosen_message(name: str) -> str:
    """Return the message that a format names after `#`, "" = the first one."""
    return name.partition("#")[2]


def write_path(path: Sequence[int]) -> bytes:
    """Return the path of a message as Confluent's serializers write it."""
    if list(path) == [0]:
        return _FIRST
    return b"".join(map(_write_number, (len(path), *path)))


def read_path(data: bytes) -> tuple[list[int], int]:
    """Return the path at the beginning of `data`, and the position after it.

    Raises:
        ValueError: There is no valid path.
    """
    count, position = _read_number(data, 0)
    if count == 0:
        return [0], position
    if not 0 < count <= _MOST_DEPTH:
        raise ValueError("its message indexes are not valid")
    path = []
    for _ in range(count):
        index, position = _read_number(data, position)
        path.append(index)
    return path, position


def _write_number(number: int) -> bytes:
    rest, out = number << 1, bytearray()  # zigzag of a number that is not negative
    while rest > _LOW:
        out.append(rest & _LOW | _MORE)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _read_number(data: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift, byte in enumerate(data[position : position + _MOST_VARINT_BYTES]):
        number |= (byte & _LOW) << 7 * shift
        if not byte & _MORE:
            return (number >> 1) ^ -(number & 1), position + shift + 1
    raise ValueError("its message indexes end too early")


@lru_cache(maxsize=256)
def _own_file(schema: str) -> _Descriptor:
    """Return the file of a compiled schema in a pool of its own."""
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(schema, validate=True)).file
        pool = descriptor_pool.DescriptorPool()
        for file in files:
            pool.Add(file)
        own = pool.FindFileByName(files[-1].name)
    except (binascii.Error, DecodeError, TypeError, KeyError, IndexError):
        raise ValueError("it is not a Protobuf schema") from None
    if not own.message_types_by_name:
        raise ValueError("the Protobuf schema has no message")
    return own


def _find_message(file: _Descriptor, name: str) -> _Descriptor:
    first = next(iter(file.message_types_by_name.values()))
    if not name:
        return first
    head, *inner = name.removeprefix(f"{file.package}.").split(".")
    found = file.message_types_by_name.get(head)
    for each in inner:
        found = None if found is None else found.nested_types_by_name.get(each)
    if found is None or _is_map_entry(found):
        raise ValueError(f"the Protobuf schema has no message {name}")
    return found


def _path_of(descriptor: _Descriptor) -> list[int]:
    path = []
    while descriptor is not None:
        outer = descriptor.containing_type
        siblings = descriptor.file.message_types_by_name.values() if outer is None else outer.nested_types
        path.append([each.name for each in siblings].index(descriptor.name))
        descriptor = outer
    return path[::-1]


def _path_reader(
    name: str, file: _Descriptor, messages: Mapping[str, _Descriptor]
) -> Callable[[bytes], Value]:
    """Return a function that reads each message of a file, as the one of its full name in `messages`."""
    readers: dict[tuple[int, ...], Callable[[bytes], Value]] = {}

    def read(data: bytes) -> Value:
        try:
            path, start = read_path(data)
        except ValueError as error:
            raise DeserializationError(name, str(error)) from None
        reader = readers.get(tuple(path))
        if reader is None:
            written = _message_at(name, file, path)
            reader = _message_serde(name, messages.get(written.full_name, written)).deserialize
            readers[tuple(path)] = reader
        return reader(data[start:])

    return read


def _message_at(name: str, file: _Descriptor, path: Iterable[int]) -> _Descriptor:
    siblings, found = list(file.message_types_by_name.values()), None
    for index in path:
        if not 0 <= index < len(siblings):
            raise DeserializationError(name, "the schema has no message at its indexes")
        found = siblings[index]
        siblings = list(found.nested_types)
        if _is_map_entry(found):
            raise DeserializationError(name, "the schema has no message at its indexes")
    return found


def _message_serde(name: str, descriptor: _Descriptor) -> Plain:
    message_class = message_factory.GetMessageClass(descriptor)

    def write(value: Value) -> bytes:
        message = message_class()
        try:
            _fill_message(message, descriptor, value, name)
            return bytes(message_class.SerializeToString(message, deterministic=True))
        except SerializationError:
            raise
        except (ValueError, TypeError, EncodeError, OverflowError, RecursionError):
            raise SerializationError(name, "it does not match the schema") from None

    def read(data: bytes) -> Value:
        try:
            message = message_class.FromString(data)
        except DecodeError:
            raise DeserializationError(name, f"{len(data)} byte(s) that do not match the schema") from None
        if not message_class.IsInitialized(message):
            raise DeserializationError(name, "a required field is missing")
        return _value_of(message, descriptor)

    equal_bytes = equal_in_bytes(write)

    def equal(one: Value, other: Value) -> bool:
        """Compare maps without their order, and fields that are not set with their defaults."""
        return equal_in_java(one, other) or equal_bytes(one, other)

    return Plain(write, read, equal)


def _value_of(message: _Message, descriptor: _Descriptor) -> dict[str, Value]:
    return {field.name: _field_value(message, field) for field in descriptor.fields}


def _field_value(message: _Message, field: _Descriptor) -> Value:
    if field.is_repeated:
        values = getattr(message, field.name)
        if _is_map(field):
            inner = field.message_type.fields_by_name["value"]
            return {_key_text(key): _read_one(values[key], inner) for key in values}
        return [_read_one(each, field) for each in values]
    if field.has_presence and not type(message).HasField(message, field.name):
        return None
    return _read_one(getattr(message, field.name), field)


def _read_one(value: Value, field: _Descriptor) -> Value:
    if field.message_type is not None:
        return _value_of(value, field.message_type)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return value if named is None else named.name
    return value


def _is_map(field: _Descriptor) -> bool:
    return field.message_type is not None and _is_map_entry(field.message_type)


def _is_map_entry(descriptor: _Descriptor) -> bool:
    return bool(descriptor.GetOptions().map_entry)


def _key_text(key: bool | int | str) -> str:  # noqa: FBT001 - the key of a map
    return str(key).lower() if isinstance(key, bool) else str(key)


def _fill_message(message: _Message, descriptor: _Descriptor, value: Value, name: str) -> None:
    """Set the fields of a message. Methods are read from the class: a field may have the same name."""
    if not isinstance(value, Mapping):
        raise SerializationError(name, f"{descriptor.name} is {kind_of(value)}, not an object")
    fields, chosen = descriptor.fields_by_name, set()
    for key, each in value.items():
        field = fields.get(key)
        if field is None:
            raise SerializationError(name, f"{descriptor.name} has no field of one of its names")
        if each is None:
            continue
        if (oneof := field.containing_oneof) is not None:
            if oneof.name in chosen:
                raise SerializationError(name, f"more than one field of {oneof.full_name} is set")
            chosen.add(oneof.name)
        _set_field(message, field, each, name)


def _set_field(message: _Message, field: _Descriptor, value: Value, name: str) -> None:
    if not field.is_repeated:
        if field.message_type is not None:
            inner = getattr(message, field.name)
            type(inner).SetInParent(inner)
            _fill_message(inner, field.message_type, value, name)
        else:
            setattr(message, field.name, _scalar_value(field, value, name))
        return
    target = getattr(message, field.name)
    if _is_map(field):
        _fill_map(target, field, value, name)
    elif not isinstance(value, (list, tuple)):
        raise SerializationError(name, f"{field.full_name} is {kind_of(value)}, not an array")
    elif field.message_type is not None:
        for each in value:
            _fill_message(target.add(), field.message_type, each, name)
    else:
        target.extend([_scalar_value(field, each, name) for each in value])


def _fill_map(target: Any, field: _Descriptor, value: Value, name: str) -> None:  # noqa: ANN401 - a container
    if not isinstance(value, Mapping):
        raise SerializationError(name, f"{field.full_name} is {kind_of(value)}, not an object")
    entry = field.message_type.fields_by_name
    for text, each in value.items():
        key = _map_key(entry["key"], text, name)
        if entry["value"].message_type is not None:
            _fill_message(target[key], entry["value"].message_type, each, name)
        else:
            target[key] = _scalar_value(entry["value"], each, name)


def _map_key(field: _Descriptor, text: Value, name: str) -> Value:
    """Return the key of a text; `01` and `1` are not the same key, so only one of them is valid."""
    if field.cpp_type == field.CPPTYPE_STRING:
        return text
    if field.cpp_type == field.CPPTYPE_BOOL:
        if text not in ("true", "false"):
            raise SerializationError(name, f"a key of {field.full_name} is not a boolean")
        return text == "true"
    if type(text) is int:
        return text
    try:
        number = int(text)
    except (ValueError, TypeError, OverflowError):
        number = None
    if number is None or str(number) != text:
        raise SerializationError(name, f"a key of {field.full_name} is not a whole number")
    return number


def _scalar_value(field: _Descriptor, value: Value, name: str) -> Value:
    """Return a value as Protobuf accepts it; it would take a boolean for a number, too."""
    if field.enum_type is not None and isinstance(value, str):
        named = field.enum_type.values_by_name.get(value)
        if named is None:
            raise SerializationError(name, f"{field.enum_type.name} has no such value")
        return named.number
    if type(value) not in _kinds_of(field):
        raise SerializationError(name, f"{field.full_name} is {kind_of(value)}")
    if field.cpp_type == field.CPPTYPE_FLOAT:
        _check_float(field, value, name)
    return value


def _check_float(field: _Descriptor, value: Value, name: str) -> None:
    """Refuse a finite number that 4 bytes cannot represent: Protobuf writes an infinity."""
    try:
        struct.pack("<f", value)
    except (OverflowError, struct.error):
        raise SerializationError(name, f"{field.full_name} is out of range") from None


def _kinds_of(field: _Descriptor) -> tuple[type, ...]:
    if field.cpp_type == field.CPPTYPE_BOOL:
        return (bool,)
    if field.cpp_type == field.CPPTYPE_STRING:
        return (bytes,) if field.type == field.TYPE_BYTES else (str,)
    if field.cpp_type in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
        return (float, int)
    return (int,)
