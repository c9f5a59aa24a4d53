"""The database without its API: tables, items and indexes over an ordered key-value store.

`engine.Engine` is the open database. `layout` has the keys and bytes of items, `table_indexes` the entries of an item
in each index. `items` writes, `pages` reads in order, and `maintenance` is the background work.

The engine raises no API errors: `operations` checks a request, and the engine executes it.
"""
