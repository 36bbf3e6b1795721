"""Switches of autoscaling in a running agent, which override the documents."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

import attrs
import pytest

from headwater.agent.documents import ENABLED, SwitchedDocuments
from headwater.agent.events import AgentEvent, DocumentsChanged
from headwater.control import Refused
from headwater.model.problems import Location
from headwater.model.topology import Application, TopologyDocument


class _Files:
    def __init__(self, **flags: str | None) -> None:
        self.documents = tuple(_document(id_, flag) for id_, flag in flags.items())

    def current(self) -> tuple[TopologyDocument, ...]:
        return self.documents

    def refresh(self) -> Sequence[AgentEvent]:
        return (DocumentsChanged(("a",)),)


def _document(id_: str, flag: str | None) -> TopologyDocument:
    config = {} if flag is None else {ENABLED: flag}
    return TopologyDocument(Application(id=id_, at=Location("file"), config=config))


def _flags(documents: SwitchedDocuments) -> Mapping[str, str | None]:
    return {each.application.id: each.application.config.get(ENABLED) for each in documents.current()}


def test_documents_without_switch_are_identical() -> None:
    files = _Files(a="true", b=None)
    documents = SwitchedDocuments(files)
    assert documents.current() is files.documents
    assert documents.refresh() == (DocumentsChanged(("a",)),)


def test_switch_applies_to_one_application_or_all() -> None:
    documents = SwitchedDocuments(_Files(a="true", b=None))
    assert documents.switch(enabled=True, application="b") == ("b",)
    assert _flags(documents) == {"a": "true", "b": "true"}
    assert documents.switch(enabled=False) == ("a", "b")
    assert _flags(documents) == {"a": "false", "b": "false"}
    assert documents.current() is documents.current()


def test_switch_holds_until_document_setting_changes() -> None:
    files = _Files(a="false")
    documents = SwitchedDocuments(files)
    documents.switch(enabled=True)
    files.documents = (attrs.evolve(files.documents[0]),)  # read again with the same setting
    assert _flags(documents) == {"a": "true"}
    files.documents = (_document("a", "true"),)
    assert documents.current() is files.documents
    files.documents = (_document("a", "false"),)
    assert _flags(documents) == {"a": "false"}


def test_route_switches_and_wakes_loop() -> None:
    woken: list[None] = []
    documents = SwitchedDocuments(_Files(a=None, b=None))
    route = documents.route(lambda: woken.append(None))
    assert route.path == "/control/autoscaling"
    assert route.handle({"enabled": True, "application": "a"}) == {"applications": {"a": True}}
    assert route.handle({"enabled": False}) == {"applications": {"a": False, "b": False}}
    assert len(woken) == 2
    with pytest.raises(Refused, match=r"has no application 'c'\. Its applications: a, b") as caught:
        route.handle({"enabled": True, "application": "c"})
    assert caught.value.status is HTTPStatus.NOT_FOUND
    for wrong in (
        {},
        {"enabled": "on"},
        {"enabled": 1},
        {"enabled": True, "app": "a"},
        {"enabled": True, "application": 3},
    ):
        with pytest.raises(Refused, match="Send"):
            route.handle(wrong)
