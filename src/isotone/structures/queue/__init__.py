"""A durable queue: what a message is (`entities`), how it is claimed and settled (`steps`), what users see (`queue`)."""
