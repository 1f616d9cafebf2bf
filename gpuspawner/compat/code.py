"""The names that functions and classes use, read from their compiled code."""

import dis
import inspect
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from functools import lru_cache
from types import CodeType, FunctionType, NoneType

_ABSENT = object()
_DATA = frozenset({NoneType, bool, int, float, str, bytes, tuple, list, dict, set, frozenset})


def names_used(owner: object) -> set[str]:
    """The global names and attributes that a function or the methods of a class use."""
    return {name for code in _codes(owner) for name in code.co_names}


def mentions(owner: object, name: str) -> bool:
    """Whether a name or text is in a function, or in the methods of a class.

    Functions of the same module that it calls count too.
    """
    can_be_kept = isinstance(owner, FunctionType | type)
    return _mentioned(owner, name) if can_be_kept else _mentioned.__wrapped__(owner, name)


@lru_cache(1024)
def _mentioned(owner: object, name: str) -> bool:
    seen: list[object] = []
    members = vars(owner).values() if isinstance(owner, type) else [owner]
    left = [getattr(it, "fget", it) for it in members]
    while left:
        seen.append(member := left.pop())
        codes = list(_codes(member))
        if any(name in (*code.co_names, *_constants(code)) for code in codes):
            return True
        module = getattr(_function(member), "__globals__", {})
        used = [module.get(it) for code in codes for it in code.co_names]
        called = [it for it in used if getattr(it, "__globals__", None) is module]
        left += [it for it in called if it not in seen]
    return False


def _constants(code: CodeType) -> Iterator[object]:
    """Constants, and those in tuples: names of arguments, and a dictionary's keys, are in one."""
    for it in code.co_consts:
        yield from it if isinstance(it, tuple) else (it,)


def uses_only(
    function: object, is_harmless: Callable[[str], object], packages: Container[str]
) -> bool:
    """Whether a function looks at nothing but its arguments, constants, and harmless names.

    Names are those of attributes and builtins; what its module imports from *packages* is harmless
    too, and its other functions are read as well. Of anything that isn't a plain function, nobody
    can tell.
    """
    read: set[object] = set()
    left = [function]
    while left:
        member = left.pop()
        if not isinstance(member, FunctionType) or hasattr(member, "__wrapped__"):
            return False
        if not {"__class__"}.issuperset(member.__code__.co_freevars):  # for ``super()``
            return False
        read.add(member)
        for step in _names(member):
            value = member.__globals__.get(step.argval, _ABSENT)
            if step.opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
                value = _ABSENT
            if isinstance(value, FunctionType) and value.__globals__ is member.__globals__:
                left += [value] if value not in read else []
            elif not _is_allowed(step, value, is_harmless, packages):
                return False
    return True


def stays_within(function: object, packages: Container[str]) -> bool:
    """Whether a callable is in *packages*, or uses only their functions and its own module's."""
    found = _function(function)
    if str(getattr(found, "__module__", None)).partition(".")[0] in packages:
        return True
    return uses_only(getattr(found, "__func__", found), lambda _: True, packages)


def _names(function: FunctionType) -> Iterator[dis.Instruction]:
    for code in _within(function.__code__):
        yield from (it for it in dis.get_instructions(code) if it.opcode in dis.hasname)


def _is_allowed(
    step: dis.Instruction,
    value: object,
    is_harmless: Callable[[str], object],
    packages: Container[str],
) -> bool:
    if step.opname == "IMPORT_NAME":
        return step.argval.partition(".")[0] in packages
    if value is _ABSENT:
        return step.opname == "IMPORT_FROM" or bool(is_harmless(step.argval))
    module = str(getattr(value, "__module__", None) or getattr(value, "__name__", None))
    return type(value) in _DATA or module.partition(".")[0] in packages


def sets_attribute(owner: object, name: str) -> bool:
    """Whether a function or a method of a class sets this attribute on any object."""
    return any(
        step.opname == "STORE_ATTR" and step.argval == name
        for code in _codes(owner)
        if name in code.co_names  # most don't; to list the steps of all takes long
        for step in dis.get_instructions(code)
    )


def where(function: object) -> str:
    """The line and the file of a function; empty if it isn't written in Python."""
    code = _code(function)
    return f"line {code.co_firstlineno} of {code.co_filename}" if code else ""


def _codes(owner: object) -> Iterator[CodeType]:
    for member in vars(owner).values() if isinstance(owner, type) else [owner]:
        for function in (member, *_wrapped(member)):
            if (code := _code(function)) is not None:
                yield from _within(code)


def _wrapped(member: object) -> Iterator[object]:
    """The functions that a decorator without ``functools.wraps`` has put inside another one."""
    for cell in getattr(member, "__closure__", None) or ():
        with suppress(ValueError):  # an empty cell
            if inspect.isfunction(cell.cell_contents):
                yield cell.cell_contents


def _code(member: object) -> CodeType | None:
    code = getattr(_function(member), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _function(member: object) -> object:
    """The function behind a callable; None if there is none that is written in Python."""
    member = member.__func__ if isinstance(member, classmethod) else member
    member = getattr(member, "func", member)  # of a trait's default, or of a partial
    if not callable(member):
        return None
    with suppress(Exception):  # an object that answers whatever it is asked, or wraps itself
        member = inspect.unwrap(member)
    own = getattr(member, "__call__", None)  # noqa: B004, of an object with this method
    return member if hasattr(member, "__code__") else own


def _within(code: CodeType) -> Iterator[CodeType]:
    """The code of one function, and of those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _within(constant)
