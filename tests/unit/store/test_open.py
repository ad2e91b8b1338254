"""What a store URL may say, and what a wrong one is told (ST-3)."""

from pathlib import Path

import pytest

from psych_runtime.errors import UnsupportedStore
from psych_runtime.store._shown_url import shown_url
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.open import open_store
from psych_runtime.store.sqlite.store import SqliteStore


async def test_st_3_memory_stores_are_apart() -> None:
    """Each call makes an empty one."""
    one, two = open_store("memory://"), open_store("memory://")
    assert isinstance(one, MemoryStore)
    await one.put_version("acme", "a" * 64, "{}")
    assert await two.version("acme", "a" * 64) is None


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///runs.db", "runs.db"),
        ("sqlite:///data/runs.db?mode=rw", "data/runs.db"),
        ("sqlite:////var/lib/runs.db", "/var/lib/runs.db"),
        ("sqlite:///my%20runs%3F.db", "my runs?.db"),
    ],
)
async def test_st_3_a_sqlite_url_names_a_file(url: str, path: str) -> None:
    """Three slashes are relative, four absolute; nothing is opened yet."""
    store = open_store(url, prefix="p_")
    assert isinstance(store, SqliteStore)
    options = store._shared.options
    assert options.path == str(Path(path).resolve())
    assert options.prefix == "p_"
    await store.close()


async def test_st_3_options_of_a_sqlite_url_are_read() -> None:
    """Mode, lock time and size; without them there is a default."""
    store = open_store("sqlite:///a.db?mode=ro&busy_timeout_seconds=0.5&max_page_count=100")
    plain = open_store("sqlite:///a.db")
    assert isinstance(store, SqliteStore)
    assert isinstance(plain, SqliteStore)
    assert store._shared.options[2:] == ("ro", 0.5, 100)
    assert plain._shared.options[2:] == ("rwc", 2.0, None)
    await store.close()
    await plain.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://host/db?pool_sise=1", "did you mean 'pool_size'?"),
        ("postgresql+asyncpg://host/db?pooler=session", "use none or transaction"),
        ("postgresql://host/db?timeout_seconds=0", "use a number, 0.1 or more"),
        ("postgresql://host:http/db", "the port of the URL is no number"),
        ("postgresql://host:99999/db", "no number up to 65535"),
        ("postgresql://me:12/s3cret@host/db", "special characters as %XX"),
        ("mysql://me:1?s3cret@host/db", "special characters as %XX"),
        ("mysql://me:1#s3cret@host/db", "special characters as %XX"),
        ("postgresql://me:a[s3cret]@host/db", "special characters as %XX"),
        ("mysql://host", "the URL names no database"),
        ("mariadb://host/", "the URL names no database"),
        ("mysql://host/db?ssl=true", "unknown option 'ssl'"),
        ("mariadb://host/db?pool_size=many", "use a number, 1 or more"),
        ("postgresql:/me:s3cret@host/db", "'postgresql:***@host/db' is no store URL"),
        ("sqllite:///runs.db", "did you mean sqlite://?"),
        ("postgre://host", "did you mean postgres://?"),
        ("redis://host", "unknown store redis://; use memory://, sqlite:///runs.db"),
        ("runs.db", "a file is sqlite:///runs.db"),
        ("", "'' is no store URL"),
        ("sqlite://", "no file in 'sqlite://'"),
        ("sqlite://runs.db", "use memory://, sqlite:///runs.db"),
        ("sqlite:///:memory:", "for a store in memory use memory://"),
        ("sqlite:///a.db?mod=ro", "did you mean 'mode'?"),
        ("sqlite:///a.db?x=1", "use one of busy_timeout_seconds, max_page_count, mode"),
        ("sqlite:///a.db?mode=memory", "use rwc, rw or ro"),
        ("sqlite:///a.db?max_page_count=0", "use a number, 1 or more"),
        ("sqlite:///a.db?max_page_count=many", "use a number, 1 or more"),
        ("sqlite:///a.db?busy_timeout_seconds=inf", "use a number, 0.1 or more"),
    ],
)
def test_st_3_a_url_that_cannot_be_opened_says_what_can(url: str, words: str) -> None:
    """The error names the fault and the remedy."""
    with pytest.raises(UnsupportedStore) as caught:
        open_store(url)
    assert words in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert caught.value.code == "unsupported_store"


@pytest.mark.parametrize("prefix", ["Psych_", "a-b", "1a", 'a"; --', "x" * 33])
def test_st_3_a_prefix_is_a_plain_word(prefix: str) -> None:
    """It goes into statements."""
    with pytest.raises(UnsupportedStore):
        open_store("memory://", prefix=prefix)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@host/db",
        "postgresql://me:s3cret:s3cret@host/db",
        "postgresql://me:1/s3cret@host/db",
        "postgresql://me:1#s3cret@host/db",
        "postgresql://me@host/db?password=s3cret&sslmode=require",
        "postgres:s3cret@host/db",
        "postgresql//me:s3cret@host/db",
        "dynamodb://eu-west-1?endpoint_url=http://me:s3cret@host",
    ],
)
def test_sec_2_a_url_is_shown_without_its_password(url: str) -> None:
    """However it is misspelt; the host stays."""
    shown = shown_url(url)
    assert "s3cret" not in shown
    assert "host" in shown


@pytest.mark.parametrize("url", ["sqlite:////var/lib/runs.db", "postgresql://me@host:5432/db"])
def test_sec_2_a_url_without_a_password_is_shown_as_it_is(url: str) -> None:
    """Nothing is hidden that people need to see."""
    assert shown_url(url) == url
