"""The requests of the API, one structure an action, with AWS's member names and constraints.

Attributes are in snake case (`request.table_name` is `TableName`), an absent member is None, and an
attribute value is left as the JSON gave it.
"""
