"""What follows from an observation: the next state, the events to report, and one action.

`decide` is a pure function. Clock, random numbers, journal and cluster are passed in as values. The loop
executes the `Action` and passes its result as the next observation, until nothing is due before `wake_ms`.
"""
