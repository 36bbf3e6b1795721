"""Which of several clients of an application with `at_least_once` is active (`worker.client_record`)."""
