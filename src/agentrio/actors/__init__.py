"""Who runs an agent: the runtime, its sessions, their runs, the tool pool, and how events reach readers."""
