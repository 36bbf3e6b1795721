"""A data engineer who knows PySpark: from the wheel to an application on Spark, as the pages say."""

import pytest

from tests.wheel.walk import Walk, blocks

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.soak]


@pytest.mark.timeout(1_200)
def test_the_example_of_the_runtime_runs(walk: Walk) -> None:
    document, example = blocks("runtime.md", "Try it")
    walk.write("orders.yaml", document.text)
    walk.run("headwater toolchain\nheadwater doctor")
    assert "1 application is valid: shop" in walk.run("headwater validate orders.yaml --run")
    output = walk.run(example.commands)
    assert {f"city{number}\t25" for number in range(8)} <= set(output.splitlines())


@pytest.mark.timeout(1_200)
def test_a_topology_in_python_runs_on_a_session(walk: Walk) -> None:
    [functions] = blocks("python.md", "Functions and processors")
    program, trial = blocks("python.md", "The builder")
    walk.write("shop_functions.py", functions.text)
    walk.write("totals.py", walk.as_typed(program.text))
    assert {"12.0", "18.0"} <= set(walk.run(trial.commands).splitlines())
