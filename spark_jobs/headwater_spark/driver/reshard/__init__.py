"""Give a stopped application more partitions, and each key its state; copy state to another name."""
