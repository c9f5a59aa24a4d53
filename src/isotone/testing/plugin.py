"""The pytest plugin: fixtures for databases and clients."""
