"""The house rules (style.md), each a pure function from a module to its breaches."""

import ast
from collections.abc import Collection, Iterator, Mapping

from tests.unit.house.source import Breach, Module

__all__ = [
    "ALLOWED_IMPORTS",
    "LAZY_LIBRARIES",
    "LAZY_MODULES",
    "MAX_FUNCTION_LINES",
    "MAX_MODULE_LINES",
    "clock_ids_randomness",
    "data_is_not_code",
    "dialect_comparisons",
    "document_bases",
    "document_mirrors",
    "error_codes",
    "exports",
    "function_imports",
    "function_length",
    "listeners",
    "model_fields",
    "module_length",
    "sql_toolkit",
    "undocumented",
]

MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 60

LAZY_LIBRARIES: Mapping[str, str] = {
    "aioboto3": "an extra, and half a second",
    "aiobotocore": "comes with aioboto3",
    "aiomysql": "an extra",
    "asyncpg": "an extra",
    "botocore": "comes with aioboto3",
    "genai_prices": "an extra, and a large table",
    "httpx2": "a browser and a process without a remote model never load it",
    "jsonschema": "loaded with the first tool",
    "mcp": "an extra, and about a second",
    "opentelemetry": "an extra",
    "pwd": "missing in a browser",
    "grp": "missing in a browser",
    "pyseccomp": "an extra",
    "resource": "missing in a browser",
    "rich": "loaded by the command that prints",
    "sqlalchemy": "loaded when a SQL store opens",
    "sqlite3": "missing in some builds of Python; loaded when a SQLite store opens",
    "typer": "loaded by the command line",
    "yaml": "loaded with the first Spec in YAML",
}
"""What a function may import: the library, and why importing it on top would cost too much."""

LAZY_MODULES: Mapping[str, str] = {
    "src/psych_runtime/__init__.py": "the public names load on first use",
    "src/psych_runtime/_deliveries.py": "jsonschema costs a fifth of a second; few need it",
    "src/psych_runtime/api.py": "jsonschema costs a fifth of a second, and only publishing asks it",
    "src/psych_runtime/cli/app.py": "a command loads what it needs, not what the others need",
    "src/psych_runtime/cli/ddl.py": "the DynamoDB store is only for those who have it",
    "src/psych_runtime/cli/hash.py": "views load every record; a bare hash needs none",
    "src/psych_runtime/runtime/runtime.py": "only Specs with HTTP tools load the HTTP client",
    "src/psych_runtime/store/open.py": "a browser's Python has no sqlite3",
}
"""Which files may import modules of ours in a function, and why."""

ALLOWED_IMPORTS: Mapping[str, str] = {
    "src/psych_runtime/__init__.py": "its names come from its own literal table",
}
"""Which files may call importlib.import_module, and why."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def module_length(module: Module) -> Iterator[Breach]:
    """A module ends before anybody scrolls for it."""
    lines = len(module.text.splitlines())
    if lines > MAX_MODULE_LINES:
        yield module.breach(
            lines,
            f"{lines} lines, at most {MAX_MODULE_LINES}: split it by job, "
            "private helpers into a module of their own",
        )


def function_length(module: Module) -> Iterator[Breach]:
    """A function fits on a screen."""
    for node in module.nodes:
        if isinstance(node, Function) and node.end_lineno is not None:
            lines = node.end_lineno - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                yield module.breach(
                    node,
                    f"{node.name} has {lines} lines, at most {MAX_FUNCTION_LINES}: "
                    "leave the ifs, move the work of a branch into a function",
                )


_DOCUMENT_BASES = frozenset(
    {
        "pydantic.BaseModel",
        "pydantic.RootModel",
        "pydantic.main.BaseModel",
        "pydantic.root_model.RootModel",
        "psych_schema.base.Closed",
        "psych_schema.base.Open",
        "typing.TypedDict",
        "typing_extensions.TypedDict",
    }
)
_DOCUMENT_MAKERS = _DOCUMENT_BASES | {
    "pydantic.create_model",
    "pydantic.dataclasses.dataclass",
    "dataclasses.make_dataclass",
}


def document_bases(module: Module) -> Iterator[Breach]:
    """No document is declared by hand: schema/ declares it, the generated model is used."""
    remedy = "declare it in schema/, run `make generate`, and use the generated model"
    for node in module.nodes:
        if isinstance(node, ast.ClassDef):
            for base in [*node.bases, *node.decorator_list]:
                target = base.value if isinstance(base, ast.Subscript) else base
                target = target.func if isinstance(target, ast.Call) else target
                name = module.full_name(target)
                if name in _DOCUMENT_MAKERS:
                    yield module.breach(node, f"class {node.name} is a {name}: {remedy}")
    for call, name in module.calls():
        if name in _DOCUMENT_MAKERS and name != "pydantic.dataclasses.dataclass":
            yield module.breach(call, f"{name} makes a document: {remedy}")


def _annotated(node: ast.ClassDef) -> frozenset[str]:
    """Return the fields that a class body declares, without class variables."""
    return frozenset(
        item.target.id
        for item in node.body
        if isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and "ClassVar" not in ast.unparse(item.annotation)
    )


def model_fields(generated: Collection[Module]) -> dict[frozenset[str], str]:
    """Return the fields of each generated model of two fields or more, with its name.

    A class without bases or fields of its own declares no document.
    """
    classes = {
        node.name: node
        for module in generated
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    }

    def fields(node: ast.ClassDef) -> frozenset[str]:
        inherited = (
            fields(classes[base.id])
            for base in node.bases
            if isinstance(base, ast.Name) and base.id in classes and base.id != node.name
        )
        return _annotated(node).union(*inherited)

    found = {fields(node): name for name, node in classes.items() if node.bases}
    return {names: name for names, name in found.items() if len(names) > 1}


def document_mirrors(module: Module, models: Mapping[frozenset[str], str]) -> Iterator[Breach]:
    """No dataclass or NamedTuple repeats a generated model."""
    for node in module.nodes:
        if isinstance(node, ast.ClassDef) and _annotated(node) in models:
            model = models[_annotated(node)]
            yield module.breach(
                node,
                f"class {node.name} has exactly the fields of psych_schema's {model}: "
                f"use {model} itself",
            )


_CLOCK = frozenset(
    {
        "datetime.date.today",
        "datetime.datetime.now",
        "datetime.datetime.today",
        "datetime.datetime.utcnow",
        "os.getrandom",
        "os.urandom",
        "time.ctime",
        "time.gmtime",
        "time.localtime",
        "time.monotonic",
        "time.monotonic_ns",
        "time.perf_counter",
        "time.perf_counter_ns",
        "time.process_time",
        "time.process_time_ns",
        "time.thread_time",
        "time.thread_time_ns",
        "time.time",
        "time.time_ns",
        "uuid.getnode",
        "uuid.uuid1",
        "uuid.uuid4",
        "uuid.uuid6",
        "uuid.uuid7",
        "uuid.uuid8",
    }
)
_RANDOM_MODULES = frozenset({"numpy.random", "random", "secrets"})


def clock_ids_randomness(module: Module) -> Iterator[Breach]:
    """Clock, ids and randomness are injected, so that a simulation owns them.

    The simulation itself draws from seeded generators.
    """
    if module.path == "src/psych_runtime/_system.py":
        return
    remedy = "take them from the System you are given (psych_runtime._system)"
    for node, name in module.references():
        if name in _CLOCK:
            yield module.breach(node, f"{name} read here: {remedy}")
    seeded = module.within("testing/simulation/")
    for statement, name in module.imports:
        if seeded and name == "random.Random":
            continue
        if name in _CLOCK or _is_of(name, _RANDOM_MODULES):
            yield module.breach(statement, f"{name} imported here: {remedy}")


def dialect_comparisons(module: Module) -> Iterator[Breach]:
    """A dialect is an object chosen once; nobody else asks which one it is."""
    if "dialect" in module.path or module.within("testing/"):
        return  # a store's own dialect, or that of a model provider
    for node in module.nodes:
        if isinstance(node, ast.Compare):
            asked: list[ast.expr] = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            asked = [node.subject]
        else:
            continue
        names = {
            part.id if isinstance(part, ast.Name) else part.attr
            for side in asked
            for part in ast.walk(side)
            if isinstance(part, ast.Name | ast.Attribute)
        }
        if any("dialect" in name.lower() or name == "drivername" for name in names):
            yield module.breach(
                node,
                "asks for the dialect: give the dialect object in psych_runtime/store a method "
                "or a value for what differs, and call that",
            )


_LISTENERS = frozenset(
    {"asyncio.start_server", "asyncio.start_unix_server", "socket.create_server"}
)
_LISTENING_METHODS = frozenset({"create_server", "create_unix_server", "listen", "start_server"})
_SERVER_LIBRARIES = frozenset(
    {
        "aiohttp",
        "fastapi",
        "flask",
        "http.server",
        "socketserver",
        "starlette",
        "uvicorn",
        "wsgiref",
    }
)


def listeners(module: Module) -> Iterator[Breach]:
    """The library has no server; only the public test doubles listen (REF-1)."""
    if module.within("testing/"):
        return
    remedy = (
        "the consumer listens, not the library; a double for tests goes to psych_runtime.testing"
    )
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _LISTENING_METHODS:
                yield module.breach(node, f"{node.func.attr}() listens: {remedy}")
        elif isinstance(node, ast.Call) and module.full_name(node.func) in _LISTENERS:
            yield module.breach(node, f"{module.full_name(node.func)}() listens: {remedy}")
    for statement, name in module.imports:
        if _is_of(name, _SERVER_LIBRARIES):
            yield module.breach(statement, f"{name} imported: {remedy}")


def sql_toolkit(module: Module) -> Iterator[Breach]:
    """SQLAlchemy and the generated tables stay in the SQL stores."""
    if module.within("store/sql"):
        return
    for statement, name in module.imports:
        if _is_of(name, {"sqlalchemy", "psych_schema.tables"}):
            yield module.breach(
                statement,
                f"{name} imported: only psych_runtime/store/sql* may; "
                "others reach a database through the store port",
            )


def error_codes(module: Module) -> Iterator[Breach]:
    """Every error has a stable code of its own, which programs go by."""
    known = {"PsychError"}
    codes: dict[str, str] = {}
    for node in module.tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
        if node.name not in known and not bases & known:
            continue
        known.add(node.name)
        code = _code(node)
        if code is None:
            yield module.breach(node, f'{node.name} has no code: add `code = "snake_case"`')
        elif code in codes:
            yield module.breach(node, f"{node.name} has the code of {codes[code]}: give it its own")
        elif not code.isidentifier() or not code.islower():
            yield module.breach(node, f"{node.name}'s code {code!r} is not snake_case")
        else:
            codes[code] = node.name


def _code(node: ast.ClassDef) -> str | None:
    for item in node.body:
        targets = item.targets if isinstance(item, ast.Assign) else []
        if isinstance(item, ast.AnnAssign):
            targets = [item.target]
        value = item.value if isinstance(item, ast.Assign | ast.AnnAssign) else None
        named = any(isinstance(target, ast.Name) and target.id == "code" for target in targets)
        if named and isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
    return None


def function_imports(module: Module) -> Iterator[Breach]:
    """Imports stand on top: one in a function hides a cycle, unless it saves a listed cost."""
    inside = {
        id(part)
        for node in module.nodes
        if isinstance(node, Function | ast.Lambda)
        for part in ast.walk(node)
    }
    for statement, name in module.imports:
        if id(statement) not in inside or _is_of(name, LAZY_LIBRARIES):
            continue
        ours = name.startswith(("psych_runtime", "psych_schema"))
        if not (ours and module.path in LAZY_MODULES):
            yield module.breach(
                statement,
                f"{name} imported in a function: move it to the top and break the cycle, or add "
                "it to LAZY_LIBRARIES or LAZY_MODULES in tests/unit/house/rules.py with the reason",
            )


def exports(module: Module) -> Iterator[Breach]:
    """A module says what it offers: `__all__` has every public function and class (ruff sorts)."""
    offered = _offered(module.tree)
    defined = {
        node.name: node
        for node in module.tree.body
        if isinstance(node, Function | ast.ClassDef)
        and not node.name.startswith("_")
        and not any(_registers(decorator) for decorator in node.decorator_list)
    }
    if offered is None:
        if defined:
            yield module.breach(1, f"has no literal __all__: add one with {sorted(defined)}")
        return
    for name, node in defined.items():
        if name not in offered:
            yield module.breach(node, f"{name} is not in __all__: add it, or call it _{name}")


def _registers(decorator: ast.expr) -> bool:
    """Tell whether a decorator puts the function in a list, where others find it by its name."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id == "check"


def _offered(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        named = any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if named and isinstance(value, ast.List | ast.Tuple):
            return [str(part.value) for part in value.elts if isinstance(part, ast.Constant)]
    return None


_UNSAFE_MODULES = frozenset(
    {"cloudpickle", "dill", "jsonpickle", "marshal", "pickle", "runpy", "shelve"}
)
_UNSAFE_CALLS = frozenset(
    {
        "__import__",
        "compile",
        "eval",
        "exec",
        "importlib.__import__",
        "yaml.full_load",
        "yaml.load",
        "yaml.unsafe_load",
    }
)


def data_is_not_code(module: Module) -> Iterator[Breach]:
    """Records are data: nothing in them is run, unpickled or imported by name (SEC-3)."""
    for statement, name in module.imports:
        if _is_of(name, _UNSAFE_MODULES):
            yield module.breach(statement, f"{name} imported: keep data as JSON (SEC-3)")
    for call, name in module.calls():
        if name in _UNSAFE_CALLS:
            yield module.breach(call, f"{name}() called: data never becomes code (SEC-3)")
        elif name == "importlib.import_module" and module.path not in ALLOWED_IMPORTS:
            yield module.breach(
                call, "importlib.import_module() called: import by statement, never by name (SEC-3)"
            )


def undocumented(namespace: Mapping[str, object]) -> list[str]:
    """Return the classes and functions without a docstring of their own."""
    found = []
    for name, value in namespace.items():
        text = vars(value).get("__doc__") if isinstance(value, type) else value.__doc__
        written_by_machine = isinstance(text, str) and text.startswith(f"{name}(")
        if callable(value) and (not text or written_by_machine):
            found.append(name)
    return found


def _is_of(name: str, packages: Collection[str]) -> bool:
    """Tell whether the full `name` is one of `packages`, or in one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)
