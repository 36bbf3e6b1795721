"""`headwater doctor`: observe this machine, a stack and a cluster; `infra.doctor` decides what it means."""
