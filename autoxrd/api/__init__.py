"""The REST interface: HTTP in, the service's functions, JSON out. No decision is made here.

* :mod:`~autoxrd.api.app`: builds the application from the routers.
* :mod:`~autoxrd.api.context`: what every request may use (settings, database, a way to say that there is work).
* :mod:`~autoxrd.api.auth`: who is asking, and may they?
* :mod:`~autoxrd.api.problems`: every error as RFC 9457 problem+json.
* :mod:`~autoxrd.api.intake`: from a body, multipart or JSON, to a checked request with stored files.
* :mod:`~autoxrd.api.queueing`: from a checked request to a queued job.
* :mod:`~autoxrd.api.observing`: request ids, access log, metrics.
* :mod:`~autoxrd.api.routes`: one small module for each resource.
"""
