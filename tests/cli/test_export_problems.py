"""The complete texts of the problems of `headwater import --jar`. `UPDATE_GOLDEN=1` rewrites them."""

from collections.abc import Callable
from pathlib import Path

from headwater.cli.java_export import (
    OUTCOMES,
    ExportRequest,
    ExportResult,
    export_problem,
    no_java,
    unreadable_file,
)
from tests.spec.rendering import problems_text

_GOLDEN = Path(__file__).parent / "golden" / "export_problems.txt"
_REQUEST = ExportRequest(jar=Path("app.jar"), target="com.acme.Orders::topology")
_DETAILS = {
    "no class": "com.acme.Orders",
    "no member": "build, TOPOLOGY",
    "no constructor": "com.acme.Orders",
    "no topology": "java.lang.String",
    "exited": "3",
    "timeout": "None",
}
_TRACE = """\
java.lang.IllegalStateException: no registry
\tat com.acme.Orders.topology(Orders.java:70)
\tat java.base/java.lang.reflect.Method.invoke(Method.java:569)
\tat io.headwater.streams.topology.Export.call(Export.java:90)
"""


def test_texts(golden: Callable[[Path, str], None]) -> None:
    problems = [no_java(), unreadable_file("app.jar", "File is not a zip file")]
    for outcome in (*OUTCOMES, "refused"):
        detail = _DETAILS.get(outcome, "java.lang.IllegalStateException: no registry")
        result = ExportResult(outcome=outcome, detail=detail, trace=_TRACE, output="waiting\nfor a broker")
        problems.append(export_problem(_REQUEST, result))
    golden(_GOLDEN, problems_text(problems))
    assert all(problem.fix.endswith(".") for problem in problems)
