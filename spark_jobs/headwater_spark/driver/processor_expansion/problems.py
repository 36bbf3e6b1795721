"""Which requests for more processors are refused, why an expansion is given up, and what to do."""

from collections.abc import Sequence

from headwater.model.problems import Location, Problem, ProblemCode, ProblemsError
from headwater.model.topology import Application
from headwater_spark.driver.processor_move.moves import Move
from headwater_spark.driver.processor_move.problems import fewer_processors
from headwater_spark.driver.states import ClientState
from headwater_spark.stream_threads import ExpansionPhase, ProcessorsStatus

_OLDER_BATCH = (
    "A batch that uses fewer partitions could write records to the partition that their key had before. Its "
    "processor would not have the state of the key any more."
)


def not_running(application: str, state: ClientState) -> Problem:
    """Return the problem of a request to a client that has not started yet, waits, or has ended."""
    has_ended = state is not ClientState.CREATED
    return Problem(
        code=ProblemCode.EXPANSION_WAITS,
        application=application,
        summary=f"{application} does not run.",
        expected="the state RUNNING or REBALANCING",
        found=state.value,
        why="The application copies its state to the added processors while it runs.",
        fix="Start the application again, and request the expansion when it runs."
        if has_ended
        else "Wait until it runs, and request the expansion again. If it waits because another client is "
        "active (`headwater status` says so), send the request to that client.",
    )


def without_processors(application: str, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.PROCESSOR_COUNT,
        application=application,
        summary=f"{application} has no fixed number of processors.",
        expected="`processors` in the document",
        found="`follow`",
        why="Each input partition has a processor of its own.",
        fix="Declare `processors` with the present number of partitions, and start the application again.",
        location=at,
    )


def other_expansion(application: str, target: int, requested: int) -> Problem:
    return Problem(
        code=ProblemCode.EXPANSION_WAITS,
        application=application,
        summary=f"{application} is being expanded to {target} processors.",
        expected="one expansion at a time",
        found=f"a request for {requested} processors",
        why="An expansion that has begun cannot be canceled: its changelog topics have more partitions.",
        fix=f"Wait until the application has {target} processors, and request the expansion again.",
    )


def not_begun(application: str, target: int, requested: int) -> Problem:
    """Return the problem of a request for another number while an expansion is checked."""
    return Problem(
        code=ProblemCode.EXPANSION_WAITS,
        application=application,
        summary=f"The expansion of {application} to {target} processors is being checked, or tried again.",
        expected="one expansion at a time",
        found=f"a request for {requested} processors",
        why="Nothing has changed yet. If it is refused, an expansion to a declared number is tried again.",
        fix=f"Wait until the check ends, and request the expansion again. If the document declares {target} "
        f"processors, declare `processors: {requested}` instead, and start the application again.",
    )


def already_expanded(application: str, target: int) -> Problem:
    return Problem(
        code=ProblemCode.STATE_NOT_MOVABLE,
        application=application,
        summary=f"The changelog topics of {application} have {target} partitions already.",
        expected="one partition for each processor in every changelog topic",
        found="partitions that no expansion of this application has added",
        why="It is not known whether they have entries. The expansion adds them itself.",
        fix="Find the client that adds partitions to internal topics. `headwater processors status` shows "
        "how many processors the state has.",
    )


def partitions_not_known(move: Move, missing: Sequence[str], since: str) -> Problem:
    """Return the reason of an expansion that waits: batches use fewer partitions than the inputs have."""
    return Problem(
        code=ProblemCode.EXPANSION_WAITS,
        application=move.application,
        summary=f"The expansion of {move.application} waits since {since} until the application knows all "
        f"partitions of its inputs: it knows {', '.join(missing)}.",
        expected="batches with all partitions of the inputs",
        found=", ".join(missing),
        why=_OLDER_BATCH,
        fix="The topic check finds them within a minute. If it does not, read in the log why it failed.",
    )


def older_batch_runs(move: Move, subtopology: str, since: str) -> Problem:
    """Return the reason of an expansion that waits for a batch that may have begun with fewer partitions."""
    written = sorted({topic for part in move.parts for topic in part.inputs})
    return Problem(
        code=ProblemCode.EXPANSION_WAITS,
        application=move.application,
        summary=f"The expansion of {move.application} waits since {since} for a batch of sub-topology "
        f"{subtopology}.",
        expected=f"batches with all partitions of {', '.join(written)}",
        found="a batch that may have begun before partitions were added",
        why=_OLDER_BATCH,
        fix="Wait until the batch ends. If that takes too long, reduce `--max-records`.",
    )


def batch_takes_long(move: Move, subtopology: str, seconds: float) -> Problem:
    """Return the reason of a cut that is tried again later."""
    return Problem(
        code=ProblemCode.EXPANSION_WAITS,
        application=move.application,
        summary=f"The expansion of {move.application} waits for a batch of sub-topology {subtopology}.",
        expected=f"batches, or steps of them, of less than {seconds:g} s",
        found="a longer one",
        why="Processors are added between two batches or steps. The application continues with "
        f"{move.before} processors, and tries it again.",
        fix="Wait. If it happens repeatedly, reduce `--max-records`, or use more cores.",
    )


def many_unprocessed(move: Move, most: int, since: str) -> Problem:
    """Return the reason of a cut that waits until the application has processed more of its input."""
    return Problem(
        code=ProblemCode.EXPANSION_WAITS,
        application=move.application,
        summary=f"The expansion of {move.application} waits since {since} until no more than {most:,} "
        "records are unprocessed.",
        expected=f"at most {most:,} unprocessed records in the inputs of sub-topologies with state",
        found="more",
        why="They are read in the pause, to check that each is in the partition of its key. The application "
        f"continues with {move.before} processors.",
        fix="Wait until the application has processed its backlog. If the backlog does not become smaller, "
        f"reduce the load. Or stop the application, declare `processors: {move.after}`, and run `headwater "
        "processors move --offline` with the document.",
    )


def expansion_incomplete(move: Move, reason: str) -> Problem:
    """Return the problem of an expansion that failed after its cut had begun."""
    return Problem(
        code=ProblemCode.MOVE_INCOMPLETE,
        application=move.application,
        summary=f"The expansion of {move.application} from {move.before} to {move.after} processors is not "
        "complete.",
        expected="brokers that answer; one client of the application",
        found=reason,
        why="Some entries of the state are with the old processors, others with the new ones. So the "
        "application stops.",
        fix="Correct the reason, and start the application again: it completes the expansion first.",
    )


def requested_status(
    status: ProcessorsStatus, processors: int, state: ClientState, application: Application
) -> ProcessorsStatus:
    """Return the status after a request for this number; the same if it is reached or being reached.

    Raises:
        ProblemsError: The client is not RUNNING or REBALANCING, or cannot have this number.
    """
    present, target = status.processors, status.target
    if present is None:
        raise ProblemsError([without_processors(application.id, application.at)])
    if processors == (target or present):
        return status
    if target is not None:
        is_checked = status.phase is ExpansionPhase.CHECK
        problem = not_begun if is_checked else other_expansion
        raise ProblemsError([problem(application.id, target, processors)])
    if state not in (ClientState.RUNNING, ClientState.REBALANCING):
        raise ProblemsError([not_running(application.id, state)])
    if processors < present:
        found = fewer_processors(application.id, present, processors, application.at)
        raise ProblemsError([found])
    return ProcessorsStatus(present, processors, ExpansionPhase.CHECK)
