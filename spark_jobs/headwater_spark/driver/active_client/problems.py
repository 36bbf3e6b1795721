"""The problem of a client that is no longer the active one."""

from headwater.model.problems import Problem, ProblemCode


def client_replaced(application: str, name: str, by: str) -> Problem:
    """Return the problem that another client has become active; `name` and `by` are names of clients."""
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary=f"Another client of {application} is active.",
        expected=f"{name} as the only active client (at_least_once)",
        found=by,
        why="This client was silent for longer than 20 s, so the other one continues from the committed "
        "offsets. Two active clients would count records twice.",
        fix="Start this client again if it shall be the standby client: it waits until the other one ends.",
    )
