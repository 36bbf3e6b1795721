"""Classes that a document names are loaded where its tasks run, before anything starts."""

import pytest
from pyspark.sql import SparkSession

from headwater.model.problems import ProblemCode, ProblemsError
from headwater.spec import load_text
from headwater_spark.driver.preflight import RunnableDocument, check_runnable, check_user_classes

_DOCUMENT = """
application:
  id: shop
  config: {static.partitioner.class: "PARTITIONER"}
topology:
  - stream: {topic: orders, serdes: {key: string, value: string}}
  - process: {class: "PROCESSOR", name: enrich}
  - to: {topic: enriched, serdes: {key: string, value: string}}
"""


def _runnable(
    processor: str = "tests.runtime.spark.tenants:Sums",
    partitioner: str = "tests.runtime.spark.tenants:ByTenant",
) -> RunnableDocument:
    text = _DOCUMENT.replace("PROCESSOR", processor).replace("PARTITIONER", partitioner)
    (document,) = load_text(text, "shop.yaml").documents
    return check_runnable(document)


@pytest.mark.spark
def test_all_missing_classes_are_reported_together(spark: SparkSession) -> None:
    with pytest.raises(ProblemsError) as refused:
        check_user_classes(spark, _runnable("missing.package:Enrich", "json:Nothing"))
    processor, partitioner = refused.value.problems
    assert {processor.code, partitioner.code} == {ProblemCode.NOT_RUNNABLE}
    assert processor.node == "enrich"
    assert processor.location is not None
    assert processor.location.line == 7
    assert processor.found == "ModuleNotFoundError: No module named 'missing'"
    assert partitioner.node == "static.partitioner.class"
    assert partitioner.found == "ImportError: json has no Nothing"


@pytest.mark.spark
def test_a_class_that_cannot_be_used_is_reported(spark: SparkSession) -> None:
    with pytest.raises(ProblemsError) as refused:
        check_user_classes(spark, _runnable("headwater_spark.processors:Processor"))
    assert [each.found for each in refused.value.problems] == ["a class without the method process"]


@pytest.mark.spark
def test_existing_classes_are_no_problem(spark: SparkSession) -> None:
    check_user_classes(spark, _runnable())
