"""The Spark session: redaction."""

from spark_jobs.runtime.driver.session import SessionSettings


def test_spark_redacts_secrets() -> None:
    settings = SessionSettings(application="a").spark()
    for name in ("spark.redaction.regex", "spark.sql.redaction.options.regex"):
        for word in ("password", "jaas", "keystore", "ssl[.]key", "secret"):
            assert word in settings[name]
