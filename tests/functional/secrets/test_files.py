"""Secrets in files, as an orchestrator mounts them, on a real file system (SEC-2)."""

import asyncio
import os
from pathlib import Path
from typing import Final

import pytest

from psych_runtime import (
    FileSecrets,
    InvalidArgument,
    Scope,
    SecretNotFound,
    SecretUnavailable,
    SecretUnusable,
)
from psych_runtime.core.secret import resolve_secret
from tests.canary import CANARY, in_texts

ACME: Final = Scope(tenant="acme")
GLOBEX: Final = Scope(tenant="globex")


class Mounted:
    """A folder in which all files change at once, by one link (`..data`)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._changes = 0
        folder.mkdir()

    def change(self, **values: str) -> None:
        """Put new values in place of the old ones, and delete those."""
        self._changes += 1
        old = self.folder / "..data"
        gone = old.resolve() if old.is_symlink() else None
        data = self.folder / f"..2026_{self._changes}"
        data.mkdir()
        for name, value in values.items():
            (data / name).write_text(value)
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        link = self.folder / "..data_new"
        link.symlink_to(data.name)
        link.rename(old)
        if gone is not None:
            for file in gone.iterdir():
                file.unlink()
            gone.rmdir()


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("canary value", "canary value"),
        ("canary value\n", "canary value"),
        ("canary value\r\n", "canary value"),
        ("canary value\n\n", "canary value\n"),
        (" canary value \n", " canary value "),
        ("two\nlines of it\n", "two\nlines of it"),
        ("canary value\r", "canary value\r"),
        ("é" * 8192 + "\r\n", "é" * 8192),
    ],
)
async def test_sec_2_a_file_holds_a_value(tmp_path: Path, written: str, value: str) -> None:
    """Without the one line break that an editor puts at its end."""
    (tmp_path / "key").write_text(written, newline="")
    secret = await resolve_secret(FileSecrets(tmp_path), ACME, "key")
    assert secret.reveal() == value


async def test_sec_2_a_mounted_folder_is_read_through_its_links(tmp_path: Path) -> None:
    """Changed values are used at once, and all of them together."""
    mounted = Mounted(tmp_path / "secrets")
    secrets = FileSecrets(mounted.folder)
    mounted.change(key="first value\n", other="first other\n")
    assert await secrets.resolve(ACME, "key") == "first value"
    mounted.change(key="second value\n", other="second other\n")
    assert await secrets.resolve(ACME, "key") == "second value"
    assert await secrets.resolve(ACME, "other") == "second other"


async def test_sec_2_a_value_is_whole_while_it_changes(tmp_path: Path) -> None:
    """Whoever reads meanwhile gets the old or the new one, and no error."""
    mounted = Mounted(tmp_path / "secrets")
    mounted.change(key="value 0" * 500)
    secrets = FileSecrets(mounted.folder)
    done = False

    async def read() -> set[str]:
        seen = set()
        while not done:
            seen.add(await secrets.resolve(ACME, "key"))
        return seen

    readers = [asyncio.create_task(read()) for _ in range(4)]
    for number in range(200):
        await asyncio.to_thread(mounted.change, key=f"value {number % 10}" * 500)
    done = True
    seen = set().union(*await asyncio.gather(*readers))
    assert seen <= {f"value {number}" * 500 for number in range(10)}
    assert len(seen) > 1


@pytest.mark.parametrize(
    "name", ["other", "sub", "a/../key", "a/..", "a/./b", "a//b", "a/", "a/.hidden", "key/more"]
)
async def test_sec_2_what_is_not_there_says_what_to_write(tmp_path: Path, name: str) -> None:
    """A name is no path: nothing above a folder, nothing hidden."""
    (tmp_path / "key").write_text(CANARY)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".hidden").write_text(CANARY)
    with pytest.raises(SecretNotFound) as caught:
        await resolve_secret(FileSecrets(tmp_path), ACME, name)
    assert in_texts({"error": caught.value}, CANARY) == []
    if name == "other":
        assert f"no secret 'other' for this tenant; write {tmp_path / 'other'}" in str(caught.value)


async def test_sec_2_a_part_of_a_name_may_be_a_folder(tmp_path: Path) -> None:
    """Some tools write one for each application."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "api-key.txt").write_text("canary value")
    assert await FileSecrets(tmp_path).resolve(ACME, "shop/api-key.txt") == "canary value"


@pytest.mark.parametrize("target", ["../outside", "up/outside", "/etc/hostname"])
async def test_sec_2_no_link_leads_out_of_the_folder(tmp_path: Path, target: str) -> None:
    """Whoever may write a link into a folder may not read what is elsewhere."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    (tmp_path / "outside").write_text(CANARY)
    (folder / "up").symlink_to("..")
    (folder / "key").symlink_to(target)
    with pytest.raises(SecretUnusable, match="key leads out of its folder") as caught:
        await resolve_secret(FileSecrets(folder), ACME, "key")
    assert in_texts({"error": caught.value}, CANARY) == []


async def test_sec_2_the_folder_may_be_a_link_itself(tmp_path: Path) -> None:
    """What is in it is in it all the same."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "key").write_text("canary value")
    (tmp_path / "link").symlink_to("real")
    assert await FileSecrets(tmp_path / "link").resolve(ACME, "key") == "canary value"


async def test_sec_2_what_cannot_be_read_is_told_by_its_place(tmp_path: Path) -> None:
    """A folder, a pipe, a link to nothing, a circle, other bytes than text, too many of them."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nothing").symlink_to("gone")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "bytes").write_bytes(b"canary\xff" + CANARY.encode())
    (tmp_path / "huge").write_text(CANARY * 2000)
    (tmp_path / "empty").write_text("\n")
    expected = {
        "folder": (SecretUnusable, "folder is no file"),
        "pipe": (SecretUnusable, "pipe is no file"),
        "nothing": (SecretUnavailable, "nothing is a link to a file that is not there"),
        "circle": (SecretUnavailable, "circle: "),
        "bytes": (SecretUnusable, "its file is no UTF-8"),
        "huge": (SecretUnusable, "its file has more than 16384 bytes"),
        "empty": (SecretUnusable, "it is empty"),
    }
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    for name, (kind, text) in expected.items():
        with pytest.raises(kind, match=text) as caught:
            await resolve_secret(FileSecrets(tmp_path), ACME, name)
        assert in_texts({"error": caught.value, "facts": vars(caught.value)}, CANARY) == []
        assert caught.value.__context__ is None
    assert len(list(Path("/proc/self/fd").iterdir())) == open_files


async def test_sec_2_no_error_of_a_file_holds_its_bytes(tmp_path: Path) -> None:
    """Nor is what Python says about them its context: that has all of them."""
    (tmp_path / "key").write_bytes(b"\xff" + CANARY.encode())
    with pytest.raises(SecretUnusable, match="its file is no UTF-8") as caught:
        await FileSecrets(tmp_path).resolve(ACME, "key")
    assert caught.value.__context__ is None


async def test_sec_2_a_file_that_may_not_be_opened_is_told_by_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what the system says; nobody says that it is not there."""
    (tmp_path / "key").write_text(CANARY)

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied", CANARY)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SecretUnavailable, match="key: Permission denied") as caught:
        await resolve_secret(FileSecrets(tmp_path), ACME, "key")
    assert in_texts({"error": caught.value}, CANARY) == []


async def test_sec_2_a_tenant_s_folder_comes_before_that_for_all(tmp_path: Path) -> None:
    """Another tenant's file is not there."""
    for folder, name, value in (
        ("acme", "key", "of acme"),
        ("globex", "only", "of globex"),
        ("all", "key", "of all"),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(value)
    own = {"acme": tmp_path / "acme", "globex": tmp_path / "globex"}
    secrets = FileSecrets(tmp_path / "all", tenants=own)
    assert await secrets.resolve(ACME, "key") == "of acme"
    assert await secrets.resolve(GLOBEX, "key") == "of all"
    for name in ("only", "globex/only"):
        with pytest.raises(SecretNotFound, match=f"write {tmp_path / 'acme' / name}"):
            await secrets.resolve(ACME, name)
    with pytest.raises(SecretNotFound, match="this tenant has no folder"):
        await FileSecrets(tenants=own).resolve(Scope(tenant="initech"), "key")


def test_sec_2_folders_keep_tenants_apart(tmp_path: Path) -> None:
    """One that is in another, also by a link, would be read by a name with a slash."""
    (tmp_path / "all" / "acme").mkdir(parents=True)
    (tmp_path / "link").symlink_to("all")
    for own in ("all", "all/acme", "link", "."):
        with pytest.raises(InvalidArgument, match="neither may be in the other, or be the same"):
            FileSecrets(tmp_path / "all", tenants={"acme": tmp_path / own})
    FileSecrets(tmp_path / "all", tenants={"acme": tmp_path / "all-acme"})
