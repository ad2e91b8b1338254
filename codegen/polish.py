"""Corrects what datamodel-code-generator cannot be told to write.

One pass over the syntax tree of a module; the formatting is ruff's.
"""

import ast
import copy
from collections.abc import Mapping

from codegen.signatures import add_signature
from codegen.tree import SchemaError

__all__ = ["NATIVE", "polish"]

NATIVE = {"JsonValue": ("pydantic", "JsonValue"), "Instant": ("psych_schema.base", "Instant")}

_IMPORTS = [  # the formatter removes what a module does not use
    ast.ImportFrom("collections.abc", [ast.alias("Sequence")], 0),
    ast.ImportFrom("typing", [ast.alias("TYPE_CHECKING"), ast.alias("Annotated")], 0),
    ast.ImportFrom("pydantic", [ast.alias("Field")], 0),
    ast.ImportFrom("psych_schema.base", [ast.alias("ANY_SEQUENCE")], 0),
    ast.ImportFrom("psych_schema.base", [ast.alias("Closed"), ast.alias("Open")], 0),
]


def polish(
    code: str,
    declared: Mapping[str, bool],
    models: frozenset[str],
    description: str,
    *,
    sequences: frozenset[tuple[str, str]] = frozenset(),
) -> str:
    """Return `code` as this project wants it.

    `declared` names what the source file defines, and whether it refuses unknown fields; an alias
    of any other name was invented by the generator and is written out where it is used. `models`
    names the objects of all files, `sequences` the fields, each with its object, that stay any
    sequence.
    """
    tree = ast.parse(code)
    tree.body = [_plain_alias(statement) for statement in tree.body]
    invented = _invented(tree.body, declared)
    tree.body = _without_strangers(tree.body, declared)
    for step in (_Inline(invented), _Tuples(sequences), _Models(declared, models), _Aliases()):
        tree = ast.fix_missing_locations(step.visit(tree))
    _check(tree.body, declared)
    tree.body[:0] = [ast.Expr(ast.Constant(description)), *_IMPORTS]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _plain_alias(statement: ast.stmt) -> ast.stmt:
    """`X = TypeAliasType("X", ...)` is how the generator writes a recursive `type X = ...`."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        target, call = statement.targets[0], statement.value
        if _name(call.func) == "TypeAliasType" and isinstance(target, ast.Name):
            return ast.TypeAlias(target, [], call.args[1])
    return statement


def _invented(body: list[ast.stmt], declared: Mapping[str, bool]) -> dict[str, ast.expr]:
    return {
        node.name.id: node.value
        for node in body
        if isinstance(node, ast.TypeAlias) and node.name.id not in declared
    }


def _without_strangers(body: list[ast.stmt], declared: Mapping[str, bool]) -> list[ast.stmt]:
    """Drop undeclared aliases, the file's placeholder among them, each with its docstring."""
    out: list[ast.stmt] = []
    dropped = False
    for node in body:
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if text and (dropped or not out):
            continue
        dropped = isinstance(node, ast.TypeAlias) and node.name.id not in declared
        if isinstance(node, ast.TypeAlias) and node.name.id in NATIVE:
            module, name = NATIVE[node.name.id]
            out.append(ast.ImportFrom(module, [ast.alias(name, name)], 0))
            dropped = True
        elif not dropped:
            out.append(node)
    return out


def _check(body: list[ast.stmt], declared: Mapping[str, bool]) -> None:
    """Each definition came out under its name, and nothing else did."""
    found = {node.name for node in body if isinstance(node, ast.ClassDef)}
    found |= {node.name.id for node in body if isinstance(node, ast.TypeAlias)}
    found |= set(NATIVE) & set(declared)
    for name in sorted(found - set(declared)):
        raise SchemaError(f"the generator invented {name}; give that schema a title and a $def")
    for name in sorted(set(declared) - found):
        raise SchemaError(f"the generator renamed {name}; no field may need an alias of that name")


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _annotated(node: ast.expr) -> ast.Tuple | None:
    """Return the arguments of `Annotated[...]`."""
    if isinstance(node, ast.Subscript) and _name(node.value) == "Annotated":
        return node.slice if isinstance(node.slice, ast.Tuple) else None
    return None


def _bare(node: ast.expr) -> ast.expr:
    parts = _annotated(node)
    return parts.elts[0] if parts else node


def _without(node: ast.expr, dropped: frozenset[str]) -> ast.expr:
    """Drop keywords of Field(), and Annotated with them when nothing is left."""
    parts = _annotated(node)
    if parts is None:
        return node
    kept: list[ast.expr] = []
    for extra in parts.elts[1:]:
        if isinstance(extra, ast.Call):
            extra.keywords = [word for word in extra.keywords if word.arg not in dropped]
            if not extra.keywords and not extra.args:
                continue
        kept.append(extra)
    if not kept:
        return parts.elts[0]
    parts.elts[1:] = kept
    return node


def _lists_too(node: ast.expr) -> ast.expr:
    """Let a tuple of a closed object take a list; the items stay strict."""
    if isinstance(node, ast.BinOp):
        node.left, node.right = _lists_too(node.left), _lists_too(node.right)
        return node
    bare = _bare(node)
    if not (isinstance(bare, ast.Subscript) and _name(bare.value) == "tuple"):
        return node
    return _with(node, [ast.keyword("strict", ast.Constant(False))])


def _with(node: ast.expr, words: list[ast.keyword]) -> ast.expr:
    """Add keywords to the Field() of `node`, which gets one where it has none."""
    parts = _annotated(node)
    if parts is not None and isinstance(parts.elts[-1], ast.Call):
        parts.elts[-1].keywords += words
        return node
    field = ast.Call(ast.Name("Field", ast.Load()), [], words)
    name = ast.Name("Annotated", ast.Load())
    return ast.Subscript(name, ast.Tuple([_bare(node), field], ast.Load()), ast.Load())


class _Inline(ast.NodeTransformer):
    """Writes out the aliases that the generator invented."""

    def __init__(self, invented: Mapping[str, ast.expr]) -> None:
        self._invented = invented

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._invented:
            return node
        value = copy.deepcopy(self._invented[node.id])
        result: ast.expr = self.visit(value)
        return result


class _Tuples(ast.NodeTransformer):
    """`Sequence[X]` becomes `tuple[X, ...]`, so that a frozen model is frozen throughout.

    A field that is to stay a sequence takes any.
    """

    def __init__(self, kept: frozenset[tuple[str, str]]) -> None:
        self._kept = kept
        self._class = ""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self._class = node.name
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        if (self._class, _name(node.target)) in self._kept:
            marked = [node.annotation, ast.Name("ANY_SEQUENCE", ast.Load())]
            name = ast.Name("Annotated", ast.Load())
            node.annotation = ast.Subscript(name, ast.Tuple(marked, ast.Load()), ast.Load())
        else:
            self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if _name(node.value) != "Sequence":
            return node
        items = ast.Tuple([node.slice, ast.Constant(...)], ast.Load())
        return ast.Subscript(ast.Name("tuple", ast.Load()), items, ast.Load())


class _Models(ast.NodeTransformer):
    """Gives each class its base, and each default the type of its field."""

    def __init__(self, declared: Mapping[str, bool], models: frozenset[str]) -> None:
        self._declared = declared
        self._models = models
        self._closed = False

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self._closed = self._declared.get(node.name, False)
        node.bases = [ast.Name("Closed" if self._closed else "Open", ast.Load())]
        body = [item for item in node.body if not _is_config(item)]
        node.body = body or [ast.Pass()]
        self.generic_visit(node)
        if self._closed:
            add_signature(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        bare, value = _bare(node.annotation), node.value
        if isinstance(value, ast.List):
            node.value = ast.Tuple(value.elts, ast.Load())
        elif isinstance(value, ast.Dict) and isinstance(bare, ast.Name) and bare.id in self._models:
            node.value = ast.Call(bare, [], _keywords(value))
        elif isinstance(value, ast.Constant) and type(value.value) is int and _is_float(bare):
            node.value = ast.Constant(float(value.value))
        node.annotation = _without(node.annotation, frozenset({"validate_default", "title"}))
        if self._closed:
            node.annotation = _lists_too(node.annotation)
        return node


def _is_config(item: ast.stmt) -> bool:
    return isinstance(item, ast.Assign) and _name(item.targets[0]) == "model_config"


def _is_float(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_float(_bare(node.left)) or _is_float(_bare(node.right))
    return _name(node) == "float"


def _keywords(value: ast.Dict) -> list[ast.keyword]:
    return [
        ast.keyword(str(key.value), item)
        for key, item in zip(value.keys, value.values, strict=True)
        if isinstance(key, ast.Constant)
    ]


class _Aliases(ast.NodeTransformer):
    """Makes each named scalar strict by itself, and a union of one branch no union.

    A named scalar is validated as the outermost schema says, not as the model that names it: a
    TypeAdapter without configuration would take `"1"` for an integer.
    """

    def visit_TypeAlias(self, node: ast.TypeAlias) -> ast.TypeAlias:
        node.value = _without(node.value, frozenset({"title"}))
        if not isinstance(_bare(node.value), ast.BinOp):
            node.value = _without(node.value, frozenset({"discriminator"}))
        words = _STRICT.get(_name(_bare(node.value)), ())
        if words:
            node.value = _with(node.value, [ast.keyword(w, ast.Constant(v)) for w, v in words])
        return node


_STRICT = {
    "bool": (("strict", True),),
    "float": (("strict", True), ("allow_inf_nan", False)),
    "int": (("strict", True),),
    "str": (("strict", True),),
}
