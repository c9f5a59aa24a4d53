"""What a class statement declares: fields, keys, tables, and the schema that is made of them."""
