"""A durable queue: what is kept of it (`entities`), messages in order (`groups`), what becomes of them (`outcomes`)."""
