"""Compare all output of an application with its input, record by record."""

from typing import Self

import attrs

from tests.runtime.spark.process_application import KEYS, ProcessApplication


@attrs.frozen
class Reconciliation:
    """What an application has made of its records, so that a log shows it also if a check fails.

    Args:
        lost: How many records were not forwarded.
        forwarded_twice: How many records were forwarded again, counted each time.
        counts: How many keys have a final count.
        too_small: By how much final counts are too small, summed over all keys.
        too_large: By how much final counts are too large, summed over all keys.
    """

    records: int
    lost: int
    forwarded_twice: int
    counts: int
    too_small: int
    too_large: int

    @classmethod
    def of(cls, application: ProcessApplication) -> Self:
        """Read what the application has written to its output topics."""
        passed = application.passed()
        counts = application.last_counts("counted").values()
        expected = application.fed // KEYS
        return cls(
            records=application.fed,
            lost=application.fed - len(set(passed)),
            forwarded_twice=len(passed) - len(set(passed)),
            counts=len(counts),
            too_small=sum(max(0, expected - each) for each in counts),
            too_large=sum(max(0, each - expected) for each in counts),
        )
