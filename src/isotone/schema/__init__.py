"""Definitions of tables in the formats of other tools: CloudFormation, SAM, CDK, Terraform, NoSQL Workbench, Markdown.

`formats.FORMATS` has one entry for each. A writer turns `DeployableTable`s into a text, a reader turns a text into them.
What a format cannot express is listed in its entry, and removed from a table before the writer sees it.
"""
