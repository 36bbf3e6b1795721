"""The problems with which a move of the state is refused, waits or fails, each with what to do."""

from collections.abc import Sequence

from headwater.model.problems import Location, Problem, ProblemCode
from headwater_spark.driver.processor_move.moves import Move
from headwater_spark.engine.scaling.moved_stores import MovedStore, NotMovable

_PROCESS = (
    "Start the application with `processors: {before}`, wait until it has processed its input, stop it, "
    "declare `processors: {after}`"
)
_KEEP = "Keep the number of processors. Or process the input again with more of them."
_AGAIN = " and run `headwater processors move --offline` again."
_LIVE = (
    "Wait until the application has processed its input, and until all producers know the added partitions "
    "(`metadata.max.age.ms`). Then request the expansion again."
)


def _unless_expanded(move: Move, fix: str) -> str:
    """Return a fix for a move to fewer processors: the state may have as few of them already.

    Then keys are in other partitions of the changelog topics than their partition counts say.
    """
    if move.after >= move.before:
        return fix
    return (
        "If another client has added partitions to the changelog topics, such as an agent without "
        f"`processors` in its document, keep `processors: {move.after}`: `headwater plan` says how to "
        f"restore these topics. Otherwise: {fix}"
    )


def _process_first(move: Move) -> str:
    """Return what to do with unprocessed records before the state moves."""
    if move.is_live:
        return _LIVE
    return _unless_expanded(move, _PROCESS.format(before=move.before, after=move.after) + "," + _AGAIN)


def fewer_processors(application: str, before: int, after: int, at: Location | None) -> Problem:
    """Return the problem of a running application that is to have fewer processors."""
    return Problem(
        code=ProblemCode.PROCESSOR_COUNT,
        application=application,
        summary=f"{application} cannot have {after} instead of {before} processors while it runs.",
        expected=f"more than {before} processors",
        found=f"a request for {after} processors",
        why="A running application only adds processors.",
        fix=f"Stop the application, declare `processors: {after}`, and run `headwater processors move "
        "--offline`. Or request more processors.",
        location=at,
    )


def fewer_than_initial(move: Move, initial: int, at: Location | None) -> Problem:
    """Return the problem of fewer processors than the initial number, and its halves, allow."""
    least = initial
    while least % 2 == 0:
        least //= 2
    return Problem(
        code=ProblemCode.PROCESSOR_COUNT,
        application=move.application,
        summary=f"{move.application} cannot have {move.after} instead of {move.before} processors.",
        expected=f"at least {least} processors",
        found=f"`processors: {move.after}`",
        why="Processors are removed in the reverse order of linear hashing. The partition counts of the "
        f"inputs are {least}, or {least} doubled, so it ends there. Nothing was changed.",
        fix=_unless_expanded(move, f"Declare at least {least} processors."),
        location=at,
    )


def moved_keys(move: Move, initial: int, counts: Sequence[str], at: Location | None) -> Problem:
    """Return the problem of inputs whose partition counts send keys to other processors."""
    return Problem(
        code=ProblemCode.STATE_NOT_MOVABLE,
        application=move.application,
        summary=f"The inputs of {move.application} have a partition count that moves keys away from their "
        "state.",
        expected=f"{initial}, doubled one or more times: {initial * 2}, {initial * 4}, … partitions",
        found=", ".join(counts),
        why="Kafka's partitioner chooses the hash of the key modulo the partition count. Only at doubled "
        "counts, each key stays with its processor. Nothing was changed.",
        fix=_unless_expanded(
            move,
            "Expand the source topics to the next doubled count. If the producers partition by linear "
            "hashing, set `static.partitioner.class: linear-hash`.",
        ),
        location=at,
    )


def other_initial(move: Move, initial: int, linear: int, at: Location | None) -> Problem:
    """Return the problem of `linear-hash` with another initial number than the state has."""
    return Problem(
        code=ProblemCode.STATE_NOT_MOVABLE,
        application=move.application,
        summary=f"The state of {move.application} is partitioned with the initial number {initial}.",
        expected=f"`static.partitioner.initial.partitions: {initial}`",
        found=f"`static.partitioner.initial.partitions: {linear}`",
        why="With another initial number, keys belong to other partitions and processors. Nothing was "
        "changed.",
        fix="Set the number as before. It stays the same when processors are added.",
        location=at,
    )


def inputs_too_narrow(application: str, after: int, narrow: Sequence[str], at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.PROCESSOR_COUNT,
        application=application,
        summary=f"{application} has fewer partitions than {after} processors.",
        expected=f"at least {after} partitions",
        found=", ".join(narrow),
        why="A processor without partitions reads nothing (KIP-287).",
        fix="Expand the source topics first. Then start the application with the present number of "
        "processors, and run `pulumi up`, which expands repartition topics.",
        location=at,
    )


def other_partitioner(application: str, partitioner: str, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.STATE_NOT_MOVABLE,
        application=application,
        summary=f"The state of {application} cannot move: its keys are partitioned by {partitioner}.",
        expected="Kafka's default partitioner, or `linear-hash`",
        found=f"`static.partitioner.class: {partitioner}`",
        why="Only the bytes of a key are in the state. With this partitioner, they do not say to which "
        "processor the key belongs.",
        fix="Keep the number of processors.",
        location=at,
    )


def store_not_movable(application: str, store: str, reason: NotMovable, at: Location | None) -> Problem:
    """Return the problem of a store whose entries have no known keys."""
    keep = "the number of processors. Or replace the processor by operators, and process the input again."
    return Problem(
        code=ProblemCode.STATE_NOT_MOVABLE,
        application=application,
        node=store,
        summary=f"The state of {application} cannot move: the entries of store {store} have no known keys.",
        expected="a store of an operator, or one with `keyed: record`, with a changelog topic of its own",
        found=reason.value,
        why="Each entry has to move to the processor that reads the records of its key.",
        fix="If each key in the store is the key of a record in the input topics, in the same bytes, set "
        f"`keyed: record` on the store, and start the application again if it runs. Otherwise keep {keep}"
        if reason is NotMovable.ANY_KEYS
        else f"Keep {keep}",
        location=at,
    )


def different_changelogs(application: str, counts: Sequence[str]) -> Problem:
    return Problem(
        code=ProblemCode.STATE_NOT_MOVABLE,
        application=application,
        summary=f"The changelog topics of {application} do not have the same number of partitions.",
        expected="at least one partition for each processor in every changelog topic",
        found=", ".join(counts),
        why="Each partition of a changelog topic is the state of one processor.",
        fix="Run `pulumi up` with the present number of processors: it creates missing changelog topics, or "
        "reports what is wrong.",
    )


def client_runs(application: str) -> Problem:
    return Problem(
        code=ProblemCode.GROUP_ACTIVE,
        application=application,
        summary=f"{application} is running.",
        expected="no running client",
        found="a client that commits offsets, or a member of the consumer group",
        why="A client that processes records would change the state while it moves.",
        fix="Stop all clients of the application," + _AGAIN,
    )


def other_owner(move: Move, topic: str, partition: int, owner: int) -> Problem:
    return Problem(
        code=ProblemCode.STATE_NOT_MOVABLE,
        application=move.application,
        topic=topic,
        summary=f"Partition {partition} of {topic} was processed by processor {owner}, which "
        f"{move.before} processors do not assign it to.",
        expected=f"the owners of partitions with {move.before} processors",
        found="another assignment in the offset metadata",
        why="The application ran with another number of processors, so the state of the partition's keys is "
        "in several partitions of the changelog topics. Nothing was changed.",
        fix=_unless_expanded(move, _KEEP),
    )


def forgotten_offset(move: Move, topic: str, partition: int) -> Problem:
    return Problem(
        code=ProblemCode.UNPROCESSED_RECORDS,
        application=move.application,
        topic=topic,
        summary=f"No offset is committed for partition {partition} of {topic}, but it has records.",
        expected="a committed offset",
        found="none",
        why="It is not known which of the records are in the state. Brokers forget the offsets of partitions "
        "that are idle for `offsets.retention.minutes`.",
        fix=_process_first(move),
    )


def misplaced_entry(move: Move, store: MovedStore, partition: int, owner: int) -> Problem:
    """Return the problem of an entry outside the partition of its key's processor."""
    if store.is_keyed_by_user:
        return _not_keyed_by_record(move, store, partition, owner)
    return Problem(
        code=ProblemCode.MISPLACED_ENTRIES,
        application=move.application,
        topic=store.changelog,
        node=store.name,
        summary=f"Partition {partition} of {store.changelog} has an entry whose key belongs to processor "
        f"{owner}.",
        expected="keys that Kafka's default partitioner sends to the partition's processor",
        found="another key",
        why="The input is not partitioned as declared, or a key is written with other bytes than the input "
        "has. So it is not known which entries have to move. Nothing was changed.",
        fix=_unless_expanded(move, _KEEP),
    )


def _not_keyed_by_record(move: Move, store: MovedStore, partition: int, owner: int) -> Problem:
    return Problem(
        code=ProblemCode.MISPLACED_ENTRIES,
        application=move.application,
        topic=store.changelog,
        node=store.name,
        summary=f"Store {store.name} is not keyed by record: processor {partition} has an entry whose key "
        f"belongs to processor {owner}.",
        expected="in each entry the key of a record in the input topics, in the same bytes (`keyed: record`)",
        found="another key, or the key with another serde",
        why="Entries move to the processor that reads the records with the same key. There, the user's "
        "processor would not find this entry. Nothing was changed.",
        fix=_unless_expanded(
            move,
            f"Remove `keyed: record` of store {store.name}, and keep the number of processors. Or let the "
            "processor write each entry under the key of its record, give the store the key serde of the "
            "input, and process the input again.",
        ),
        location=store.at,
    )


def unprocessed_record(move: Move, topic: str, partition: int, offset: int) -> Problem:
    return Problem(
        code=ProblemCode.UNPROCESSED_RECORDS,
        application=move.application,
        topic=topic,
        summary=f"Partition {partition} of {topic} has a record at offset {offset} that was written with "
        "another partition count.",
        expected="records of keys whose partition this is",
        found="a record that was written before partitions were added, or by a producer that did not know "
        "them",
        why="The state of its key would be with another processor. Nothing was changed.",
        fix=_process_first(move),
    )


def names_old_processor(move: Move, topic: str, partition: int) -> Problem:
    return Problem(
        code=ProblemCode.UNPROCESSED_RECORDS,
        application=move.application,
        topic=topic,
        summary=f"Partition {partition} of {topic} has subscriptions that name a processor.",
        expected="subscriptions of a foreign-key join that name none, or are processed",
        found="an unprocessed subscription that was written before `processors` was declared",
        why="The response would go to a processor that does not have the row any more. Nothing was changed.",
        fix=_process_first(move),
    )


def other_target(application: str, before: int, after: int, declared: int, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.MOVE_INCOMPLETE,
        application=application,
        summary=f"A move of {application} from {before} to {after} processors is not complete.",
        expected=f"`processors: {after}`",
        found=f"`processors: {declared}`",
        why="A move that has begun cannot be canceled: some of its entries have moved.",
        fix=f"Declare `processors: {after}`," + _AGAIN,
        location=at,
    )


def without_state(application: str, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.PROCESSOR_COUNT,
        application=application,
        summary=f"{application} has no state.",
        expected="a store",
        found="none",
        why="A sub-topology without state has one task for each partition.",
        fix="Remove `processors`, and expand the source topics.",
        location=at,
    )


def kafka_failed(application: str, reason: str) -> Problem:
    return Problem(
        code=ProblemCode.REQUEST_NOT_ANSWERED,
        application=application,
        summary=f"Kafka refused or did not answer while the state of {application} moved.",
        expected="brokers that answer; permission to read and write the changelog topics and to add "
        "partitions to them, and to use the transactional ids of the application",
        found=reason,
        why="A move can be run again at any time; until it is complete, the application does not start. A "
        "move that runs somewhere else at the same time also ends this one.",
        fix="Correct the reason. If the application is stopped, run `headwater processors move --offline` "
        "again. If it runs, request the expansion again, unless it continues by itself.",
    )


def another_client_expands(application: str) -> Problem:
    return Problem(
        code=ProblemCode.EXPANSION_WAITS,
        application=application,
        summary=f"Another client of {application} adds processors, too.",
        expected="one client",
        found="another attempt of the expansion",
        why="Each attempt ends the attempt of the other client, and copies again. Each client waits longer "
        "before each attempt.",
        fix="Stop one of the clients, and start it again when the expansion is complete.",
    )


def expanded_elsewhere(application: str) -> Problem:
    """Return the problem of a client that runs while another one has added processors."""
    return Problem(
        code=ProblemCode.PROCESSOR_COUNT,
        application=application,
        summary=f"Another client of {application} has added processors.",
        expected="one client",
        found="input partitions that belong to added processors",
        why="This client does not have the present number. It has committed nothing since then.",
        fix="Start it again: it uses the present number.",
    )
