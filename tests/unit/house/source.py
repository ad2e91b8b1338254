"""What the house rules read: a module as text and tree, and its names resolved to full ones."""

import ast
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "Breach", "Module", "modules", "read"]

ROOT = Path(__file__).parents[3]


class Breach(NamedTuple):
    """One place where a rule is broken, and what to do about it."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        """Give it as editors read it."""
        return f"{self.path}:{self.line}: {self.message}"


class Module:
    """One source file; `path` is relative to the repository and has slashes."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text, path)

    def breach(self, node: ast.AST | int, message: str) -> Breach:
        """Say that `node`, or a line, breaks a rule."""
        line = node if isinstance(node, int) else getattr(node, "lineno", 1)
        return Breach(self.path, line, message)

    def within(self, *prefixes: str) -> bool:
        """Tell whether the path begins with one of `prefixes`, under src/psych_runtime/."""
        return self.path.startswith(tuple(f"src/psych_runtime/{prefix}" for prefix in prefixes))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node, once."""
        return list(ast.walk(self.tree))

    @cached_property
    def imports(self) -> list[tuple[ast.stmt, str]]:
        """Every import statement with the full name of each thing it imports."""
        found: list[tuple[ast.stmt, str]] = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [(node, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found += [(node, f"{node.module}.{alias.name}") for alias in node.names]
        return found

    @cached_property
    def _bound(self) -> dict[str, str]:
        """Each imported local name with the full name that it stands for."""
        bound: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.split(".")[0]
                    bound[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        return bound

    def full_name(self, node: ast.AST) -> str | None:
        """Resolve `a.b.c` whose `a` was imported; None for anything else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._bound:
            return None
        return ".".join([self._bound[node.id], *reversed(parts)])

    def references(self) -> Iterator[tuple[ast.AST, str]]:
        """Give each use of something imported, under its full name."""
        for node in self.nodes:
            if isinstance(node, ast.Attribute | ast.Name):
                name = self.full_name(node)
                if name is not None:
                    yield node, name

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        """Give each call of a builtin or of something imported, under its full name."""
        for node in self.nodes:
            if isinstance(node, ast.Call):
                name = self.full_name(node.func)
                if name is None and isinstance(node.func, ast.Name):
                    name = node.func.id
                if name is not None:
                    yield node, name


def read(path: Path) -> Module:
    """Read one file of the repository."""
    return Module(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


def modules(*folders: str, reading: Callable[[Path], Module] = read) -> list[Module]:
    """Read every Python file under `folders` of the repository, in order."""
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return [reading(path) for path in sorted(paths)]
