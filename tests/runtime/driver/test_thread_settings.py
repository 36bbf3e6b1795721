"""`num.stream.threads` and `uncaught.exception.handler`: bad values are refused before anything starts."""

import pytest

from headwater.model.problems import ProblemCode, ProblemsError
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.driver.threads.settings import (
    handler_name,
    may_shut_down_application,
    stream_threads,
)
from headwater_spark.driver.threads.uncaught_exceptions import load_handler

_CLASSES = "tests.runtime.spark.thread_classes"


def _document(key: str = "", value: str = "") -> TopologyDocument:
    config = f'config: {{{key}: "{value}"}}' if key else ""
    text = (
        "application:\n"
        "  id: shop\n"
        f"  {config}\n"
        "topology:\n"
        "  - stream: {topic: orders, serdes: {key: string, value: string}}\n"
        "  - to: {topic: copies}\n"
    )
    loaded = load_text(text, "shop.yaml")
    assert not loaded.problems, loaded.problems
    return loaded.documents[0]


def test_without_settings_threads_follow_the_slots_and_no_handler_is_set() -> None:
    document = _document()
    check_runnable(document)
    assert stream_threads(document.application) is None
    assert handler_name(document.application) is None
    assert load_handler(document.application) is None


@pytest.mark.parametrize(("value", "count"), [("1", 1), (" 12 ", 12), ("2147483647", 2**31 - 1)])
def test_valid_numbers(value: str, count: int) -> None:
    application = _document("num.stream.threads", value.strip()).application
    assert stream_threads(application) == count


@pytest.mark.parametrize("value", ["0", "00", "-1"])
def test_number_of_threads_must_be_positive(value: str) -> None:
    with pytest.raises(ProblemsError) as refused:
        check_runnable(_document("num.stream.threads", value))
    problem = refused.value.problems[-1]
    assert problem.code is ProblemCode.INVALID_CONFIG
    assert problem.expected == "a whole number of at least 1"
    assert problem.found == f'"{value}"'
    assert "num.stream.threads" in problem.fix


@pytest.mark.parametrize("value", ["2147483648", "two", "1.5"])
def test_number_of_threads_must_be_a_whole_number(value: str) -> None:
    text = (
        f'application: {{id: shop, config: {{num.stream.threads: "{value}"}}}}\ntopology: [{{stream: in}}]\n'
    )
    problems = load_text(text, "shop.yaml").problems
    assert any("num.stream.threads" in str(problem) and problem.fix for problem in problems)


@pytest.mark.parametrize(
    "value", ["replace", "REPLACE_THREAD", "replace-thread,shutdown-thread", "a b:C", ":C"]
)
def test_unknown_handlers_are_refused(value: str) -> None:
    with pytest.raises(ProblemsError) as refused:
        check_runnable(_document("uncaught.exception.handler", value))
    (problem,) = refused.value.problems
    assert problem.code is ProblemCode.INVALID_CONFIG
    assert problem.expected == (
        "replace-thread, shutdown-thread, shutdown-client, shutdown-application, or module:Class"
    )
    assert problem.found == f'"{value}"'
    assert problem.location is not None


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("missing.package:Handler", "ModuleNotFoundError: No module named 'missing'"),
        ("json:Handler", "ImportError: json has no Handler"),
        ("json:JSONDecoder", "JSONDecoder, which is no subclass of UncaughtExceptionHandler"),
    ],
)
def test_classes_that_cannot_be_used_are_refused(name: str, found: str) -> None:
    document = _document("uncaught.exception.handler", name)
    check_runnable(document)
    with pytest.raises(ProblemsError) as refused:
        load_handler(document.application)
    (problem,) = refused.value.problems
    assert problem.code is ProblemCode.NOT_RUNNABLE
    assert problem.summary == f"The class {name} of uncaught.exception.handler cannot be used."
    assert problem.found == found


@pytest.mark.parametrize(
    ("handler", "may"),
    [
        ("replace-thread", False),
        ("shutdown-client", False),
        ("shutdown-application", True),
        (f"{_CLASSES}:AddsThread", True),
    ],
)
def test_requests_of_other_clients_are_read_only_if_there_can_be_any(handler: str, may: bool) -> None:  # noqa: FBT001 - a parameter
    assert may_shut_down_application(_document("uncaught.exception.handler", handler).application) is may
