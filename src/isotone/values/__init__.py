"""What an attribute value is: validity, numbers, sizes, capacity units, order, DynamoDB JSON.

Everywhere inside the database a value is its wire form, a dict with exactly one key that names the
type: `{"S": "x"}`, `{"N": "10"}`, `{"B": "<base64>"}`. `attributes.canonical_item` is the gate: what
has passed it is valid and in normal form, and the other modules here rely on that.
"""
