"""From a query to requests, and from their answers to entities in order."""
