"""Moving tables between engines: each job is raw requests to two backends, and knows no entities."""
