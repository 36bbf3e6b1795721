"""The master of a standalone cluster: it ends applications whose drivers were lost.

A master does not check its drivers. The executors of a lost driver end when it does not answer, but the
master starts others for it at once, before those of applications that wait. That continues until the
connection of the driver is closed, which nothing does if its host was powered off or cut off.
"""

from urllib.parse import urlsplit

import structlog
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from headwater_spark.spark_internals.jvm import java_gateway

_log = structlog.get_logger(__name__)
_SCHEME = "spark://"


def standalone_application(spark: SparkSession) -> str:
    """Return the master and the id of the session's application; empty with another kind of master."""
    context = spark.sparkContext
    master = str(context.master)
    return f"{master} {context.applicationId}" if master.startswith(_SCHEME) else ""


def end_application(spark: SparkSession, lost: str) -> bool:
    """Let the master end another application, and its executors, as its own driver does at its end.

    Args:
        spark: The session of this driver.
        lost: What `standalone_application` has returned in the lost driver.

    Return whether the message was sent: not if the application is of another master, if this Spark has other
    private parts, or if no master answers. Nothing happens if the application has ended. Source:
    `org.apache.spark.deploy.master.Master`, `UnregisterApplication`.
    """
    own = standalone_application(spark)
    master, _, application = lost.partition(" ")
    if lost == own or master != own.partition(" ")[0] or not application:
        return False
    jvm = java_gateway(spark).jvm
    try:
        rpc = jvm.org.apache.spark.SparkEnv.get().rpcEnv()
        message = getattr(jvm.org.apache.spark.deploy, "DeployMessages$UnregisterApplication")(application)
        for host, port in master_addresses(master):
            address = jvm.org.apache.spark.rpc.RpcAddress(host, port)
            rpc.setupEndpointRef(address, "Master").send(message)
    except (Py4JError, TypeError) as error:
        reason = next(iter(str(error).splitlines()), "")
        _log.warning("executors of the replaced client not released", spark=application, reason=reason)
        return False
    _log.info("executors of the replaced client released", spark=application)
    return True


def master_addresses(master: str) -> tuple[tuple[str, int], ...]:
    """Return host and port of each master of a URL as `spark://first:7077,second:7077`."""
    parts = (urlsplit(f"//{each}") for each in master.removeprefix(_SCHEME).split(","))
    return tuple((part.hostname or "", part.port or 7077) for part in parts)
