"""Threads wait less for a thread that computes."""

import sys

import pytest

from spark_jobs.runtime.driver.switch_interval import short_switch_interval


def test_the_interval_is_short_inside_the_block_only() -> None:
    before = sys.getswitchinterval()
    with pytest.raises(ZeroDivisionError), short_switch_interval():
        assert sys.getswitchinterval() < before / 5
        raise ZeroDivisionError
    assert sys.getswitchinterval() == before
