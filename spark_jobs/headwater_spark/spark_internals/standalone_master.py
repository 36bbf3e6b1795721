"""The master of a standalone cluster: it ends applications whose drivers were lost.

A master does not check its drivers. The executors of a lost driver end when it does not answer, but the
master starts others for it at once, before the executors of applications that wait. That continues until the
connection of the driver is closed, which nothing does if its host was powered off or cut off.
"""

import re
from collections.abc import Callable, Generator
from contextlib import suppress
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import structlog
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from headwater_spark.spark_internals.jvm import java_gateway

_log = structlog.get_logger(__name__)
_SCHEME = "spark://"
_APPLICATION_ID = re.compile(r"[\w.-]{1,200}", re.ASCII)
"""`Master.newApplicationId`; `spark.deploy.appIdPattern` may change its form."""
_POLL_SECONDS = 0.1
Requests = Generator[Any, Any, str]
"""The requests to one master: yields Scala futures, is sent their values, returns why it sent no message."""


def standalone_application(spark: SparkSession) -> str:
    """Return the master and the id of the session's application; empty with another kind of master."""
    context = spark.sparkContext
    master = str(context.master)
    return f"{master} {context.applicationId}" if master.startswith(_SCHEME) else ""


def end_application(spark: SparkSession, lost: str, stopping: Event) -> bool:
    """Let the master end another application, and its executors, as its own driver does at its end.

    Unreachable masters answer after minutes: call it in a thread. It ends soon after `stopping` is set.

    `lost` is what `standalone_application` has returned in the lost driver. It is read from Kafka.

    Return whether the message was sent: only to the active master of this session, and only if that has an
    application with this id and the Spark name of this session. Nothing happens if the application has ended.
    """
    own = standalone_application(spark)
    if not (application := replaced_application(lost, own)):
        return False
    master = own.partition(" ")[0]
    try:
        requests = {
            f"{host}:{port}": _end_on_master(spark, host, port, application)
            for host, port in master_addresses(master)
        }
        reasons = run_requests(requests, _is_completed, _answer_of, stopping)
    except (Py4JError, OSError) as error:  # the JVM has ended
        reasons = {master: _first_line(error)}
    if "" in reasons.values():
        _log.info("executors of the replaced client released", spark=application)
        return True
    if reasons and not stopping.is_set():
        _log.warning("executors of the replaced client not released", spark=application, reasons=reasons)
    return False


def replaced_application(lost: str, own: str) -> str:
    """Return the id of the application in `lost`, if it is another one of the master of `own`; else ""."""
    master, _, application = lost.partition(" ")
    own_master = own.partition(" ")[0]
    is_other = lost != own and bool(master) and master == own_master
    return application if is_other and _APPLICATION_ID.fullmatch(application) else ""


def run_requests(
    requests: dict[str, Requests],
    is_completed: Callable[[Any], bool],
    value: Callable[[Any], Any],
    stopping: Event,
) -> dict[str, str]:
    """Run the requests to all masters at the same time, until one has sent its message.

    Return master → why it has sent no message, "" if it has. Masters that have not answered are missing. A
    master that fails does not affect the others.

    Args:
        requests: Name of a master → its requests.
        is_completed: Returns whether a future is completed.
        value: Returns the value of a completed future; raises `Py4JError` if it has failed.
        stopping: Ends the wait.
    """
    reasons: dict[str, str] = {}
    waiting: dict[str, Any] = {}

    def advance(name: str, future: Any) -> None:  # noqa: ANN401 - py4j has no types
        try:
            waiting[name] = requests[name].send(None if future is None else value(future))
        except StopIteration as end:
            reasons[name] = end.value
        except (Py4JError, TypeError) as error:  # not reachable, or this Spark has other private parts
            reasons[name] = _first_line(error)

    for name in requests:
        advance(name, None)
    while waiting and "" not in reasons.values() and not stopping.wait(_POLL_SECONDS):
        for name in [name for name, future in waiting.items() if is_completed(future)]:
            advance(name, waiting.pop(name))
    return reasons


def _end_on_master(spark: SparkSession, host: str, port: int, application: str) -> Requests:
    """Send the message if this master has the application, and the application has the session's name.

    Source: `org.apache.spark.deploy.master.Master`: `RequestMasterState`, `UnregisterApplication`.
    """
    jvm = java_gateway(spark).jvm
    deploy = jvm.org.apache.spark.deploy
    address = jvm.org.apache.spark.rpc.RpcAddress(host, port)
    uri = jvm.org.apache.spark.rpc.RpcEndpointAddress(address, "Master").toString()
    # Not `setupEndpointRef`: it waits for the answer, up to two minutes.
    master = yield _rpc_env(spark).asyncSetupEndpointRefByURI(uri)
    request = getattr(getattr(deploy, "DeployMessages$RequestMasterState$"), "MODULE$")
    state = yield master.ask(request, jvm.scala.reflect.ClassTag.Any())
    names = {str(each.id()): str(each.desc().name()) for each in state.activeApps()}
    if application not in names:
        status = str(state.status().toString())
        return f"the application is not active on this master, whose status is {status}"
    if names[application] != spark.sparkContext.appName:
        return f"the application has another name: {names[application]}"
    master.send(getattr(deploy, "DeployMessages$UnregisterApplication")(application))
    return ""


def _rpc_env(spark: SparkSession) -> Any:  # noqa: ANN401 - py4j has no types
    """Return the `RpcEnv` of this driver.

    To call a method, py4j lists all methods of its class. That fails for `SparkEnv` of Spark 4.3: one has a
    parameter whose class requires Protobuf, which Spark does not ship. A method handle lists none.
    """
    java = java_gateway(spark).jvm.java
    load = java.lang.Thread.currentThread().getContextClassLoader().loadClass
    invoke = java.lang.invoke
    result = invoke.MethodType.methodType(load("org.apache.spark.rpc.RpcEnv"))
    method = invoke.MethodHandles.publicLookup().findVirtual(
        load("org.apache.spark.SparkEnv"), "rpcEnv", result
    )
    arguments = java.util.ArrayList()
    arguments.add(spark.sparkContext._jsc.sc().env())  # noqa: SLF001 - PySpark has no environment
    return method.invokeWithArguments(arguments)


def _is_completed(future: Any) -> bool:  # noqa: ANN401 - py4j has no types
    return bool(future.isCompleted())


def _answer_of(future: Any) -> Any:  # noqa: ANN401 - py4j has no types
    return future.value().get().get()


def _first_line(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    with suppress(Py4JError, OSError):
        error_text = str(error) if java is None else str(java.toString())
        return next(iter(error_text.splitlines()), "") or type(error).__name__
    return type(error).__name__


def master_addresses(master: str) -> tuple[tuple[str, int], ...]:
    """Return host and port of each master of a URL as `spark://first:7077,second:7077`."""
    parts = (urlsplit(f"//{each}") for each in master.removeprefix(_SCHEME).split(","))
    return tuple((part.hostname or "", part.port or 7077) for part in parts)
