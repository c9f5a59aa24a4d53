"""Tables made and compared with their declarations, and their streams of changes."""
