"""One attempt to expand topics: validated first, then wave after wave, downstream topics first."""

from collections.abc import Callable, Sequence

from spark_jobs.agent.state import Outcome, Shortfall, TopicResult

Ask = Callable[[Sequence[Shortfall]], tuple[TopicResult, ...]]


def expand(
    waves: Sequence[Sequence[Shortfall]], *, validate: Ask, create: Ask, is_leader: Callable[[], bool]
) -> tuple[TopicResult, ...]:
    """Return a result for each topic.

    One bad topic holds back what lies upstream of it in its application, and nothing else: a topic must not
    grow before those that its readers write. `is_leader` is asked right before each change. `validate` need
    not answer for what is known to be valid.
    """
    wanted = [item for wave in waves for item in wave]
    results = {result.topic: result for result in validate(wanted) if result.outcome is not Outcome.EXPANDED}
    held: set[str] = set()
    for wave in waves:
        open_ = [item for item in wave if item.topic not in results]
        results |= {item.topic: _held(item) for item in open_ if item.application in held}
        asked = [item for item in open_ if item.application not in held]
        if asked:
            answers = create(asked) if is_leader() else [_unconfirmed(item) for item in asked]
            results |= {result.topic: result for result in answers}
        held |= {item.application for item in wave if not results[item.topic].is_success}
    return tuple(results[item.topic] for item in wanted)


def _held(item: Shortfall) -> TopicResult:
    return TopicResult(item.topic, item.wanted, Outcome.HELD_BACK)


def _unconfirmed(item: Shortfall) -> TopicResult:
    text = "the cluster did not confirm that this agent leads"
    return TopicResult(item.topic, item.wanted, Outcome.FAILED, "LEADERSHIP_NOT_CONFIRMED", text)
