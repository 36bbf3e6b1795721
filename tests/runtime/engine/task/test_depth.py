from tests.runtime.topology_runner import Driver


def test_records_go_through_very_deep_topologies() -> None:
    steps = "- mapValues: {value: value + '.'}\n" * 1500
    driver = Driver(f"- stream: {{topic: in}}\n{steps}- to: {{topic: out}}\n")
    (output,) = driver.feed(driver.record("in", b"k", b"", 1))
    assert output[3] == b"." * 1500
