"""Workers: handlers of a table's changes (`worker`, `handlers`), the members that run them and the shards they share."""
