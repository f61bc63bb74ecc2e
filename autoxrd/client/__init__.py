"""The Python client of the service: submit, follow, review, download; synchronous or asynchronous.

::

    from autoxrd.client import Client

    with Client() as client:  # AUTOXRD_URL, AUTOXRD_API_KEY
        job = client.submit("pattern.xy", ["phase.cif"], request={"measurement": {"anode": "Cu"}})
        job = client.wait(job.id, progress=print)
        client.report(job.id, "html", to="report.html")

* :mod:`~autoxrd.client.models`: what the service answers, as frozen values.
* :mod:`~autoxrd.client.calls`: every operation once, as the calls it makes; it knows no transport.
* :mod:`~autoxrd.client.sync`, :mod:`~autoxrd.client.aio`: make the calls, wait or await.

It knows the service by HTTP only. Errors are those of `autoxrd.errors`, with the service's own code and sentence.
"""

from __future__ import annotations

from autoxrd.client.aio import AsyncClient
from autoxrd.client.models import Event, File, Job, Review, Step
from autoxrd.client.sync import Client

__all__ = ["AsyncClient", "Client", "Event", "File", "Job", "Review", "Step"]
