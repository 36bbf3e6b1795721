"""What a name of a class in a document may stand for."""

from functools import partial

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
        (keep, ClassRole.PARTITIONER, "an object of the type function, not a class"),
        (ByRegion, ClassRole.STATIC_PARTITIONER, "a class without the method static_partition"),
    ],
)
def test_others_have_a_fault(found: object, role: ClassRole, fault: str) -> None:
    assert find_class_fault(found, role) == fault
