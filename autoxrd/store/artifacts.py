"""Where do the bytes live that a graph names? In files addressed by their SHA-256.

An artifact with the digest ``abcdef...`` is the file ``ab/cdef...`` below the root. Its name is its checksum, so
a file is never changed after it was written, equal bytes are stored once, and every read proves what it returns.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from autoxrd.errors import StorageError
from autoxrd.primitives import ArtifactId, sha256_hex
from autoxrd.store.durable import sync_directory, write_durable

__all__ = ["ArtifactStore", "is_artifact_id"]

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHARD = re.compile(r"[0-9a-f]{2}")
_REST = re.compile(r"[0-9a-f]{62}")
_SCRATCH = "tmp"


def is_artifact_id(text: object) -> bool:
    """Return whether this is the form of an artifact id (64 lower-case hex digits)."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


class ArtifactStore:
    """Files by content below one directory.

    Args:
        root: directory that holds (or will hold) the folders ``00`` to ``ff``; made when first written to.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, artifact: str) -> Path:
        """Return where the artifact lies, whether or not it is there.

        Raises:
            StorageError: ``artifact_id_invalid``, this is no artifact id (so it cannot become a path).
        """
        if not is_artifact_id(artifact):
            raise StorageError(
                "artifact_id_invalid", f"{artifact!r:.80} is no artifact id: 64 hex digits are expected."
            )
        return self.root / artifact[:2] / artifact[2:]

    def put(self, data: bytes) -> ArtifactId:
        """Store bytes and return their id; when this returns they are on the disk. Equal bytes are stored once.

        Raises:
            StorageError: ``artifact_not_written``, the file system refused.
        """
        artifact = ArtifactId(sha256_hex(data))
        path = self.path(artifact)
        try:
            if self._holds(path, data):
                os.utime(path)  # a sweep must not take for old what is about to be named anew
                return artifact
            self._make_room(path.parent)
            write_durable(path, data, scratch=self.root / _SCRATCH)
        except OSError as error:
            raise StorageError(
                "artifact_not_written",
                f"Could not write an artifact below {self.root}: {error.strerror or error}. "
                "Free space or permissions there, then resume the job.",
                context={"artifact": artifact, "bytes": len(data)},
            ) from error
        return artifact

    def get(self, artifact: str) -> bytes:
        """Return the bytes, checked against their id.

        Raises:
            StorageError: ``artifact_missing`` or ``artifact_damaged``.
        """
        path = self.path(artifact)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise StorageError(
                "artifact_missing",
                f"Artifact {artifact} cannot be read at {path}: restore the job directory from a copy.",
                context={"artifact": artifact},
            ) from error
        if sha256_hex(data) != artifact:
            raise StorageError(
                "artifact_damaged",
                f"Artifact {artifact} no longer has the content it was stored with: restore {path} from a copy.",
                context={"artifact": artifact, "found": sha256_hex(data)},
            )
        return data

    def has(self, artifact: str) -> bool:
        """Return whether a file of that name is there (its content is not read)."""
        return self.path(artifact).is_file()

    def size(self, artifact: str) -> int:
        """Return the length in bytes.

        Raises:
            StorageError: ``artifact_missing``.
        """
        try:
            return self.path(artifact).stat().st_size
        except OSError as error:
            raise StorageError(
                "artifact_missing",
                f"Artifact {artifact} is not below {self.root}: restore the job directory from a copy.",
                context={"artifact": artifact},
            ) from error

    def verify(self, artifact: str) -> None:
        """Read the artifact and check it against its id.

        Raises:
            StorageError: ``artifact_missing`` or ``artifact_damaged``.
        """
        self.get(artifact)

    def ids(self) -> Iterator[ArtifactId]:
        """Yield the ids of all artifacts, sorted. Files that no artifact name fits are passed over (`strangers`)."""
        for shard in self._shards():
            for entry in sorted(shard.iterdir()):
                if _REST.fullmatch(entry.name) and entry.is_file():
                    yield ArtifactId(shard.name + entry.name)

    def strangers(self) -> Iterator[Path]:
        """Yield what lies below the root without being an artifact or a temporary file."""
        if not self.root.is_dir():
            return
        for entry in sorted(self.root.iterdir()):
            if entry.name == _SCRATCH and entry.is_dir():
                continue
            if not (_SHARD.fullmatch(entry.name) and entry.is_dir()):
                yield entry
        for shard in self._shards():
            yield from (e for e in sorted(shard.iterdir()) if not (_REST.fullmatch(e.name) and e.is_file()))

    def clear_scratch(self) -> None:
        """Remove temporary files that a killed process left. Only for the one process that holds the job's lock."""
        scratch = self.root / _SCRATCH
        if scratch.is_dir():
            for entry in scratch.iterdir():
                entry.unlink(missing_ok=True)

    def _shards(self) -> list[Path]:
        if not self.root.is_dir():
            return []
        return sorted(e for e in self.root.iterdir() if _SHARD.fullmatch(e.name) and e.is_dir())

    def _make_room(self, shard: Path) -> None:
        (self.root / _SCRATCH).mkdir(parents=True, exist_ok=True)
        if not shard.is_dir():
            shard.mkdir(exist_ok=True)
            sync_directory(self.root)

    @staticmethod
    def _holds(path: Path, data: bytes) -> bool:
        # A damaged file of that name is written anew: putting the true bytes back is the repair.
        try:
            return path.stat().st_size == len(data) and path.read_bytes() == data
        except FileNotFoundError:
            return False
