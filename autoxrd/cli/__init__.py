"""The ``autoxrd`` command."""
