"""The decision graph in a database and the artifacts beside it."""
