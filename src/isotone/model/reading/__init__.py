"""Reads: turns queries and scans into requests, and their responses into entities in order."""
