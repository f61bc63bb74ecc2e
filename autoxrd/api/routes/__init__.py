"""One module for each resource of the REST interface."""
