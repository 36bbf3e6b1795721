"""The record of the active client: what another client reads of it, and which texts are no record."""

import json

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.client_record import ClientRecord, client_group, decode_record, is_client_group

RECORD = ClientRecord(term=3, process="a1b2", name="host-1", renewals=7, spark="spark://master app-1")


@given(st.builds(ClientRecord))
def test_a_written_record_is_read(record: ClientRecord) -> None:
    assert decode_record(record.encode()) == record


def test_a_record_of_another_version_is_a_record() -> None:
    later = {**attrs.asdict(RECORD), "color": "blue"}
    assert decode_record(json.dumps(later)) == RECORD
    assert decode_record('{"term": 1, "process": "x"}') == ClientRecord(term=1, process="x")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '"text"', "{}", '{"term": 1}', "null"])
def test_other_texts_are_no_record(text: str) -> None:
    assert decode_record(text) is None


def test_a_renewed_record_differs_and_an_ended_one_says_so() -> None:
    assert RECORD.renewed() == attrs.evolve(RECORD, renewals=8)
    assert RECORD.ended() == attrs.evolve(RECORD, has_ended=True)


def test_the_group_of_a_record_is_recognized() -> None:
    assert is_client_group(client_group("orders-app"))
    assert not is_client_group("orders-app")
