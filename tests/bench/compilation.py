"""CPU time of compiling 5,000 internal topics."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from headwater.compiler import compile_documents
from headwater.spec import load_documents, load_text
from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from tests.bench.figures import Figure
from tests.bench.topologies import SOURCE, document, write_documents

TOPICS = 5_000


def run(folder: Path, _: PulumiToolchain, __: Broker) -> Iterator[Figure]:
    write_documents(folder / "compile", TOPICS)
    many = load_documents([folder / "compile"]).documents
    one = load_text(json.dumps(document("bench", TOPICS)), "bench.json").documents
    for title, documents in ((f"{len(many)} applications", many), ("one application", one)):
        start = time.process_time()
        compiled = compile_documents(documents, {SOURCE: 8})
        seconds = time.process_time() - start
        topics = sum(len(application.internal_topics) for application in compiled)
        yield Figure(what=f"compile {topics:,} topics of {title}: CPU time", unit="s", ours=seconds, goal=1.0)
