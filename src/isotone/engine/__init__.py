"""Tables, items and indexes over a store: what the database does, without how it is asked.

`engine.Engine` is the open database; `items` writes, `pages` and `source` read in order, `keyspace`
says where things lie, `maintenance` is the work that nobody waits for.
"""
