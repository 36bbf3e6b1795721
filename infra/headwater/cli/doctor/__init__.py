"""`headwater doctor`: observe machine, stack and cluster; `headwater.doctor` decides what it means."""
