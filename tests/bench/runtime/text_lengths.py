"""The processor of the workload `processor with a store`; `Peer.java` has the same one in Java."""

from headwater_spark.processors import Processor, ProcessorContext, Record


class TextLengths(Processor):
    """Adds up the lengths of the values of each key, and forwards each sum."""

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._lengths = context.state_store("lengths")

    def process(self, record: Record) -> None:
        length = (self._lengths.get(record.key) or 0) + len(record.value)
        self._lengths.put(record.key, length)
        self._context.forward(record.with_value(length))
