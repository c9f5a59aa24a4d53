"""The tools of coding assistants: a server of the Model Context Protocol for any engine; needs `isotone[mcp]`.

server            lists and calls the tools over standard input and output, or over HTTP
standard_streams  standard input and output as the protocol's alone
tools             the tools, by name: JSON objects in and out
arguments         their arguments, with what is said about each
budgets           the items and units that a call and a session may use, and writes only if allowed
answers           what is stored, cut to a size that an assistant can read
refusals          errors in words that quote nothing that is stored
data_models       AWS's own design file, tried in memory
aws_commands      a command line of `aws dynamodb` as an action with its request
"""
