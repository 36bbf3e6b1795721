"""Which of several clients of an application is active (`worker.state_proof`)."""
