"""Attribute values: types and order, validity, numbers, sizes and capacity units, DynamoDB JSON.

Inside the database a value always has its wire form, a dict with exactly one key that names the type:
`{"S": "x"}`, `{"N": "10"}`, `{"B": "<base64>"}`. `attribute_validation.canonical_item` validates values and puts them
into normal form, and all other modules rely on that.
"""
