"""PURE. The settings of Spark that an application cannot run with."""

from collections.abc import Iterator, Mapping

from headwater.model.problems import Problem, ProblemCode

_SPECULATION = "spark.speculation"
_ATTEMPTS = "spark.stage.maxConsecutiveAttempts"
_DEPLOY_MODE = "spark.submit.deployMode"
_CONNECT_VARIABLES = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")


def start_problems(
    application: str,
    *,
    master: str | None,
    conf: Mapping[str, str],
    environment: Mapping[str, str],
    program: tuple[str, str] = ("headwater run", "run_main.py"),
) -> tuple[Problem, ...]:
    """Return what prevents that Spark starts in this process.

    `master` None: `spark-submit` has started the driver, and knows where. `conf` are the settings of the
    command line. `program` is the command, and its program for `spark-submit`.
    """
    command, file = program
    found = [*_connect_problems(application, master or "", conf, environment)]
    if master is not None and conf.get(_DEPLOY_MODE, "client").lower() == "cluster":
        found.append(
            _unfit(
                application,
                "This process cannot start the driver on the cluster.",
                expected=f"{_DEPLOY_MODE} = client",
                found=f"{_DEPLOY_MODE} = cluster",
                why=f"`{command}` is the driver itself. Only spark-submit starts drivers on a cluster.",
                fix=f"Remove {_DEPLOY_MODE}. For a driver on the cluster, submit {file} to Kubernetes "
                "or YARN with `spark-submit --deploy-mode cluster`.",
            )
        )
    return tuple(found)


def session_problems(application: str, *, master: str, conf: Mapping[str, str]) -> tuple[Problem, ...]:
    """Return what prevents that an application runs on a session; `conf` are its settings."""
    return tuple(_session_problems(application, master, conf))


def is_local_master(master: str) -> bool:
    """Return whether tasks run in the driver's JVM: there are no executors."""
    return master == "local" or master.startswith("local[")


def connect_session(application: str) -> Problem:
    """Return the problem that a session is one of Spark Connect."""
    return _unfit(
        application,
        "The session is one of Spark Connect.",
        expected="a classic session, in the process of the driver",
        found="a session of Spark Connect",
        why=_WHY_CLASSIC,
        fix="Create the session with `SparkSession.builder.master(...)`, or use `headwater run`.",
    )


def _connect_problems(
    application: str, master: str, conf: Mapping[str, str], environment: Mapping[str, str]
) -> Iterator[Problem]:
    causes = [f"--master {master}"] if master.startswith("sc://") else []
    causes += [f"{name} is set" for name in _CONNECT_VARIABLES if environment.get(name)]
    causes += ["spark.remote is set"] if conf.get("spark.remote") else []
    mode = conf.get("spark.api.mode") or environment.get("SPARK_API_MODE", "")
    causes += ["spark.api.mode = connect"] if mode.lower() == "connect" else []
    if causes:
        yield _unfit(
            application,
            "Spark would start a session of Spark Connect.",
            expected="a classic session: a master such as spark://HOST:7077, without spark.remote",
            found="; ".join(causes),
            why=_WHY_CLASSIC,
            fix="Remove these settings, and name the master of the cluster instead of its Connect server.",
        )


def _session_problems(application: str, master: str, conf: Mapping[str, str]) -> Iterator[Problem]:
    if (found := conf.get(_SPECULATION, "false")).lower() != "false":
        yield _unfit(
            application,
            "Spark would run copies of slow tasks.",
            expected=f"{_SPECULATION} = false",
            found=f"{_SPECULATION} = {found}",
            why="A copy writes the same records, and competes with the first task for its state.",
            fix=f"Remove {_SPECULATION} from Spark's configuration, or set it to false.",
        )
    if (found := conf.get(_ATTEMPTS, "4")) != "1" and not is_local_master(master):
        yield _unfit(
            application,
            "Spark would repeat stages while tasks of their first attempt still run.",
            expected=f"{_ATTEMPTS} = 1",
            found=f"{_ATTEMPTS} = {found}",
            why="Workers cannot distinguish the attempts, so records could be processed twice.",
            fix=f"Remove {_ATTEMPTS} from --conf: Headwater sets it. For a session of your own, create it "
            "with `.config(map=session_config())`.",
        )


_WHY_CLASSIC = "The runtime starts streaming queries whose functions run in the process of the driver."


def _unfit(application: str, summary: str, *, expected: str, found: str, why: str, fix: str) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary=summary,
        expected=expected,
        found=found,
        why=why,
        fix=fix,
    )
