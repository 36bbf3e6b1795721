"""Edits after which Kafka Streams has the earlier local state: which entries it still reads."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest

from headwater.model.problems import Severity
from headwater.planner.edits import find_edit
from headwater.toolchain.broker.local import LocalBroker
from tests.oracle.edits.judge import Series, Trial, compiled_side, edits_program, series_of
from tests.oracle.edits.random_edits import Json, RandomEdit
from tests.oracle.kafka_streams import VERSION

pytestmark = [pytest.mark.broker, pytest.mark.oracle, pytest.mark.soak, pytest.mark.timeout(600)]
_SPREAD_MS = 50 * 60_000
_RECORDS = 60

Windows = Mapping[str, Any]
_TUMBLING: Windows = {"tumbling": {"size": "10s", "grace": "60m"}}
_EDITS: Mapping[str, tuple[Windows, Windows]] = {
    "equal": (_TUMBLING, _TUMBLING),
    "hopping": (_TUMBLING, {"hopping": {"size": "10s", "advance": "5s", "grace": "60m"}}),
    "grace": (_TUMBLING, {"tumbling": {"size": "10s", "grace": "100m"}}),
    "emit": (_TUMBLING, {**_TUMBLING, "emit": "onWindowClose"}),
}


def _series(id_: str, version: str, before: Windows, after: Windows) -> Series:
    def document(windows: Windows) -> Json:
        steps = [{"stream": f"{id_}.in"}, {"groupByKey": None}, {"windowedBy": windows}]
        return {
            "application": {"id": id_},
            "topology": [*steps, {"count": {"materialized": "counts"}}],
        }

    counts = {f"{id_}.in": 1}
    edit = RandomEdit(document(before), document(after), counts, ("windows",))
    old, new = (compiled_side(each, counts, version) for each in (edit.before, edit.after))
    assert old is not None
    assert new is not None
    (predicted,) = find_edit(old, new).applications
    first = round(time.time() * 1000) - _SPREAD_MS
    records = [
        {"topic": f"{id_}.in", "key": "a", "value": "1", "timestamp": first + number * _SPREAD_MS // _RECORDS}
        for number in range(_RECORDS)
    ]
    request = {
        "document": edit.after,
        "reads": [f"{id_}.in"],
        "input": [],
        "repartitions": [],
        "kept": {"counts": "window"},
    }
    series = series_of([Trial(edit, predicted, old, new, request)], records)
    return attrs.evolve(series, request={**series.request, "keepsLocalState": True})


@pytest.mark.parametrize("version", ["4.1.2", VERSION])
def test_local_state_is_read_as_predicted(
    version: str, kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    """What cannot be read is missing; since 4.3, it is restored again, or the application fails."""
    series = {name: _series(unique(name), version, *sides) for name, sides in _EDITS.items()}
    with edits_program(version) as program:
        answers = program.run(kafka.bootstrap_servers, series.values())
        found = {trial.id: answer for trial, answer in answers}
    for name, each in series.items():
        ((trial,), answer) = each.trials, found[each.id]
        (topic,) = trial.predicted.topics
        is_read = "local disks" not in topic.why
        assert is_read is (name in ("equal", "hopping")), (name, topic)
        assert is_read or topic.severity is Severity.WARNING
        if "broken" in answer:
            assert not is_read, answer["broken"]
            continue
        before, after = (answer[side]["counts"] for side in ("dumpBefore", "dumpAfter"))
        assert len(before) == _RECORDS, json.dumps(answer)
        is_whole = before == after and not sum(answer["restored"].values())
        assert is_whole is is_read, (name, json.dumps(answer))
