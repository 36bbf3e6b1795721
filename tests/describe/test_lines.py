"""Copied texts: lines that were wrapped, and text around a description."""

import json
import textwrap

import pytest

from headwater.describe import write_description
from headwater.describe.lines import repair_text
from tests.describe.texts import PLAIN, SMALL, as_log, read, recorded_texts

SURROUNDINGS = {
    "as it is": SMALL,
    "Windows line ends": SMALL.replace("\n", "\r\n"),
    "no line end at the end": SMALL.rstrip(),
    "log line before": f"12:00 INFO App - starting\n12:00 INFO App - {SMALL}12:01 INFO App - started\n",
    "log prefix on each line": as_log(SMALL),
    "compose prefix on each line": "".join(f"app-1  | {line}\n" for line in SMALL.splitlines()),
    "other lines between": SMALL.replace("    Sink:", "12:00 WARN Source: slow, --> 3 retries\n    Sink:"),
    "tabs": SMALL.replace("      ", "\t\t").replace("    ", "\t"),
    "no indentation": "\n".join(line.strip() for line in SMALL.splitlines()),
    "one JSON string": json.dumps({"level": "INFO", "message": SMALL}),
    "a JSON string a line": "\n".join(json.dumps({"log": f"{line}{chr(10)}"}) for line in SMALL.splitlines()),
    "a page's source": SMALL.replace("-->", "--&gt;").replace("<--", "&lt;--"),
    "quoted": "".join(f"> {line}\n" for line in SMALL.splitlines()),
    "control sequences of a terminal": SMALL.replace("\n", "\x1b[?25h\x1b[K\n"),
    "colors": SMALL.replace("Source:", "\x1b[32mSource:").replace("\n", "\x1b[0m\n"),
    "printed twice": f"{SMALL}\nrestarted\n{SMALL}",
    "no first line": SMALL.removeprefix("Topologies:\n"),
    "blank lines": SMALL.replace("\n", "\n\n"),
    "two blanks": SMALL.replace("Source: ", "Source:  ").replace("-->", "-->  ").replace(" (", "  ("),
    "kubectl with timestamps": "".join(
        f"2026-11-21T10:00:00.123456789Z {line}\n" for line in SMALL.splitlines()
    ),
    "a list of JSON strings": json.dumps([SMALL, SMALL]),
    "JSON in JSON": json.dumps({"log": json.dumps({"message": SMALL})}),
    "a JSON object a line, without line ends": "\n".join(
        json.dumps({"ts": 1, "message": line, "level": "INFO"}) for line in SMALL.splitlines()
    ),
    "JSON objects behind timestamps": "".join(
        f"2026-11-21T10:00:00Z {json.dumps({'log': line})}\n" for line in SMALL.splitlines()
    ),
    "an object with other keys": json.dumps({"describe": SMALL, "sources": ["orders"]}),
    "a literal of a program": " +\n".join(json.dumps(f"{line}\n") for line in SMALL.splitlines()),
    "a page with tags": "<html><body><pre><code>"
    + SMALL.rstrip().replace("-->", "--&gt;").replace("<--", "&lt;--")
    + "</code></pre></body></html>",
    "a page with a tag for each line": "".join(
        f'<span class="line">{line}</span><br/>' for line in SMALL.replace("-->", "--&gt;").splitlines()
    ).replace("<--", "&lt;--"),
    "entities twice": SMALL.replace("-->", "--&amp;gt;").replace("<--", "&amp;lt;--"),
    "the logger at the end of each line": "".join(
        f"[2026-11-21 10:00:00,123] INFO {line} (com.example.OrdersApp)\n" for line in SMALL.splitlines()
    ),
    "the logger at the end of the text": f"[2026-11-21 10:00:00,123] INFO {SMALL} (com.example.OrdersApp)\n",
    "columns of an export": "timestamp,message\n"
    + "".join(f'"2026-11-21T10:00:00Z","{line}"\n' for line in SMALL.splitlines()),
    "a fence of Markdown": f"```\n{SMALL}```\n",
    "escaped for Markdown": SMALL.replace("[", "\\[").replace("]", "\\]").replace("-->", "--\\>"),
    "blanks instead of line ends": " ".join(SMALL.split()),
    "a log line with blanks instead of line ends": "12:00 INFO App - starting\n"
    f"12:00 INFO App - {' '.join(SMALL.split())}\n12:01 INFO App - started\n",
    "no-break spaces": SMALL.replace(" ", "\u00a0"),
    "line ends that were converted twice": SMALL.replace("\n", "\r\r\n"),
    "line ends of a terminal": SMALL.replace("\n", "\r"),
    "a byte order mark": f"\ufeff{SMALL}",
    "dashes of a word processor": SMALL.replace("-->", "\u2013>").replace("<--", "<\u2014"),
    "arrows of a word processor": SMALL.replace("-->", "\u2192").replace("<--", "\u2190"),
    "colors without their escape character": SMALL.replace("Source:", "[32mSource:").replace("\n", "[0m\n"),
    "colors as JSON": SMALL.replace("Sink:", "\\u001b[1;32mSink:").replace("\n", "\\u001b[0m\n"),
    "wrapped at 80": "\n".join(
        line[at : at + 80] for line in SMALL.splitlines() for at in range(0, len(line) or 1, 80)
    ),
    "wrapped at blanks": "\n".join(
        part
        for line in SMALL.splitlines()
        for part in (textwrap.wrap(line, 72, break_long_words=False, break_on_hyphens=False) or [""])
    ),
}
_LONG_LISTS = """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [customer-orders, customer-payments, customer-refunds])
      --> KSTREAM-AGGREGATE-0000000001, KSTREAM-AGGREGATE-0000000002, KSTREAM-AGGREGATE-0000000003
    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [orders-by-customer-and-region, payments-by-customer])
      --> none
      <-- KSTREAM-SOURCE-0000000000
    Processor: KSTREAM-AGGREGATE-0000000002 (stores: [])
      --> none
      <-- KSTREAM-SOURCE-0000000000
    Processor: KSTREAM-AGGREGATE-0000000003 (stores: [])
      --> none
      <-- KSTREAM-SOURCE-0000000000

"""


@pytest.mark.parametrize("width", [60, 64, 72, 80, 100])
def test_wrapped_lines_are_joined(width: int) -> None:
    lines = _LONG_LISTS.splitlines()
    cut = "\n".join(line[at : at + width] for line in lines for at in range(0, len(line) or 1, width))
    assert write_description(read(cut)) == _LONG_LISTS
    folded = "\n".join(
        part
        for line in lines
        for part in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
    )
    assert write_description(read(folded)) == _LONG_LISTS


@pytest.mark.parametrize("text", SURROUNDINGS.values(), ids=SURROUNDINGS.keys())
def test_text_around_a_description_is_ignored(text: str) -> None:
    topology = read(text)
    assert topology == PLAIN
    assert write_description(topology) == SMALL


@pytest.mark.parametrize("text", recorded_texts().values(), ids=recorded_texts().keys())
def test_an_undamaged_text_is_not_changed(text: str) -> None:
    assert repair_text(text) == text
