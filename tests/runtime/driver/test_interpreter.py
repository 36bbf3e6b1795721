"""Threads wait less for a thread that computes, and for garbage collections."""

import gc
import sys

import pytest

from headwater_spark.driver.processor_move.interpreter import cheap_collections, short_switch_interval


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


def test_collections_do_not_inspect_earlier_objects_inside_the_block() -> None:
    earlier: object = type("Earlier", (), {})()
    with cheap_collections():
        inspected = {id(each) for each in gc.get_objects()}
    assert id(earlier) not in inspected
    assert id(earlier) in {id(each) for each in gc.get_objects()}
