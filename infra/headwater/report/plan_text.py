"""A plan as text: a summary line, then the changes of each application's settings, topics and ACLs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs
from rich.text import Text

from headwater.model.compiled import InternalTopic
from headwater.model.problems import errors
from headwater.model.topology import Sink
from headwater.planner import (
    AclAction,
    AclActionKind,
    ActionKind,
    ApplicationPlan,
    ConfigChange,
    Plan,
    TopicAction,
)
from headwater.planner.phrases import counted, setting_text
from headwater.report.markdown import printable

NOT_LISTED = "  … not listed here; `headwater plan` shows them all"
"""The last line of the message that counts the changes of applications without a message of their own."""
_MOST_LINES = 60
_MOST_APPLICATIONS = 100
_ENDING = (ActionKind.RETIRE, ActionKind.DELETE)
_COLORS = {
    ActionKind.CREATE: "green",
    ActionKind.RECREATE: "bold red",
    ActionKind.ADOPT: "cyan",
    ActionKind.EXPAND: "blue",
    ActionKind.RECONFIGURE: "yellow",
    ActionKind.RETIRE: "red",
    ActionKind.DELETE: "bold red",
    ActionKind.RELEASE: "magenta",
    ActionKind.KEEP: "dim",
}
_ACL_COLORS = {
    AclActionKind.GRANT: "green",
    AclActionKind.RESTORE: "yellow",
    AclActionKind.ADOPT: "cyan",
    AclActionKind.REVOKE: "red",
    AclActionKind.RELEASE: "magenta",
}
_ONE = "Plan for 1 application:"
_KIND_WIDTH = max(len(kind.value) for kind in ActionKind)


def plan_text(plan: Plan) -> str:
    """Return the plan as plain lines; unchanged topics are listed only if they have a drift or a note."""
    return plan_rich(plan).plain


def application_text(plan: Plan, application: ApplicationPlan) -> str:
    """Return the plan of one application; its first line names it if the plan has others, too."""
    text = plan_text(attrs.evolve(plan, applications=(application,)))
    if len(plan.applications) == 1:
        return text
    return text.replace(_ONE, f"Plan for {printable(application.application_id)}:", 1)


def plan_messages(plan: Plan, repairs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the messages of a Pulumi run: the plan of each application, and last how many are not listed.

    Applications with nothing to report have no message. Topics to be deleted are always listed completely.
    `repairs` is application id → lines about what changed outside Pulumi, and is repaired.
    """
    listed = 0
    others: list[ApplicationPlan] = []
    for application in plan.applications:
        if _is_quiet(application):
            continue
        is_ending = any(action.kind in _ENDING for action in application.actions)
        if listed >= _MOST_APPLICATIONS and not is_ending:
            others.append(application)
            continue
        listed += 1
        lines = application_text(plan, application).splitlines()
        lines += repairs.get(application.application_id, ())
        more = len(lines) - _MOST_LINES
        if more > 0 and not is_ending:
            lines[_MOST_LINES:] = [f"  … {more} more lines; `headwater plan` shows them all"]
        yield "\n".join(lines)
    if others:
        rest = plan_summary(attrs.evolve(plan, applications=tuple(others)))
        yield f"{rest}\n{NOT_LISTED}"


def plan_rich(plan: Plan) -> Text:
    """Return the lines of `plan_text` with colors for a terminal."""
    parts = [Text("\n").join(_application_lines(application)) for application in plan.applications]
    return Text("\n\n").join([Text(plan_summary(plan), "bold"), *parts])


def plan_summary(plan: Plan) -> str:
    """Return one line: the numbers of changes, and whether the plan is refused."""
    counts = Counter(action.kind for action in plan.actions)
    added = sum(action.added_partitions for action in plan.actions)
    kept = counts.pop(ActionKind.KEEP, 0)
    parts = [f"{counts[kind]:,} to {kind.value}" for kind in ActionKind if counts[kind]]
    if added:
        parts.append(f"{counted(added, 'partition')} to add")
    parts += _acl_counts(plan)
    if settings := sum(len(application.settings) for application in plan.applications):
        parts.append(f"{counted(settings, 'application setting')} to record")
    parts.append(f"{kept:,} unchanged")
    text = f"Plan for {counted(len(plan.applications), 'application')}: {', '.join(parts)}."
    if not plan.is_applicable:
        text += f" Refused: {counted(len(errors(plan.problems)), 'error')}, nothing is changed."
    return text


def _application_lines(application: ApplicationPlan) -> Iterator[Text]:
    notes = "; ".join(application.notes)
    yield Text.assemble(
        (printable(application.application_id), "bold"), f": {printable(notes)}" if notes else ""
    )
    for setting in application.settings:
        yield Text.assemble(
            "  ", (f"{'setting':{_KIND_WIDTH}}", "yellow"), f"  {printable(f'{setting.key}: {setting.text}')}"
        )
    shown = [action for action in application.actions if _is_listed(action)]
    width = max((len(action.name) for action in shown), default=0)
    for action in shown:
        yield from _action_lines(action, width)
    if unchanged := len(application.actions) - len(shown):
        yield Text(f"  {ActionKind.KEEP.value:{_KIND_WIDTH}}  {counted(unchanged, 'topic')}")
    changing = [action for action in application.acls if action.is_change]
    for acl_action in changing:
        yield _acl_line(acl_action)
    if kept := len(application.acls) - len(changing):
        yield Text(f"  {ActionKind.KEEP.value:{_KIND_WIDTH}}  {counted(kept, 'ACL')}")


def _is_quiet(application: ApplicationPlan) -> bool:
    return (
        not application.notes
        and not application.settings
        and not any(action.is_change or action.drift or action.note for action in application.actions)
        and not any(action.is_change for action in application.acls)
    )


def _acl_counts(plan: Plan) -> Iterator[str]:
    counts = Counter(action.kind for application in plan.applications for action in application.acls)
    for kind in AclActionKind:
        if counts[kind] and kind is not AclActionKind.KEEP:
            yield f"{counted(counts[kind], 'ACL')} to {kind.value}"


def _acl_line(action: AclAction) -> Text:
    kind = (f"{action.kind.value:{_KIND_WIDTH}}", _ACL_COLORS[action.kind])
    reason = f"  {printable(action.reason)}" if action.reason else ""
    return Text.assemble("  ", kind, f"  ACL {printable(action.acl.text)}{reason}")


def _is_listed(action: TopicAction) -> bool:
    return action.kind is not ActionKind.KEEP or bool(action.drift) or bool(action.note)


def _action_lines(action: TopicAction, width: int) -> Iterator[Text]:
    kind = (f"{action.kind.value:{_KIND_WIDTH}}", _COLORS[action.kind])
    facts = ", ".join(_facts_of(action))
    yield Text.assemble("  ", kind, f"  {printable(action.name):{width}}  {facts}".rstrip())
    indent = " " * (_KIND_WIDTH + 4)
    for change in action.changes:
        yield Text(f"{indent}{_change_text(change)}")
    for change in action.drift:
        yield Text(f"{indent}{_difference_text(change)}")
    if action.note:
        yield Text(f"{indent}{printable(action.note)}")


def _facts_of(action: TopicAction) -> Sequence[str]:
    facts = [_partitions_text(action)]
    if isinstance(action.topic, InternalTopic):
        facts.append(action.topic.kind.value)
    elif isinstance(action.topic, Sink):
        facts.append("sink")
    if action.added_partitions:
        facts.append(f"wave {action.wave + 1}")
    return facts


def _partitions_text(action: TopicAction) -> str:
    if action.live is not None and action.added_partitions:
        return f"{action.live.partitions} → {counted(action.partitions, 'partition')}"
    return counted(action.partitions, "partition")


def _change_text(change: ConfigChange) -> str:
    return printable(f"{change.key}: {setting_text(change.live)} → {setting_text(change.declared)}")


def _difference_text(change: ConfigChange) -> str:
    if change.declared is None:
        return printable(f"{change.key}={change.live} is set on the topic but not declared; it is kept")
    return printable(
        f"{change.key} is {setting_text(change.live)}, Kafka Streams would set {change.declared}; it is kept"
    )
