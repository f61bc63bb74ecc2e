from __future__ import annotations

import resource
from pathlib import Path

import pytest

from autoxrd.errors import StorageError
from autoxrd.primitives import sha256_hex
from autoxrd.store.artifacts import ArtifactStore


def code_of(error: pytest.ExceptionInfo[StorageError]) -> str:
    return error.value.code


def test_an_artifact_is_a_file_named_by_its_hash(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "artifacts")
    assert list(store.ids()) == []
    one, two = store.put(b"one"), store.put(b"")
    assert one == sha256_hex(b"one")
    assert store.path(one) == tmp_path / "artifacts" / one[:2] / one[2:]
    assert store.get(one) == b"one"
    assert store.get(two) == b""
    assert list(store.ids()) == sorted([one, two])
    assert store.has(one)
    assert store.size(one) == 3
    assert list(store.strangers()) == []


def test_putting_twice_writes_once_and_repairs_damage(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    artifact = store.put(b"content")
    before = store.path(artifact).stat().st_ino
    assert store.put(b"content") == artifact
    assert store.path(artifact).stat().st_ino == before
    store.path(artifact).write_bytes(b"c0ntent")
    with pytest.raises(StorageError, match="restore") as error:
        store.get(artifact)
    assert code_of(error) == "artifact_damaged"
    store.put(b"content")
    store.verify(artifact)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    for call in (store.get, store.size, store.verify):
        with pytest.raises(StorageError, match="restore") as error:
            call("0" * 64)
        assert code_of(error) == "artifact_missing"
    assert not store.has("0" * 64)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "0" * 63, "0" * 65, "A" * 64, "0" * 63 + "\n", "٠" * 64])
def test_only_a_digest_becomes_a_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(StorageError) as error:
        ArtifactStore(tmp_path).path(name)
    assert code_of(error) == "artifact_id_invalid"


def test_a_refused_write_leaves_no_trace(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    store.put(b"small")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(StorageError, match="Free space") as error:
            store.put(bytes(5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code_of(error) == "artifact_not_written"
    assert list(store.ids()) == [sha256_hex(b"small")]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_strangers_are_told_apart(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    artifact = store.put(b"x")
    (tmp_path / "readme").write_text("?")
    (store.path(artifact).parent / "short").write_text("?")
    (tmp_path / "tmp" / "left-by-a-kill").write_text("half")
    assert [p.name for p in store.strangers()] == ["readme", "short"]
    store.clear_scratch()
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list(store.ids()) == [artifact]
