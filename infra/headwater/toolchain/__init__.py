"""Download or build the programs that Headwater runs: Pulumi's CLI and plugins, Kafka, Spark's connector.

Each is downloaded or built once, into a cache folder named by version and content. Later calls find it there.
"""

from headwater.toolchain.commands import ToolchainError
from headwater.toolchain.kafka import KafkaDistribution, ensure_kafka
from headwater.toolchain.pulumi_cli import PulumiToolchain, ensure_pulumi, file_backend
from headwater.toolchain.spark import ensure_spark_jars, fetched_spark_jars, spark_java_options

__all__ = [
    "KafkaDistribution",
    "PulumiToolchain",
    "ToolchainError",
    "ensure_kafka",
    "ensure_pulumi",
    "ensure_spark_jars",
    "fetched_spark_jars",
    "file_backend",
    "spark_java_options",
]
