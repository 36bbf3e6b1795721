"""The objects that a class name in a document may refer to."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial, partialmethod, wraps

import pytest

from headwater_spark.engine.program.user_code import ClassRole, find_class_fault
from headwater_spark.processors import FixedKeyProcessor, Processor, Record, ValueTransformer


class Scorer(Processor):
    def process(self, record: Record) -> None:
        """Do nothing."""


class ScorerWithRate(Scorer):
    def __init__(self, rate: float) -> None:
        self.rate = rate


class Misspelled(FixedKeyProcessor):
    def proces(self, record: Record) -> None:
        """Do nothing."""


class Alone:
    """A class with the methods, but without the base class."""

    def init(self, context: object) -> None:
        """Do nothing."""

    def process(self, record: Record) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Rates(ValueTransformer):
    def transform(self, key: object, value: object) -> object:
        return key, value


class ByRegion:
    def partition(self, topic: str, key: object, value: object, num_partitions: int) -> int:
        raise NotImplementedError(topic, key, value, num_partitions)


class StaticByRegion:
    def static_partition(self, topic: str, key: object, num_partitions: int) -> int:
        raise NotImplementedError(topic, key, num_partitions)


class Abstract(Scorer, ABC):
    @abstractmethod
    def rate(self) -> float: ...


def with_rate(method: Callable[..., None]) -> Callable[..., None]:
    @wraps(method)
    def call(self: object, record: Record) -> None:
        method(self, record, 1.2)

    return call


def processor(**attributes: object) -> type:
    """Return a subclass of `Processor` with more attributes."""
    return type("Made", (Processor,), attributes)


def keep(record: Record) -> Record:
    return record


def convert(key: object, value: object) -> object:
    return key, value


@pytest.mark.parametrize(
    ("found", "role"),
    [
        (Scorer, ClassRole.PROCESSOR),
        (Alone, ClassRole.PROCESSOR),
        (partial(ScorerWithRate, 1.2), ClassRole.PROCESSOR),
        (keep, ClassRole.PROCESSOR),
        (lambda record, rate=1.2: (record, rate), ClassRole.PROCESSOR),
        (Rates, ClassRole.TRANSFORMER),
        (convert, ClassRole.TRANSFORMER),
        (ByRegion, ClassRole.PARTITIONER),
        (StaticByRegion, ClassRole.PARTITIONER),
        (StaticByRegion, ClassRole.STATIC_PARTITIONER),
        (partial(ByRegion), ClassRole.PARTITIONER),
        (iter, ClassRole.PROCESSOR),
        (processor(process=lambda _self, _record, _rate=1.2: None), ClassRole.PROCESSOR),
        (processor(process=lambda *_: None), ClassRole.PROCESSOR),
        (processor(process=with_rate(lambda _self, _record, _rate: None)), ClassRole.PROCESSOR),
        (processor(process=staticmethod(keep)), ClassRole.PROCESSOR),
        (processor(process=classmethod(lambda _cls, _record: None)), ClassRole.PROCESSOR),
        (processor(process=partial(convert, 1)), ClassRole.PROCESSOR),
        (processor(process=partialmethod(lambda _self, _rate, _record: None, 1.2)), ClassRole.PROCESSOR),
        (processor(process=property(lambda _self: keep)), ClassRole.PROCESSOR),
        (processor(process=iter), ClassRole.PROCESSOR),
    ],
)
def test_classes_and_functions_with_the_right_methods_can_be_used(found: object, role: ClassRole) -> None:
    assert find_class_fault(found, role) is None


@pytest.mark.parametrize(
    ("found", "role", "fault"),
    [
        (1.2, ClassRole.PROCESSOR, "an object of the type float, not a class"),
        (pytest, ClassRole.PROCESSOR, "an object of the type module, not a class"),
        (ScorerWithRate, ClassRole.PROCESSOR, "a class that cannot be created without arguments"),
        (Misspelled, ClassRole.PROCESSOR, "a class without the method process"),
        (Rates, ClassRole.PROCESSOR, "a class without the method process"),
        (convert, ClassRole.PROCESSOR, "a function that cannot be called with (record)"),
        (Scorer, ClassRole.TRANSFORMER, "a class without the method transform"),
        (keep, ClassRole.TRANSFORMER, "a function that cannot be called with (key, value)"),
        (
            keep,
            ClassRole.PARTITIONER,
            "an object of the type function, not a class, that cannot be called without arguments",
        ),
        (
            Scorer().process,
            ClassRole.PROCESSOR,
            "an object of the type method, not a class, that cannot be called without arguments",
        ),
        (
            partial(convert, 1),
            ClassRole.PROCESSOR,
            "an object of the type partial, not a class, that cannot be called without arguments",
        ),
        (Abstract, ClassRole.PROCESSOR, "an abstract class, which cannot be created"),
        (processor(process=1), ClassRole.PROCESSOR, "a class whose process is not a method"),
        (
            processor(process=keep),
            ClassRole.PROCESSOR,
            "a class whose method process cannot be called with (record)",
        ),
        (
            processor(process=staticmethod(convert)),
            ClassRole.PROCESSOR,
            "a class whose method process cannot be called with (record)",
        ),
        (
            processor(process=lambda _self, _key, _value: None),
            ClassRole.PROCESSOR,
            "a class whose method process cannot be called with (record)",
        ),
        (
            processor(process=len, init=lambda _self: None),
            ClassRole.PROCESSOR,
            "a class whose method init cannot be called with (context)",
        ),
        (
            processor(process=print, close=lambda _self, _now: None),
            ClassRole.PROCESSOR,
            "a class whose method close cannot be called without arguments",
        ),
        (ByRegion, ClassRole.STATIC_PARTITIONER, "a class without the method static_partition"),
        (
            type("Made", (), {"partition": lambda _self, _key, _count: 0}),
            ClassRole.PARTITIONER,
            "a class whose method partition cannot be called with (topic, key, value, num_partitions)",
        ),
    ],
)
def test_others_have_a_fault(found: object, role: ClassRole, fault: str) -> None:
    assert find_class_fault(found, role) == fault


def test_a_built_in_function_that_requires_arguments_has_a_fault() -> None:
    fault = find_class_fault(len, ClassRole.PROCESSOR)
    assert fault is not None
    assert fault.startswith("an object of the type builtin_function_or_method, not a class")
