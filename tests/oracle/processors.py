"""Processors of the recorded cases: `adder(store, +n)` is `Adder_n_of_store` (`-` of the store as `_`)."""

import re
from typing import Any

from headwater_spark.processors import Processor, ProcessorContext, Record


class Adder(Processor):
    """Adds a step to the key's number in the store and forwards (key, number)."""

    store = ""
    step = 0

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.numbers = context.state_store(self.store)

    def process(self, record: Record) -> None:
        number = (self.numbers.get(record.key) or 0) + self.step
        self.numbers.put(record.key, number)
        self.context.forward(record.with_value(number))


def __getattr__(name: str) -> Any:  # noqa: ANN401 - as Python defines it
    found = re.fullmatch(r"Adder_(minus_)?(\d+)_of_(\w+)", name)
    if found is None:
        raise AttributeError(name)
    step = int(found[2]) * (-1 if found[1] else 1)
    return type(name, (Adder,), {"store": found[3].replace("_", "-"), "step": step})
