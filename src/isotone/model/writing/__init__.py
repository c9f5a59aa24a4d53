"""Writes of entities with everything derived from them, each as one request or one transaction."""
