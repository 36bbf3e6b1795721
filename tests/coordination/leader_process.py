"""Run an agent in its own process: become leader, begin an expansion, print the term and read commands.

    python -m tests.coordination.leader_process BOOTSTRAP_SERVERS NAME SESSION_MS

Prints `leads TERM` when its first line is in the journal. For each line of standard input, it tries
to continue in that term and prints the result.
"""

import sys
import time

from headwater.agent.ports import NoLongerLeaderError
from headwater.agent.run import Coordination
from headwater.control.logs import configure_log
from headwater.kafka import Connection
from headwater.model.expansions import ExpansionEntry, Stage


def entry(client_id: str, stage: Stage, number: int = 1) -> ExpansionEntry:
    return ExpansionEntry(
        application="orders-app",
        number=number,
        stage=stage,
        wall_ms=1_790_000_000_123,
        client_id=client_id,
        before={"orders-app-counts-changelog": 3},
        after={"orders-app-counts-changelog": 6},
        sources_before={"orders": 3},
        sources_after={"orders": 6},
        done=("orders-app-counts-changelog",) if stage is not Stage.STARTED else (),
        reason="orders has 6 partitions",
    )


def main(bootstrap_servers: str, name: str, session_ms: int) -> None:
    connection = Connection(bootstrap_servers=(bootstrap_servers,))
    with Coordination.create(connection, name, "subject", session_ms) as agent:
        while (term := agent.leadership.poll()) is None:
            time.sleep(0.05)
        agent.journal.latest(term)
        agent.journal.append(entry("subject", Stage.STARTED), term)
        _print(f"leads {term}")
        for _ in sys.stdin:
            _print(f"confirmed {agent.leadership.confirm(term)}")
            try:
                agent.journal.append(entry("subject", Stage.EXPANDED), term)
                _print("appended")
            except NoLongerLeaderError:
                _print("replaced")


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    configure_log()
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
