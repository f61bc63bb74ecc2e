"""The service's database: many jobs and their graphs in one, on SQLite or PostgreSQL.

Public names, by module (nothing is imported here: SQLAlchemy loads only where it is used):

* :mod:`~autoxrd.store.service.database`: ``Database``, connections and transactions on either database.
* :mod:`~autoxrd.store.service.submission`: ``submit``, a request becomes one queued job, however often it is sent.
* :mod:`~autoxrd.store.service.transition`: ``move``, the only place that changes a job's state.
* :mod:`~autoxrd.store.service.leases`: ``claim``, ``beat``, ``release``, ``expire``: who works on which job.
* :mod:`~autoxrd.store.service.job_graph`: ``JobGraph``, a graph that only the lease's holder can append to.
* :mod:`~autoxrd.store.service.books`: what a recorded step changes beside the graph, in the same transaction.
* :mod:`~autoxrd.store.service.feed`: events of a job in order.
* :mod:`~autoxrd.store.service.reviews`: what a planner asked a person, and what a person said.
* :mod:`~autoxrd.store.service.listing`: jobs as their owners see them.
* :mod:`~autoxrd.store.service.steps`: the graph in pages, without the large rows.
* :mod:`~autoxrd.store.service.files`: uploads and files of jobs, by content.
* :mod:`~autoxrd.store.service.keys`: owners and API keys.

The tables beside the graph's are on the page docs/service.md.
"""
