"""Definitions of tables in the formats of other tools: CloudFormation, SAM, CDK, Terraform, NoSQL Workbench, Markdown.

A table is a `DeployableTable`: a CreateTable request in normal form, with the requests of the other actions that set
something (`deployable`). `formats.FORMATS` has one entry for each format:

- a *syntax*: JSON, YAML (`yaml_text`) or Terraform's (`hcl`), which turns a text into a document and back;
- *shapes* (`shapes`): a table that says where each member of the document stands in the definition. `write_shape` and
  `read_shape` walk it in the two directions. What it does not have is noted when it is read, never dropped in silence;
- what the format *lacks* (`features`): it is removed before the table is written, and said.

What a user has written may refer to something: `document.DocumentValue` is a value with its place, and resolves a
reference when it is read, by `intrinsics` in a template and by `hcl.Expressions` in Terraform. The CDK and Markdown are
only written. A file's tables are made in memory before they are shown, so CreateTable itself says what is invalid.
"""
