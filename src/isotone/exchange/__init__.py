"""What exports and imports read and write outside the database: objects in buckets, and the formats of their files."""
