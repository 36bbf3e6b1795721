from tests.runtime.topology_runner import TopologyRunner


def test_very_deep_topologies_can_be_processed() -> None:
    steps = "- mapValues: {value: value + '.'}\n" * 1500
    runner = TopologyRunner(f"- stream: {{topic: in}}\n{steps}- to: {{topic: out}}\n")
    (output,) = runner.feed(runner.record("in", b"k", b"", 1))
    assert output[3] == b"." * 1500
