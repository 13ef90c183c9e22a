"""Where durable runs keep their events."""
