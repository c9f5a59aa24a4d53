"""Tables, items and indexes over a store: what the database does. It does not know the API.

`engine.Engine` is the open database. `layout` says where and as what an item lies, `table` how an item
appears in each index; `items` writes, `reads` reads in order; `maintenance` is the background work.

The engine raises no API errors: `operations` checks a request, and the engine executes it.
"""
