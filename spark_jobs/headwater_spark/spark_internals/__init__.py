"""Private parts of PySpark and Spark that Headwater uses, because no public API does the same.

Each function or class is one use and states its reason. `check_spark_internals` tries each part without a
fallback when an application starts: with another Spark, the start fails with a clear problem, and not the
first batch. Signals, placed tasks, grouped and packed rows have a fallback, which is logged. No other package
uses private names of PySpark; a test enforces it.
"""
