"""Settings of Spark with which a command cannot run: an application, or a reshard as jobs of Spark."""

from collections.abc import Iterator, Mapping

import attrs

from headwater.model.problems import Problem, ProblemCode

_SPECULATION = "spark.speculation"
_ATTEMPTS = "spark.stage.maxConsecutiveAttempts"
_DEPLOY_MODE = "spark.submit.deployMode"
_CONNECT_VARIABLES = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")


@attrs.frozen(kw_only=True)
class SparkCommand:
    """A command that starts Spark, and why it cannot run with some settings.

    `file` is its program for `spark-submit`.
    """

    name: str
    file: str
    needs_classic: str
    forbids_copies: str
    forbids_stages: str


RUN = SparkCommand(
    name="headwater run",
    file="run_main.py",
    needs_classic="The runtime starts streaming queries whose functions run in the process of the driver.",
    forbids_copies="A copy writes the same records, and competes with the first task for its state.",
    forbids_stages="Workers cannot distinguish the attempts, so records could be processed twice.",
)
RESHARD = SparkCommand(
    name="headwater reshard --spark",
    file="reshard_main.py",
    needs_classic="A reshard starts jobs with the RDD API, which Spark Connect does not have.",
    forbids_copies="A copy moves the same entries, and ends the transactions of the first task.",
    forbids_stages="Tasks cannot distinguish the attempts, so two tasks could move the same entries.",
)


def start_problems(
    application: str,
    *,
    master: str | None,
    conf: Mapping[str, str],
    environment: Mapping[str, str],
    command: SparkCommand = RUN,
) -> tuple[Problem, ...]:
    """Return what prevents that Spark starts in this process.

    `master` None: `spark-submit` has started the driver, and knows where. `conf` are the settings of the
    command line.
    """
    found = [*_connect_problems(application, master or "", conf, environment, command)]
    if master is not None and conf.get(_DEPLOY_MODE, "client").lower() == "cluster":
        found.append(
            _unfit_setting(
                application,
                "This process cannot start the driver on the cluster.",
                expected=f"{_DEPLOY_MODE} = client",
                found=f"{_DEPLOY_MODE} = cluster",
                why=f"`{command.name}` is the driver itself. Only spark-submit starts drivers on a cluster.",
                fix=f"Remove {_DEPLOY_MODE}. For a driver on the cluster, submit {command.file} to "
                "Kubernetes or YARN with `spark-submit --deploy-mode cluster`.",
            )
        )
    return tuple(found)


def session_problems(
    application: str, *, master: str, conf: Mapping[str, str], command: SparkCommand = RUN
) -> tuple[Problem, ...]:
    """Return what prevents that an application runs on a session; `conf` are its settings."""
    return tuple(_setting_problems(application, master, conf, command))


def is_local_master(master: str) -> bool:
    """Return whether tasks run in the driver's JVM: there are no executors."""
    return master == "local" or master.startswith("local[")


def connect_session(application: str) -> Problem:
    """Return the problem that a session is one of Spark Connect."""
    return _unfit_setting(
        application,
        "The session is one of Spark Connect.",
        expected="a classic session, in the process of the driver",
        found="a session of Spark Connect",
        why=RUN.needs_classic,
        fix="Create the session with `SparkSession.builder.master(...)`, or use `headwater run`.",
    )


def _connect_problems(
    application: str,
    master: str,
    conf: Mapping[str, str],
    environment: Mapping[str, str],
    command: SparkCommand,
) -> Iterator[Problem]:
    causes = [f"--master {master}"] if master.startswith("sc://") else []
    causes += [f"{name} is set" for name in _CONNECT_VARIABLES if environment.get(name)]
    causes += ["spark.remote is set"] if conf.get("spark.remote") else []
    mode = conf.get("spark.api.mode") or environment.get("SPARK_API_MODE", "")
    causes += ["spark.api.mode = connect"] if mode.lower() == "connect" else []
    if causes:
        yield _unfit_setting(
            application,
            "Spark would start a session of Spark Connect.",
            expected="a classic session: a master such as spark://HOST:7077, without spark.remote",
            found="; ".join(causes),
            why=command.needs_classic,
            fix="Remove these settings, and name the master of the cluster instead of its Connect server.",
        )


def _setting_problems(
    application: str, master: str, conf: Mapping[str, str], command: SparkCommand
) -> Iterator[Problem]:
    if (found := conf.get(_SPECULATION, "false")).lower() != "false":
        yield _unfit_setting(
            application,
            "Spark would run copies of slow tasks.",
            expected=f"{_SPECULATION} = false",
            found=f"{_SPECULATION} = {found}",
            why=command.forbids_copies,
            fix=f"Remove {_SPECULATION} from Spark's configuration, or set it to false.",
        )
    if (found := conf.get(_ATTEMPTS, "4")) != "1" and not is_local_master(master):
        yield _unfit_setting(
            application,
            "Spark would repeat stages while tasks of their first attempt still run.",
            expected=f"{_ATTEMPTS} = 1",
            found=f"{_ATTEMPTS} = {found}",
            why=command.forbids_stages,
            fix=f"Remove {_ATTEMPTS} from --conf: Headwater sets it. For a session of your own, create it "
            "with `.config(map=session_config())`.",
        )


def _unfit_setting(
    application: str, summary: str, *, expected: str, found: str, why: str, fix: str
) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary=summary,
        expected=expected,
        found=found,
        why=why,
        fix=fix,
    )
