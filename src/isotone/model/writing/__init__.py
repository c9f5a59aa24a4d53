"""Writes of entities and their derived attributes, each as one request or one transaction."""
