"""The decision graph in a database and the artifacts beside it.

Public names, by module (nothing is imported here: SQLAlchemy loads only where it is used):

* :mod:`autoxrd.store.graph`: ``Graph``, the record of one job in one directory.
* :mod:`autoxrd.store.records`: ``JobRecord``, ``HistogramRecord``, ``Attempt``, ``Node``, ``Event``.
* :mod:`autoxrd.store.artifacts`: ``ArtifactStore``, files by their SHA-256.
* :mod:`autoxrd.store.verify`: ``verify``, which recomputes everything that the graph claims.
* :mod:`autoxrd.store.export`: ``verify_export``, the same for a graph.json alone.

The layout of rows, hashes and files is on the page docs/graph.md.
"""
