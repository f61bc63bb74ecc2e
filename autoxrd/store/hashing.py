"""Which hash says what? The one place with the formulas of the graph.

* ``content_hash``: SHA-256 of the row's canonical JSON text. No clock, duration, host or path is in that text.
* ``chain_hash``: SHA-256 over the row's kind, its content hash, the chain hashes of what it hangs on and the ids
  of the artifacts it names. Equal input gives equal chain hashes; a change anywhere upstream changes all below.
* ``row_hash``: SHA-256 over every column of the row, telemetry and the other hashes included.
* ``graph_root``: SHA-256 over the job's chain hash and the ordered chain hashes of all states and edges.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from autoxrd.primitives import canonical_json, sha256_hex

__all__ = ["artifact_list", "chain_hash", "graph_root", "row_hash", "text_hash"]

CHAIN_SCHEMA = "autoxrd.chain/1"
ROOT_SCHEMA = "autoxrd.graph-root/1"
ROW_SCHEMA = "autoxrd.row/1"


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text's bytes. Undecodable bytes kept as surrogate escapes hash as those bytes."""
    return sha256_hex(text.encode("utf-8", "surrogateescape"))


def artifact_list(artifacts: Iterable[str]) -> list[str]:
    """Return the ids sorted, each once: the form in which a row names them."""
    return sorted(set(artifacts))


def chain_hash(kind: str, content: str, parents: Sequence[str], artifacts: Sequence[str]) -> str:
    """Return the chain hash of a row.

    Args:
        kind: ``job``, ``state``, ``edge`` or ``event``.
        content: content hash of the row.
        parents: chain hashes of the rows it hangs on, in the order given in docs/graph.md.
        artifacts: artifact ids as `artifact_list` orders them.
    """
    return text_hash(
        canonical_json(
            {
                "schema": CHAIN_SCHEMA,
                "kind": kind,
                "content": content,
                "parents": list(parents),
                "artifacts": list(artifacts),
            }
        )
    )


def graph_root(job: str, states: Sequence[str], edges: Sequence[str]) -> str:
    """Return the one hash that stands for a whole graph, from chain hashes in ordinal order."""
    return text_hash(canonical_json({"schema": ROOT_SCHEMA, "job": job, "states": list(states), "edges": list(edges)}))


def row_hash(table: str, values: Mapping[str, object]) -> str:
    """Return the hash over all columns of a row.

    Columns that are NULL are left out, so that a column which a later migration adds does not
    change the hash of rows that were written before it. A value of a type that the schema does not
    have (a blob, a real) enters under its own tag and so can never hash like the true value.

    Args:
        table: name of the table.
        values: every column but ``row_hash`` itself.
    """
    columns = [[name, _tagged(value)] for name, value in sorted(values.items()) if value is not None]
    # ASCII escapes keep this defined for texts whose bytes were damaged into invalid UTF-8.
    return sha256_hex(json.dumps([ROW_SCHEMA, table, columns], ensure_ascii=True, separators=(",", ":")).encode())


def _tagged(value: object) -> object:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    return [type(value).__name__, value.hex() if isinstance(value, bytes) else repr(value)]
