"""Blobs in files: what is on the disk, what stands in the way, and what a kill leaves."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from psych_runtime.blob.contract._check import OURS, THEIRS, put
from psych_runtime.blob.filesystem import FileBlobStore
from psych_runtime.errors import (
    BlobNotFound,
    BlobStoreFull,
    BlobStoreUnusable,
    BlobUnavailable,
)
from tests.functional.blob.harness import FileBlobHarness
from tests.functional.blob.processes import go, next_line, started
from tests.functional.blob.program import DATA

TEN = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"


def names_below(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


async def test_r_23_a_blob_is_a_file_that_its_user_alone_reads(files: FileBlobHarness) -> None:
    """Tenant, Run and hash are its path; nothing else is left in the folder."""
    await put(FileBlobStore(files.root), OURS, b"0123456789")
    run = f"n-acme/n-{OURS.run_id}"
    assert names_below(files.root) == ["n-acme", run, f"{run}/{TEN}"]
    for path in (files.root, *files.root.rglob("*")):
        wanted = 0o600 if path.is_file() else 0o700
        assert stat.S_IMODE(path.stat().st_mode) == wanted
    assert files.path(OURS, TEN).read_bytes() == b"0123456789"


async def test_r_23_a_blob_and_its_folders_are_synced_in_order(
    files: FileBlobHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes before the name, the name before the folders' names, up to the new root's."""
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        steps.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    def renamed(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        steps.append(f"rename to {target}")
        replace(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    await put(FileBlobStore(files.root), OURS, b"0123456789")
    leftover = next(step for step in steps if step.endswith(".part"))
    assert steps == [
        files.root.parent.parent.name,
        files.root.parent.name,
        leftover,
        f"rename to {TEN}",
        f"n-{OURS.run_id}",
        "n-acme",
        files.root.name,
    ]


async def test_st_6_a_deletion_is_synced(
    files: FileBlobHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it returns: what was erased does not come back after a power cut."""
    store = FileBlobStore(files.root)
    await put(store, OURS, b"0123456789")
    steps: list[str] = []
    fsync, unlink = os.fsync, os.unlink

    def synced(descriptor: int) -> None:
        steps.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
        fsync(descriptor)

    def unlinked(name: str, *, dir_fd: int) -> None:
        steps.append(f"unlink {name}")
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "unlink", unlinked)
    assert await store.delete(*OURS) == 1
    assert steps == [f"unlink {TEN}", f"sync n-{OURS.run_id}"]


async def test_r_23_io_leaves_the_loop_alone(files: FileBlobHarness) -> None:
    """While a disk hangs, the loop goes on."""
    hung, told = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    class Hangs(FileBlobStore):
        def _rename(self, leftover: str, hash: str, folder: int) -> None:
            loop.call_soon_threadsafe(hung.set)
            asyncio.run_coroutine_threadsafe(told.wait(), loop).result()
            super()._rename(leftover, hash, folder)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(put(Hangs(files.root), OURS, b"0123456789"))
        await hung.wait()
        assert not task.done()
        told.set()
    assert task.result() == TEN


async def test_r_23_a_kill_before_the_rename_leaves_no_blob(files: FileBlobHarness) -> None:
    """No method sees what is left; the next put works, and a sweep takes the rest."""
    with started("stops", files.root) as process:
        leftover = next_line(process)
        assert files.path(OURS, leftover).read_bytes() == DATA
        process.kill()
        assert process.wait() == -9
    store = FileBlobStore(files.root)
    assert await store.runs() == []
    assert await store.listed(*OURS) == []
    for hash in (leftover, leftover.removesuffix(".part"), TEN):
        with pytest.raises(BlobNotFound):
            await store.read(*OURS, hash)
    assert await store.delete(*OURS, [leftover]) == 0

    hash = await put(store, OURS, DATA)
    assert await store.read(*OURS, hash) == DATA
    await store.sweep()
    assert files.path(OURS, leftover).exists()
    await files.advance(3601)
    await store.sweep()
    assert [path.name for path in files.path(OURS).iterdir()] == [hash]
    assert await store.read(*OURS, hash) == DATA


async def test_r_23_who_stopped_before_the_rename_goes_on(files: FileBlobHarness) -> None:
    """The neighbour of the kill: a process that was only slow ends its put, also after a sweep."""
    with started("stops", files.root) as process:
        leftover = next_line(process)
        store = FileBlobStore(files.root)
        await store.sweep()
        assert files.path(OURS, leftover).exists()
        go(process)
        hash = next_line(process)
        assert await store.read(*OURS, hash) == DATA


async def test_r_23_a_put_that_a_sweep_took_for_dead_begins_anew(files: FileBlobHarness) -> None:
    """Stopped for more than an hour, it finds its file gone, and writes another."""
    with started("stops", files.root) as process:
        first = next_line(process)
        await files.advance(3601)
        store = FileBlobStore(files.root)
        await store.sweep()
        assert names_below(files.root) == []
        go(process)
        second = next_line(process)
        assert second != first
        go(process)
        assert await store.read(*OURS, next_line(process)) == DATA


async def test_st_6_what_a_kill_left_of_a_run_is_erased_with_it(files: FileBlobHarness) -> None:
    """A deletion of all takes the bytes that never became a blob, and the empty folders."""
    with started("stops", files.root) as process:
        next_line(process)
    store = FileBlobStore(files.root)
    await put(store, THEIRS, b"0123456789")
    assert await store.delete(*OURS) == 0
    assert not files.path(OURS).parent.exists()
    assert await store.runs() == [THEIRS]


async def test_r_23_two_processes_put_and_delete_the_same_blobs(files: FileBlobHarness) -> None:
    """Neither fails for the other's sake."""
    with started("repeats", files.root) as one, started("repeats", files.root) as other:
        assert [next_line(one), next_line(other)] == ["ready", "ready"]
        go(one)
        go(other)
        assert [next_line(one), next_line(other)] == ["[]", "[]"]
    assert names_below(files.root) == []


async def test_r_23_a_full_disk_is_said_to_be_full(files: FileBlobHarness) -> None:
    """A file cannot grow: typed, nothing left, and the next smaller blob fits."""
    with started("fills", files.root) as process:
        assert next_line(process) == "blob_store_full"
        hash = next_line(process)
    assert [path.name for path in files.path(OURS).iterdir()] == [hash]


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
async def test_r_23_a_disk_that_fails_leaves_nothing(
    files: FileBlobHarness, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Whichever step fails, the error is typed, and what was begun is taken away."""
    store = FileBlobStore(files.root)
    await put(store, OURS, b"another")
    before = names_below(files.root)

    def fails(*_: object, **__: object) -> None:
        raise OSError(28 if step == "write" else 5, "the disk")

    with monkeypatch.context() as patch:
        if step == "write":
            patch.setattr("psych_runtime.blob._folders.write_new", fails)
        else:
            patch.setattr(os, step, fails)
        with pytest.raises(BlobUnavailable) as caught:
            await put(store, OURS, b"0123456789")
    assert isinstance(caught.value, BlobStoreFull) == (step == "write")
    assert str(files.root) in str(caught.value)
    assert names_below(files.root) == before
    assert await put(store, OURS, b"0123456789") == TEN


async def test_r_23_a_root_that_is_a_file_is_said_to_be_one(tmp_path: Path) -> None:
    """By every method that asks it, with what to do."""
    root = tmp_path / "root"
    root.write_bytes(b"not a folder")
    store = FileBlobStore(root)
    for call in (
        put(store, OURS, b"0123456789"),
        store.read(*OURS, TEN),
        store.listed(*OURS),
        store.runs(),
        store.delete(*OURS),
        store.sweep(),
    ):
        with pytest.raises(BlobStoreUnusable) as caught:
            await call
        assert str(root) in caught.value.problem
        assert caught.value.remedy == "name a folder, or one that does not exist yet"
    assert root.read_bytes() == b"not a folder"


@pytest.mark.parametrize("number", [13, 1, 30])
async def test_r_23_a_root_that_may_not_be_written_is_said_so(
    files: FileBlobHarness, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """No permission, a read-only mount: permanent, and reading goes on."""
    store = FileBlobStore(files.root)
    await put(store, OURS, b"0123456789")

    def refuses(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", refuses)
        with pytest.raises(BlobStoreUnusable) as caught:
            await put(store, THEIRS, b"0123456789")
    assert os.strerror(number) in caught.value.problem
    assert await store.read(*OURS, TEN) == b"0123456789"


async def test_sec_3_links_are_not_followed(files: FileBlobHarness, tmp_path: Path) -> None:
    """Not to another tenant's folder, not out of the root, not for a blob itself."""
    store = FileBlobStore(files.root)
    await put(store, THEIRS, b"0123456789")
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / TEN
    secret.write_bytes(b"0123456789")

    for target in (files.path(THEIRS), outside):
        link = files.path(OURS)
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(target)
        assert await store.listed(*OURS) == []
        assert await store.runs() == [THEIRS]
        assert await store.delete(*OURS) == 0
        with pytest.raises(BlobNotFound):
            await store.read(*OURS, TEN)
        with pytest.raises(BlobStoreUnusable):
            await put(store, OURS, b"0123456789")
        await store.sweep()
        link.unlink()

    files.path(OURS).mkdir(parents=True)
    files.path(OURS, TEN).symlink_to(secret)
    assert await store.listed(*OURS) == []
    with pytest.raises(BlobNotFound):
        await store.read(*OURS, TEN)
    await put(store, OURS, b"0123456789")
    assert not files.path(OURS, TEN).is_symlink()
    assert names_below(outside) == [TEN]
    assert names_below(files.path(THEIRS)) == [TEN]


async def test_sec_3_a_root_may_be_a_link(tmp_path: Path) -> None:
    """The operator's own link leads to the root, and is followed."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "disk")
    store = FileBlobStore(tmp_path / "root")
    await put(store, OURS, b"0123456789")
    assert await store.read(*OURS, TEN) == b"0123456789"
    assert (tmp_path / "disk" / "n-acme").is_dir()


async def test_r_23_what_others_keep_in_the_root_is_left_alone(files: FileBlobHarness) -> None:
    """Pipes, files and folders that are no blob: neither listed nor deleted, nor waited for."""
    store = FileBlobStore(files.root)
    await put(store, OURS, b"0123456789")
    foreign = [
        files.root / "README",
        files.root / "n-loose",
        files.root / "lost+found" / "x",
        files.root / "e-MFRA" / "n-run" / TEN,
        files.root / "e-mfrgg" / "n-run" / TEN,
        files.root / "e-1" / "n-run" / TEN,
        files.path(OURS, "notes.txt"),
        files.root.joinpath(*["m-a"] * 12, "x"),
    ]
    for path in foreign:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"foreign")
    os.mkfifo(files.path(OURS, "0" * 64))
    files.path(OURS, "1" * 64).mkdir()

    assert [blob.hash for blob in await store.listed(*OURS)] == [TEN]
    assert [owner.tenant for owner in await store.runs()] == ["acme"]
    for hash in ("0" * 64, "1" * 64):
        with pytest.raises(BlobNotFound):
            await store.read(*OURS, hash)
    await files.advance(10_000)
    await store.sweep()
    assert await store.delete(*OURS) == 1
    for path in foreign:
        assert path.read_bytes() == b"foreign"


async def test_r_23_a_relative_root_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that changes its directory later does not lose its blobs."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = FileBlobStore(Path("blobs"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    await put(store, OURS, b"0123456789")
    assert (tmp_path / "blobs" / "n-acme").is_dir()
