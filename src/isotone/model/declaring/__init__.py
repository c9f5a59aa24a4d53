"""The declarations of a class statement: fields, keys, tables, and the schema made from them."""
