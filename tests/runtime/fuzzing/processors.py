"""What the processors of the Java helper do: they append a letter to the text of a value."""

from spark_jobs.processors import (
    FixedKeyProcessor,
    Processor,
    ProcessorContext,
    Record,
    Value,
    ValueTransformer,
)


def appended(value: Value) -> Value:
    return None if value is None else f"{value}x"


class Append(Processor):
    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(appended(record.value)))


class AppendToValue(FixedKeyProcessor):
    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(appended(record.value)))


class Transform(ValueTransformer):
    def transform(self, key: Value, value: Value) -> Value:
        del key
        return appended(value)
