"""The journal on a cluster: complete, ordered, and readable although others write to it."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import attrs
import pytest
import structlog
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from structlog.testing import capture_logs

from headwater.agent.state import AgentState, agent_status
from headwater.cli import agent_history
from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.kafka import Connection, KafkaClusterReader, expansion_journal
from headwater.kafka.bounded_records import ReadRecord
from headwater.kafka.expansion_journal import coordination_topic, read_agent_expansions, read_lines
from headwater.kafka.journal_lines import valid_lines
from headwater.model.expansions import Stage
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.model.untrusted import LARGEST_VALUE, MOST_UNREAD
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.coordination.conftest import Group
from tests.coordination.leader_process import entry
from tests.pulumi.cluster import Cluster

MakeGroup = Callable[[str], Group]


@pytest.mark.broker
def test_journal_is_read_completely_and_in_order(
    kafka: LocalBroker, group: MakeGroup, unique: Callable[[str], str]
) -> None:
    agents = group(kafka.bootstrap_servers)
    agent = agents.join("agent")
    _, term = agents.leader([agent])
    assert agent.journal.latest(term) == {}
    written = [
        entry("agent", stage, number) for number in range(1, 6) for stage in (Stage.STARTED, Stage.EXPANDED)
    ]
    for each in written:
        agent.journal.append(each, term)
    _foreign(agents, kafka.bootstrap_servers)
    topic = coordination_topic(agents.name)
    lines = list(valid_lines(read_lines(agents.connection, topic, "reader")))
    assert [line.entry() for line in lines] == written
    assert {line.term for line in lines} == {term}
    assert agent.journal.latest(term) == {"orders-app": written[-1]}
    absent = unique("headwater-agent")
    for_plan = read_agent_expansions(agents.connection, (absent, topic), 10)
    assert (for_plan.read, for_plan.unread) == ((topic,), (absent,))
    last = for_plan.found[-1]
    assert (last.topic, last.partitions, last.client_id) == ("orders-app-counts-changelog", 6, "agent")
    assert (last.host, last.at) == (lines[-1].host, "2026-09-21 14:13:20 UTC")


def test_only_the_first_records_of_others_are_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    class ManyRecords:
        def __init__(self, *_: object) -> None:
            pass

        def records(self, _: int | None) -> Iterator[ReadRecord]:
            return (ReadRecord(number, b"key", b"text") for number in range(MOST_UNREAD + 5))

    monkeypatch.setattr(expansion_journal, "BoundedTopic", ManyRecords)
    connection, skipped = Connection(bootstrap_servers=("kafka:9092",)), list[Problem]()
    topic = coordination_topic("default")
    assert not list(read_lines(connection, topic, "test", on_skipped=skipped.append))
    assert [problem.found for problem in skipped] == [f"offset {number}" for number in range(MOST_UNREAD)]


@pytest.mark.broker
def test_each_record_of_others_is_one_problem_and_hides_no_line(kafka: LocalBroker, group: MakeGroup) -> None:
    agents = group(kafka.bootstrap_servers)
    agent = agents.join("agent")
    _, term = agents.leader([agent])
    agent.journal.append(entry("agent", Stage.STARTED), term)
    topic = coordination_topic(agents.name)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "compression.type": "gzip"})
    producer.produce(topic, b"[" * 100_000, b"one", partition=0)
    producer.produce(topic, b'{"version": 1, "term": 9223372036854775808}', b"two", partition=0)
    refused: list[object] = []
    large = b"[" * (LARGEST_VALUE + 1)
    huge = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "compression.type": "gzip",
            "message.max.bytes": 2 * LARGEST_VALUE,
        }
    )
    huge.produce(topic, large, b"three", partition=0, on_delivery=lambda error, _: refused.append(error))
    assert producer.flush(90) == huge.flush(90) == 0
    assert [error is None for error in refused] == [False]
    agent.journal.append(entry("agent", Stage.EXPANDED), term)
    with capture_logs() as log:
        assert agent.journal.latest(term) == {"orders-app": entry("agent", Stage.EXPANDED)}
    problems = agent.journal.problems
    assert [problem.code for problem in problems] == [ProblemCode.UNREADABLE_RECORD] * 2
    offsets = [int(str(problem.found).removeprefix("offset ")) for problem in problems]
    assert offsets == [offsets[0], offsets[0] + 1]
    assert all(f"{topic}, partition 0, offset" in problem.summary for problem in problems)
    assert [line["event"] for line in log] == ["journal record skipped"] * 2
    assert len(agent_status(AgentState(), None, "", problems)["problems"]) == 2
    shown = CliRunner().invoke(
        main,
        ["agent", "history", "--bootstrap-server", kafka.bootstrap_servers, "--group", agents.name],
    )
    assert shown.exit_code == ExitCode.DONE
    assert shown.stderr.count("UnreadableRecord") == 2


@pytest.mark.broker
def test_expansion_of_ten_thousand_topics_fits_in_journal(kafka: LocalBroker, group: MakeGroup) -> None:
    agents = group(kafka.bootstrap_servers)
    agent = agents.join("agent")
    _, term = agents.leader([agent])
    topics = {
        f"orders-app-KSTREAM-AGGREGATE-STATE-STORE-{number:010d}-changelog": 3 for number in range(10_000)
    }
    large = attrs.evolve(entry("agent", Stage.STARTED), before=topics, after=topics, done=tuple(topics))
    agent.journal.append(large, term)
    assert agent.journal.latest(term)["orders-app"] == large


@pytest.mark.broker
def test_hanging_broker_is_reported_in_time(own_broker: Callable[[], Broker], group: MakeGroup) -> None:
    with own_broker() as broker, ThreadPoolExecutor(1) as threads:
        agents = group(broker.bootstrap_servers)
        agent = agents.join("agent")
        _, term = agents.leader([agent])
        agent.journal.append(entry("agent", Stage.STARTED), term)
        broker.pause()
        begin = time.monotonic()
        appending = threads.submit(agent.journal.append, entry("agent", Stage.EXPANDED), term)
        with pytest.raises(ProblemsError, match="did not answer the request to write to the journal"):
            appending.result(150)
        assert time.monotonic() - begin < 120
        broker.resume()
        _, later = agents.leader([agent])
        assert agent.journal.latest(later)["orders-app"].stage in (Stage.STARTED, Stage.EXPANDED)


def _foreign(agents: Group, bootstrap_servers: str) -> None:
    """Write a record that is not a journal line, as a user with a console producer could."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    producer.produce(coordination_topic(agents.name), key="x", value="hello")
    producer.flush(90)


@pytest.mark.broker
def test_a_group_without_agents_is_named(kafka: LocalBroker, unique: Callable[[str], str]) -> None:
    group = unique("no-agents")
    where = ["--bootstrap-server", kafka.bootstrap_servers, "--group", group]
    done = CliRunner().invoke(main, ["agent", "history", *where])
    assert done.exit_code == ExitCode.PROBLEMS
    assert "error[JournalNotFound]" in done.stderr
    assert f"headwater-agent-{group}" in done.stderr


@pytest.mark.broker
@pytest.mark.parametrize("is_created_by_hand", [False, True])
def test_a_deleted_journal_is_there_again_after_its_fix(
    kafka: LocalBroker, group: MakeGroup, *, is_created_by_hand: bool
) -> None:
    """The fix restarts an agent, which creates the topic, or a user creates it: then an agent leads again."""
    agents, cluster = group(kafka.bootstrap_servers), Cluster(kafka.bootstrap_servers)
    topic = coordination_topic(agents.name)
    running = agents.join("running")
    agents.leader([running])
    cluster.delete(topic)
    where = ["--bootstrap-server", kafka.bootstrap_servers, "--group", agents.name]

    def history() -> Result:
        return CliRunner().invoke(main, ["agent", "history", *where])

    assert until(lambda: "error[JournalNotFound]" in history().stderr, 60)
    assert "restart an agent, which creates it" in " ".join(history().stderr.split())
    members = [running]
    if is_created_by_hand:
        assert f"create {topic} with one partition and cleanup.policy=compact" in " ".join(
            history().stderr.split()
        )
        cluster.create(topic, 1, {"cleanup.policy": "compact"})
    else:
        members.append(agents.join("restarted"))
    leader, term = agents.leader(members, 120)
    leader.journal.append(entry("running", Stage.STARTED), term)
    assert until(lambda: "orders-app#1" in history().stdout, 60)


def test_history_command_shows_agent_topics_time_and_reason(kafka: LocalBroker, group: MakeGroup) -> None:
    agents = group(kafka.bootstrap_servers)
    agent = agents.join("agent-1")
    _, term = agents.leader([agent])

    def history(*options: str) -> Result:
        where = ["--bootstrap-server", kafka.bootstrap_servers, "--group", agents.name, *options]
        return CliRunner().invoke(main, ["agent", "history", *where])

    assert history().stdout == "No expansions yet.\n"
    for stage, wall_ms in ((Stage.STARTED, 0), (Stage.EXPANDED, 1_500), (Stage.NOTIFIED, 11_600)):
        line = attrs.evolve(entry("agent-1", stage), wall_ms=1_795_276_800_000 + wall_ms)
        agent.journal.append(line, term)
    host = socket.gethostname()
    assert history().stdout == (
        "orders-app#1: expanded in 1.5 s\n"
        "  why     orders has 6 partitions\n"
        "  source  orders 3 -> 6\n"
        "  topics  orders-app-counts-changelog 3 -> 6\n"
        f"  when    2026-11-21 16:00:00 UTC started by agent-1 on {host}\n"
        f"          2026-11-21 16:00:01 UTC expanded by agent-1 on {host}\n"
        f"          2026-11-21 16:00:11 UTC notified by agent-1 on {host}\n"
    )
    assert json.loads(history("--format", "json").stdout)["expansions"][0]["number"] == 1
    assert history("--application", "payments-app").stdout == "No expansions yet.\n"
    lost = history("--group", "unknown-group")
    assert lost.exit_code == 1


def test_lines_of_librdkafka_are_not_in_the_output_of_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose connection is refused logs it; programs read the output as JSON."""
    monkeypatch.setattr(agent_history, "read_lines", partial(read_lines, timeout_seconds=1.0))
    monkeypatch.setattr(KafkaClusterReader, "partition_counts", lambda *_: {})  # the brokers stop afterwards
    structlog.reset_defaults()
    options = ["--bootstrap-server", "127.0.0.1:1", "--format", "json"]
    result = CliRunner().invoke(main, ["agent", "history", *options])
    assert result.exit_code == ExitCode.PROBLEMS
    assert "did not answer the request to read" in result.stderr
    assert not result.stdout


def test_a_history_of_brokers_that_cannot_be_reached_says_so() -> None:
    result = CliRunner().invoke(main, ["agent", "history", "--bootstrap-server", "127.0.0.1:1"])
    assert result.exit_code == ExitCode.PROBLEMS
    assert "error[ClusterUnreachable] No Kafka broker can be reached." in result.stderr
