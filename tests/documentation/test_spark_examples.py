"""The examples of `spark-submit` name the jars that Spark needs to read Kafka."""

import re
from pathlib import Path

from headwater.toolchain import ensure_spark_jars

PAGE = (Path(__file__).parents[2] / "docs" / "runtime.md").read_text(encoding="utf-8")


def test_each_example_passes_the_jars_unless_an_image_has_them() -> None:
    joined = PAGE.replace("\\\n", " ")
    examples = re.findall(r"^spark-submit .*$", joined, re.MULTILINE)
    assert len(examples) >= 3
    for example in examples:
        assert "--jars " in example or "spark.kubernetes.container.image=" in example, example


def test_the_jars_are_found_as_the_page_says() -> None:
    [program] = re.findall(r"^JARS=\$\(python -c '(.*)'\)$", PAGE, re.MULTILINE)
    printed: list[str] = []
    jars = (Path("connector.jar"), Path("kafka-clients.jar"))
    code = program.replace("from headwater.toolchain import ensure_spark_jars; ", "")
    assert code != program
    assert callable(ensure_spark_jars)
    exec(code, {"ensure_spark_jars": lambda: jars, "print": printed.append})  # noqa: S102 - of our own page
    assert printed == ["connector.jar,kafka-clients.jar"]
