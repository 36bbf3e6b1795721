"""What goes wrong with a record's bytes. Texts name the format and the fault, never what the record holds."""


class DeserializationError(ValueError):
    """Bytes that are not of their format. Who reads the record adds topic, partition and offset."""

    def __init__(self, format_name: str, fault: str) -> None:
        super().__init__(f"not a value of format {format_name}: {fault}")


class SerializationError(ValueError):
    """A value that its format cannot hold."""

    def __init__(self, format_name: str, fault: str) -> None:
        super().__init__(f"format {format_name} cannot hold the value: {fault}")


def kind_of(value: object) -> str:
    """A value's type as documents call it."""
    return _KINDS.get(type(value), type(value).__name__)


_KINDS = {
    str: "a string",
    int: "a whole number",
    float: "a floating-point number",
    bool: "a boolean",
    bytes: "bytes",
    dict: "an object",
    list: "an array",
    type(None): "null",
}
