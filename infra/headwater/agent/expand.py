"""One attempt to expand topics: validate, then expand wave after wave, downstream topics first."""

from collections.abc import Callable, Sequence

from headwater.agent.state import Outcome, Shortfall, TopicResult

Request = Callable[[Sequence[Shortfall]], tuple[TopicResult, ...]]


def expand_waves(
    waves: Sequence[Sequence[Shortfall]], *, validate: Request, create: Request, is_leader: Callable[[], bool]
) -> tuple[TopicResult, ...]:
    """Return a result for each topic.

    A topic that fails holds back the topics upstream of it in its application, and no others: a topic must
    not be expanded before the topics that its readers write. `is_leader` is called right before each change.
    `validate` may omit topics that are known to be valid.
    """
    shortfalls = [item for wave in waves for item in wave]
    results = {
        result.topic: result for result in validate(shortfalls) if result.outcome is not Outcome.EXPANDED
    }
    held: set[str] = set()
    for wave in waves:
        open_ = [item for item in wave if item.topic not in results]
        results |= {
            item.topic: TopicResult(item.topic, item.required, Outcome.HELD_BACK)
            for item in open_
            if item.application in held
        }
        requested = [item for item in open_ if item.application not in held]
        if requested:
            answers = create(requested) if is_leader() else [_not_confirmed(item) for item in requested]
            results |= {result.topic: result for result in answers}
        held |= {item.application for item in wave if not results[item.topic].is_success}
    return tuple(results[item.topic] for item in shortfalls)


def _not_confirmed(item: Shortfall) -> TopicResult:
    text = "the cluster did not confirm that this agent leads"
    return TopicResult(item.topic, item.required, Outcome.FAILED, "LEADERSHIP_NOT_CONFIRMED", text)
