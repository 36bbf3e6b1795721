"""Refuse runs after which Pulumi would delete topics of resources that Headwater has not registered.

Such resources are in the state after `pulumi import`, or because an earlier program of the stack declared
them. Pulumi deletes what the state contains and the program does not register. The hook that refuses
deletions is not in these resources, and most of them are not protected.
"""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode
from headwater.planner import ActionKind, Plan
from headwater.pulumi.stack_state import StackState

_ENDED = (ActionKind.DELETE, ActionKind.RELEASE)
_OF_ONLY_PROGRAM = (
    "Headwater adopts internal topics without `pulumi import`. If the program of the stack declares the "
    "topic, keep the resource, and call `deploy` in the program instead of `run_program`."
)


def other_resources(state: StackState, plan: Plan, *, is_only_program: bool) -> Iterator[Problem]:
    """Yield a problem for each resource of a topic with which Pulumi would delete the topic.

    Args:
        state: The state of the stack.
        plan: The plan of this run.
        is_only_program: Whether no other code registers resources in this run. Otherwise the program may
            declare topics itself, so only resources of topics that the plan manages are problems.
    """
    managed = {action.name for action in plan.actions if action.kind not in _ENDED}
    for urn, topic in sorted(state.other_topics.items()):
        if is_only_program or topic in managed:
            yield Problem(
                code=ProblemCode.DELETION_REFUSED,
                summary=f"The state of the stack has a resource of topic {topic} that Headwater has not "
                "registered.",
                topic=topic,
                expected="only resources that Headwater has registered"
                if is_only_program
                else "one resource of the topic, which Headwater has registered",
                found=urn,
                why="Pulumi deletes a topic with its records if the program no longer declares its resource."
                + ("" if is_only_program else " If it does, two resources change the same topic."),
                fix=f"Remove the resource from the state: `pulumi state delete --force '{urn}'`. The topic "
                "stays. If Pulumi lists resources that depend on it, remove them from the state first. "
                "Do not run `pulumi state unprotect`: the next `pulumi up` would delete the topic. "
                + (_OF_ONLY_PROGRAM if is_only_program else "Remove it from your program, too."),
            )
