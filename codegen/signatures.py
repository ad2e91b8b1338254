"""Writes what a Spec's constructor takes: a list where the field holds a tuple.

A field that is a tuple accepts a list at run time; a type checker reads the field's own type. So
a closed class with such a field gets a constructor that only type checkers see.
"""

import ast
import copy

__all__ = ["add_signature"]


def add_signature(node: ast.ClassDef) -> None:
    """Append the constructor to a class that has a tuple among its fields."""
    fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
    if not any(_holds_tuple(field.annotation) for field in fields):
        return
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg("self")],
        kwonlyargs=[ast.arg(_name(field), _accepted(field.annotation)) for field in fields],
        kw_defaults=[ast.Constant(...) if field.value else None for field in fields],
        defaults=[],
    )
    constructor = ast.FunctionDef(
        name="__init__",
        args=arguments,
        body=[ast.Expr(ast.Constant(...))],
        decorator_list=[],
        returns=ast.Constant(None),
        type_params=[],
    )
    node.body.append(ast.If(ast.Name("TYPE_CHECKING", ast.Load()), [constructor], []))


def _name(field: ast.AnnAssign) -> str:
    return field.target.id if isinstance(field.target, ast.Name) else ""


def _holds_tuple(annotation: ast.expr) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "tuple" for part in ast.walk(annotation))


def _accepted(annotation: ast.expr) -> ast.expr:
    """Return the annotation with each `tuple[X, ...]` as `Sequence[X]`."""
    accepted: ast.expr = _Sequences().visit(copy.deepcopy(annotation))
    return accepted


class _Sequences(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        called = node.value.id if isinstance(node.value, ast.Name) else ""
        if called == "Annotated" and isinstance(node.slice, ast.Tuple):
            return node.slice.elts[0]
        if called == "tuple" and isinstance(node.slice, ast.Tuple):
            return ast.Subscript(ast.Name("Sequence", ast.Load()), node.slice.elts[0], ast.Load())
        return node
