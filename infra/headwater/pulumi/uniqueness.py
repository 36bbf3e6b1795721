"""The last check before the first registration: each topic and ACL is registered once."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from headwater.model.problems import Problem, ProblemCode
from headwater.planner.phrases import listed
from headwater.pulumi.registration import Registration, TopicResource
from headwater.pulumi.stack_state import urn_name


def registered_twice(registrations: Mapping[str, Registration]) -> Iterator[Problem]:
    """Yield a problem for each resource that several registrations name.

    The engine refuses the second registration of a URN when it has made earlier changes already. The planner
    yields problems for all plans that contain a topic twice, so this check finds only its mistakes.

    Args:
        registrations: application id → all resources that the run registers for it.
    """
    owners: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for application, registration in registrations.items():
        for resource in registration.resources:
            kind = "Topic" if isinstance(resource, TopicResource) else "ACL"
            owners[kind, resource.name].append(application)
            alias = getattr(resource, "alias", None)
            if alias is not None:
                owners[kind, urn_name(alias)].append(application)
    for (kind, name), applications in sorted(owners.items()):
        if len(applications) > 1:
            yield Problem(
                code=ProblemCode.CONFLICTING_PARTITIONS,
                summary=f"{kind} {name} would be registered {len(applications)} times with Pulumi.",
                topic=name if kind == "Topic" else None,
                expected="one application that registers it",
                found=listed(applications),
                why="Pulumi refuses the second registration after it has made other changes.",
                fix="Declare it in the document of one application only. If no document declares it twice, "
                "report this as a defect of Headwater.",
            )
