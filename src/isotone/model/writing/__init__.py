"""Writes of entities with all that follows from them, each as one request or one transaction."""
