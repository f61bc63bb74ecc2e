"""The service as a whole: which processes there are, and what each is made of.

* :mod:`~autoxrd.server.app`: the application of a web process: REST, and whatever else answers HTTP.
* :mod:`~autoxrd.server.serve`: `autoxrd serve`, everything in one command.
"""
