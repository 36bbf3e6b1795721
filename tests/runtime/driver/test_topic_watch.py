"""Which records of repartition topics are purged."""

from spark_jobs.runtime.driver.topic_watch import processed


def test_records_that_spark_reads_again_are_not_purged() -> None:
    committed = {("r", 0): 210, ("r", 1): 50, ("r", 2): 7}
    assert processed(committed, {("r", 0): 105, ("r", 1): 60}) == {("r", 0): 105, ("r", 1): 50, ("r", 2): 0}
