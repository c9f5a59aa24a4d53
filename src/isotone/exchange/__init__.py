"""What exports and imports exchange with the world: objects in buckets, and the formats of the files in them."""
