"""Tables, items and indexes over a store: the database without its API.

`engine.Engine` is the open database. `layout` has the key and the bytes of an item, `table_indexes` its entry in
each index; `items` writes, `pages` reads in order; `maintenance` is the background work.

The engine raises no API errors: `operations` checks a request, and the engine executes it.
"""
