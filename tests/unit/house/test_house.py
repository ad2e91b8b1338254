"""The house rules hold in the tree, and each of them finds a planted breach."""

import importlib
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from psych_runtime import errors
from tests.unit.house import rules
from tests.unit.house.source import ROOT, Breach, Module, modules, read

Rule = Callable[[Module], Iterable[Breach]]

SOURCE = ("src",)
SOURCE_AND_GENERATOR = ("src", "codegen")


def mirrors(module: Module) -> Iterable[Breach]:
    """Judge against the generated models of the tree."""
    return rules.document_mirrors(module, MODELS)


MODELS = rules.model_fields(modules("generated"))

RULES: list[tuple[Rule, tuple[str, ...]]] = [
    (rules.module_length, SOURCE_AND_GENERATOR),
    (rules.function_length, SOURCE_AND_GENERATOR),
    (rules.document_bases, SOURCE),
    (mirrors, SOURCE),
    (rules.clock_ids_randomness, SOURCE_AND_GENERATOR),
    (rules.dialect_comparisons, SOURCE),
    (rules.listeners, SOURCE),
    (rules.sql_toolkit, SOURCE),
    (rules.function_imports, SOURCE_AND_GENERATOR),
    (rules.exports, SOURCE),
    (rules.data_is_not_code, SOURCE),
]


@pytest.fixture(scope="module")
def reading() -> Callable[[Path], Module]:
    """What reads each file once for all rules."""
    return cache(read)


@pytest.mark.parametrize(("rule", "folders"), RULES, ids=lambda part: getattr(part, "__name__", ""))
def test_house_rule_holds(
    rule: Rule, folders: tuple[str, ...], reading: Callable[[Path], Module]
) -> None:
    """No module of the tree breaks it."""
    tree = modules(*folders, reading=reading)
    breaches = [breach for module in tree for breach in rule(module)]
    assert not breaches, "\n" + "\n".join(map(str, breaches))


def test_house_every_error_has_its_code() -> None:
    """Programs go by the code; two errors never share one."""
    modules = sorted((ROOT / "src/psych_runtime/errors").glob("_[a-z]*.py"))
    breaches = [breach for path in modules for breach in rules.error_codes(read(path))]
    assert not breaches, "\n" + "\n".join(map(str, breaches))
    codes = Counter(getattr(errors, name).code for name in errors.__all__)
    assert [code for code, count in codes.items() if count > 1] == []


def test_house_every_public_name_is_exported_and_documented() -> None:
    """Each name of `psych_runtime.__all__` is there, and says what it is for."""
    package = importlib.import_module("psych_runtime")
    public = {name: getattr(package, name) for name in getattr(package, "__all__", ())}
    bare = rules.undocumented(public)
    assert not bare, f"give these public names a docstring: {bare}"


LONG_MODULE = "x = 1\n" * 501
LONG_FUNCTION = "def f():\n" + "    x = 1\n" * 60

PLANTED: list[tuple[Rule, str, str]] = [
    (rules.module_length, LONG_MODULE, "501 lines, at most 500"),
    (rules.function_length, LONG_FUNCTION, "f has 61 lines, at most 60"),
    (
        rules.function_length,
        "class C:\n    async " + LONG_FUNCTION.replace("\n", "\n    "),
        "f has",
    ),
    (rules.document_bases, "from pydantic import BaseModel\nclass A(BaseModel): ...", "class A"),
    (rules.document_bases, "import pydantic as p\nclass A(p.RootModel[int]): ...", "class A"),
    (rules.document_bases, "from typing import TypedDict\nclass A(TypedDict): ...", "class A"),
    (rules.document_bases, "import typing\nA = typing.TypedDict('A', {'x': int})", "TypedDict"),
    (rules.document_bases, "import pydantic\nA = pydantic.create_model('A')", "create_model"),
    (rules.document_bases, "from psych_schema.base import Open\nclass A(Open): ...", "class A"),
    (
        rules.document_bases,
        "from pydantic.dataclasses import dataclass\n@dataclass(frozen=True)\nclass A: ...",
        "class A",
    ),
    (rules.clock_ids_randomness, "import time\nx = time.monotonic()", "time.monotonic"),
    (rules.clock_ids_randomness, "from time import time as t", "time.time"),
    (rules.clock_ids_randomness, "from datetime import datetime\ndatetime.now()", "datetime.now"),
    (rules.clock_ids_randomness, "import datetime as d\nf = d.datetime.utcnow", "utcnow"),
    (rules.clock_ids_randomness, "import uuid\nx = uuid.uuid4().hex", "uuid.uuid4"),
    (rules.clock_ids_randomness, "import os\nx = os.urandom(8)", "os.urandom"),
    (rules.clock_ids_randomness, "import random", "random imported"),
    (rules.clock_ids_randomness, "from secrets import token_hex", "secrets.token_hex imported"),
    (rules.dialect_comparisons, "if dialect == 'mysql': pass", "asks for the dialect"),
    (rules.dialect_comparisons, "x = 1 if e.dialect.name in ('a', 'b') else 2", "asks for"),
    (rules.dialect_comparisons, "match url.drivername:\n    case 'x': pass", "asks for"),
    (rules.listeners, "import asyncio\nasyncio.start_server(f, 'x')", "start_server() listens"),
    (rules.listeners, "from asyncio import start_server as s\ns(f, 'x')", "start_server() listens"),
    (rules.listeners, "sock.listen(5)", "listen() listens"),
    (rules.listeners, "from http.server import HTTPServer", "http.server.HTTPServer imported"),
    (rules.sql_toolkit, "from sqlalchemy import select", "sqlalchemy.select imported"),
    (rules.sql_toolkit, "from psych_schema.tables import RUN", "psych_schema.tables.RUN imported"),
    (rules.function_imports, "def f():\n    import json", "json imported in a function"),
    (
        rules.function_imports,
        "async def f():\n    from psych_runtime.core import fold",
        "psych_runtime.core.fold imported in a function",
    ),
    (rules.exports, "def f(): ...", "has no literal __all__"),
    (rules.exports, "__all__ = ['f']\ndef f(): ...\nclass C: ...", "C is not in __all__"),
    (rules.data_is_not_code, "import pickle", "pickle imported"),
    (rules.data_is_not_code, "from marshal import loads", "marshal.loads imported"),
    (rules.data_is_not_code, "eval('1')", "eval() called"),
    (rules.data_is_not_code, "exec(text)", "exec() called"),
    (rules.data_is_not_code, "import yaml\nyaml.load(text)", "yaml.load() called"),
    (
        rules.data_is_not_code,
        "import importlib\nimportlib.import_module(record.name)",
        "importlib.import_module() called",
    ),
    (rules.error_codes, "class PsychError(Exception):\n    pass", "PsychError has no code"),
    (
        rules.error_codes,
        "class A(PsychError):\n    code = 'a'\nclass B(A):\n    code: str = 'a'",
        "B has the code of A",
    ),
    (rules.error_codes, "class A(PsychError):\n    code = 'Not Snake'", "is not snake_case"),
]


@pytest.mark.parametrize(("rule", "source", "message"), PLANTED)
def test_house_rule_finds_a_planted_breach(rule: Rule, source: str, message: str) -> None:
    """Each rule is red where it should be, and says where."""
    breaches = list(rule(Module("src/psych_runtime/planted.py", source)))
    assert len(breaches) >= 1
    assert any(message in breach.message for breach in breaches)
    assert str(breaches[0]).startswith("src/psych_runtime/planted.py:")


LEGAL: list[tuple[Rule, str, str]] = [
    (rules.module_length, "planted.py", LONG_MODULE.replace("x = 1\n", "", 1)),
    (rules.function_length, "planted.py", LONG_FUNCTION.replace("    x = 1\n", "", 1)),
    (rules.document_bases, "planted.py", "from enum import Enum\nclass A(Enum): ..."),
    (rules.clock_ids_randomness, "_system.py", "import time, uuid, random\ntime.time()"),
    (rules.clock_ids_randomness, "planted.py", "from uuid import UUID\nUUID(text)"),
    (rules.clock_ids_randomness, "planted.py", "system.now()\nfrom datetime import datetime, UTC"),
    (rules.clock_ids_randomness, "planted.py", "from psych_runtime.secrets import resolve"),
    (rules.dialect_comparisons, "store/sqldialect.py", "dialect == 'mysql'"),
    (rules.dialect_comparisons, "planted.py", "scheme == 'mysql'\ndialect.upsert(x)"),
    (rules.listeners, "testing/server.py", "import asyncio\nasyncio.start_server(f, 'x')"),
    (rules.sql_toolkit, "store/sqlite/statements.py", "from sqlalchemy import select"),
    (rules.sql_toolkit, "store/sql_read.py", "from psych_schema.tables import RUN"),
    (rules.sql_toolkit, "planted.py", "from psych_schema.transitions import TABLE"),
    (rules.function_imports, "planted.py", "def f():\n    import yaml"),
    (rules.function_imports, "__init__.py", "def f():\n    from psych_runtime.api import publish"),
    (rules.function_imports, "planted.py", "if TYPE_CHECKING:\n    import json"),
    (rules.exports, "planted.py", "__all__ = ['f']\ndef f(): ...\ndef _g(): ..."),
    (rules.exports, "planted.py", "_private = 1"),
    (rules.data_is_not_code, "planted.py", "import re, yaml\nre.compile(x)\nyaml.safe_load(x)"),
    (rules.error_codes, "errors.py", "class A(PsychError):\n    code = 'a'\nclass Other: ..."),
]


@pytest.mark.parametrize(("rule", "path", "source"), LEGAL)
def test_house_rule_lets_the_neighbour_pass(rule: Rule, path: str, source: str) -> None:
    """What only looks like a breach is none."""
    assert list(rule(Module(f"src/psych_runtime/{path}", source))) == []


GENERATED = Module(
    "generated/psych_schema/receipt.py",
    "class Base(Model):\n    run_id: str\nclass Receipt(Base):\n    seq: int\n"
    "class Named(Model):\n    name: str\n",
)


@pytest.mark.parametrize(
    ("source", "breaches"),
    [
        ("class Mine(NamedTuple):\n    seq: int\n    run_id: str", 1),
        ("@dataclass\nclass Mine:\n    run_id: str\n    seq: int", 1),
        ("@dataclass\nclass Mine:\n    run_id: str\n    seq: int\n    more: int", 0),
        ("class Mine(NamedTuple):\n    name: str", 0),
        ("class Mine:\n    def seq(self): ...", 0),
    ],
)
def test_house_a_mirror_of_a_generated_model_is_found(source: str, breaches: int) -> None:
    """The same fields, inherited ones included; one field alone is a coincidence."""
    models = rules.model_fields([GENERATED])
    module = Module("src/psych_runtime/planted.py", source)
    assert len(list(rules.document_mirrors(module, models))) == breaches


def test_house_a_public_name_without_a_docstring_is_found() -> None:
    """A docstring of the base, or one that a dataclass writes itself, does not count."""

    class Documented:
        """Says what it is for."""

    class Inherits(Documented):
        pass

    def bare() -> None:
        return None

    assert rules.undocumented(
        {"Documented": Documented, "Inherits": Inherits, "bare": bare, "LIMIT": 3}
    ) == ["Inherits", "bare"]


def test_house_ruff_refuses_an_unsorted_all() -> None:
    """The order of `__all__` is ruff's to check and to repair."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--stdin-filename", "src/psych_runtime/x.py", "-"],
        input='"""Planted."""\n\n__all__ = ["b", "a"]\na = b = 1\n',
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "RUF022" in done.stdout
