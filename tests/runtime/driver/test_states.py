"""Transitions of a client's state."""

from headwater_spark.driver.states import ClientState


def test_final_states_have_no_successor() -> None:
    for final in (ClientState.NOT_RUNNING, ClientState.ERROR):
        assert final.is_final
        assert not any(final.may_become(state) for state in ClientState)
