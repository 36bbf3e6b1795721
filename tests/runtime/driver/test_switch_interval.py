"""Threads wait less for a thread that computes."""

import sys

import pytest

from spark_jobs.runtime.driver.switch_interval import short_switch_interval


def test_the_interval_is_short_inside_the_block_only() -> None:
    before = sys.getswitchinterval()
    inside = 0.0

    def fail() -> None:
        nonlocal inside
        with short_switch_interval():
            inside = sys.getswitchinterval()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert inside < before / 5
    assert sys.getswitchinterval() == before
