"""What makes a sound test fail on a slow machine, found in the syntax tree of a test file.

A wait that is meant to run out says so at its call: `# runs out: the receiver is stalled`.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

#: Waits for other processes, threads and servers end after this time or later, as in patience.py.
LEAST_SECONDS = 120
#: A loop may wait for an event this long between two rounds.
_MOST_PAUSE_SECONDS = 5
#: A mark may only exceed the limit that pytest has for all tests, in seconds.
LEAST_MARK_SECONDS = 1_200
#: Sessions of members that are to stay alive, and requests of clients, in milliseconds.
LEAST_CLIENT_MS = 30_000
#: Assertions and actions in a browser, in milliseconds.
LEAST_BROWSER_MS = 60_000

_KEYWORDS = {"timeout", "request_timeout", "patience_seconds", "timeout_seconds"}
#: Parameters of the tests' own functions.
_PARAMETERS = _KEYWORDS | {"limit_seconds"}
#: Methods and functions whose only argument is a limit in seconds, those with one after another argument, and those whose first
#: or last argument is one.
_ONLY = {"result", "flush", "join", "wait", "settimeout", "communicate", "ended"}
_SECOND_OF_TWO = {"committed", "get_watermark_offsets", "list_topics", "offsets_for_times", "position"}
_FIRST_OF = {("asyncio", "timeout")}
_LAST_OF = {("asyncio", "wait_for"), ("socket", "create_connection")}
_TRANSACTIONS = {"init_transactions", "commit_transaction", "abort_transaction", "send_offsets_to_transaction"}
_BROWSER_DEFAULTS = {"set_default_timeout", "set_default_navigation_timeout"}
_CLIENT_SETTINGS = {"session.timeout.ms", "message.timeout.ms", "delivery.timeout.ms", "request.timeout.ms", "max.block.ms"}
_CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time"}
_PORT = "getsockname"


class Impatience(NamedTuple):
    """A line that a slow machine may fail, and why."""

    line: int
    why: str


def impatience(source: str, *, in_browser: bool = False) -> list[Impatience]:
    """Everything of this kind in a file. `in_browser`: it drives a browser, where limits are in milliseconds."""
    tree = ast.parse(source)
    constants = _constants(tree)
    nodes = list(ast.walk(tree))
    found = [*_marks(tree, nodes), *_limits(nodes, constants, in_browser), *_settings(nodes, constants)]
    # most files have neither
    measures = any(clock in source for clock in (*_CLOCKS, "time.time"))
    asks_for_ports = _PORT in source
    for function in nodes if measures or asks_for_ports else ():
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            found += _elapsed_times(function) if measures else ()
            found += _ports(function) if asks_for_ports else ()
    lines = source.splitlines()
    return sorted({each for each in found if "# runs out: " not in lines[each.line - 1]})


def _constants(tree: ast.Module) -> dict[str, float]:
    """The numbers that the module defines."""
    found: dict[str, float] = {}
    for statement in tree.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        number = _number(getattr(statement, "value", None), found)
        if isinstance(target, ast.Name) and number is not None:
            found[target.id] = number
    return found


def _number(node: ast.AST | None, constants: dict[str, float]) -> float | None:
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _number(node.left, constants), _number(node.right, constants)
        return left * right if left is not None and right is not None else None
    return None


def _name(node: ast.AST | None) -> str:
    """The last part of a dotted name, and of a string its value."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant):
        return str(node.value)
    return node.id if isinstance(node, ast.Name) else ""


def _owner(call: ast.Call) -> str:
    return _name(call.func.value) if isinstance(call.func, ast.Attribute) else ""


# ---- marks


def _marks(tree: ast.Module, nodes: Sequence[ast.AST]) -> Iterator[Impatience]:
    """Marks that allow less than pytest's own limit, or that are not those of a slow test."""
    assigned = [each for each in tree.body if isinstance(each, ast.Assign) and _name(each.targets[0]) == "pytestmark"]
    of_module = [mark for each in assigned for mark in (each.value.elts if isinstance(each.value, ast.List) else [each.value])]
    for decorated in nodes:
        decorators = getattr(decorated, "decorator_list", [])
        marks = of_module if decorated is tree else decorators
        is_slow = any(_name(mark) == "slow" for mark in (*of_module, *decorators))
        for mark in marks:
            if not (isinstance(mark, ast.Call) and _name(mark.func) == "timeout"):
                continue
            numbers = [_number(each, {}) or 0 for argument in mark.args for each in ast.walk(argument)]
            if not is_slow:
                yield Impatience(mark.lineno, "a mark of timeout on a test that is not slow: pytest has one limit for all")
            elif max(numbers, default=0) < LEAST_MARK_SECONDS:
                yield Impatience(mark.lineno, f"a mark of timeout below {LEAST_MARK_SECONDS} s, pytest's own limit")


# ---- limits of waits


def _limits(nodes: Sequence[ast.AST], constants: dict[str, float], in_browser: bool) -> Iterator[Impatience]:
    pauses = set(_pauses(nodes))
    for node in nodes:
        limits: list[ast.AST | None] = []
        if isinstance(node, ast.Call):
            limits = [*_limits_of(node), *(_browser_limits(node) if in_browser else ())]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            limits = _defaults(node)
        for limit in limits:
            number = _number(limit, constants)
            if number is None or number <= 0 or (node in pauses and number <= _MOST_PAUSE_SECONDS):
                continue
            assert limit is not None
            line = getattr(limit, "lineno", 0)
            if number < LEAST_SECONDS:
                yield Impatience(line, f"a limit of {number:g} s: use PATIENCE_SECONDS, or say `# runs out: ` and why")
            elif in_browser and number < LEAST_BROWSER_MS:
                yield Impatience(line, f"a limit of {number:g} ms in a browser: leave it to conftest.py")


def _limits_of(call: ast.Call) -> list[ast.AST | None]:
    limits: list[ast.AST | None] = [each.value for each in call.keywords if each.arg in _KEYWORDS]
    if not call.args or (isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Constant)):
        return limits
    name, owned = _name(call.func), (_owner(call), _name(call.func))
    if name in _TRANSACTIONS or owned in _LAST_OF:
        limits.append(call.args[-1])
    elif (name in _ONLY and len(call.args) == 1) or owned in _FIRST_OF:
        limits.append(call.args[0])
    elif name in _SECOND_OF_TWO and len(call.args) == 2:
        limits.append(call.args[1])
    elif name == "get" and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call):
        # of the future of a record
        limits += call.args[:1] if _name(call.func.value.func) == "send" else []
    return limits


def _browser_limits(call: ast.Call) -> Sequence[ast.AST]:
    return call.args if _name(call.func) in _BROWSER_DEFAULTS else ()


def _defaults(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST | None]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args]
    positional = every[len(every) - len(arguments.defaults) :]
    given = [*zip(positional, arguments.defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return [default for argument, default in given if argument.arg in _PARAMETERS]


def _pauses(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Calls of `wait` between two rounds of a loop: its condition, or a statement of their own."""
    for node in nodes:
        waits = [node.value] if isinstance(node, ast.Expr) else []
        if isinstance(node, ast.While):
            waits = [node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test]
        yield from (each for each in waits if isinstance(each, ast.Call) and _name(each.func) == "wait")


def _settings(nodes: Sequence[ast.AST], constants: dict[str, float]) -> Iterator[Impatience]:
    """Settings of clients, by which members of groups expire and requests fail."""
    for node in nodes:
        given: list[tuple[str, ast.expr]] = []
        if isinstance(node, ast.Dict):
            given = [(_name(key), value) for key, value in zip(node.keys, node.values, strict=True)]
        elif isinstance(node, ast.Call) and _name(node.func) == "KafkaConsumer":
            given = [(str(each.arg).replace("_", "."), each.value) for each in node.keywords]
        for name, value in given:
            text = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
            number = float(text) if text.isdecimal() else _number(value, constants)
            if name in _CLIENT_SETTINGS and number and number < LEAST_CLIENT_MS:
                yield Impatience(value.lineno, f"{name} of {number:g}: at least {LEAST_CLIENT_MS}, or `# runs out: ` and why")


# ---- elapsed times


def _elapsed_times(function: ast.AST) -> Iterator[Impatience]:
    """Assertions that a measured time is below a fixed bound."""
    clocks: set[str] = set()
    elapsed: set[str] = set()

    def is_elapsed(node: ast.AST) -> bool:
        return any(
            (isinstance(each, ast.Name) and each.id in elapsed)
            or (isinstance(each, ast.BinOp) and isinstance(each.op, ast.Sub) and (reads(each.left) or reads(each.right)))
            for each in ast.walk(node)
        )

    def reads(node: ast.AST) -> bool:
        return any(_is_clock(each) or (isinstance(each, ast.Name) and each.id in clocks) for each in ast.walk(node))

    for node in sorted(ast.walk(function), key=lambda each: getattr(each, "lineno", 0)):
        if isinstance(node, ast.Assign):
            names = {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            if is_elapsed(node.value):
                elapsed |= names
            elif reads(node.value):
                clocks |= names
        elif isinstance(node, ast.Call) and _name(node.func) == "append" and any(is_elapsed(each) for each in node.args):
            elapsed.add(_owner(node))
        elif isinstance(node, ast.Assert):
            for compare in (each for each in ast.walk(node.test) if isinstance(each, ast.Compare)):
                sides = [compare.left, *compare.comparators]
                for left, sign, right in zip(sides, compare.ops, sides[1:], strict=False):
                    lower, upper = (left, right) if isinstance(sign, ast.Lt | ast.LtE) else (right, left)
                    if isinstance(sign, ast.Lt | ast.LtE | ast.Gt | ast.GtE) and is_elapsed(lower) and _is_fixed(upper):
                        yield Impatience(compare.lineno, "an upper bound of an elapsed time: make it a benchmark, or a count")


def _is_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and (_name(node.func) in _CLOCKS or (_owner(node), _name(node.func)) == ("time", "time"))


def _is_fixed(node: ast.AST) -> bool:
    """A number or a constant, no value that the test has read."""
    walked = list(ast.walk(node))
    is_number = any(_number(each, {}) is not None or (isinstance(each, ast.Name) and each.id.isupper()) for each in walked)
    return is_number and not any(isinstance(each, ast.Subscript | ast.Attribute) for each in walked)


# ---- ports


def _ports(function: ast.AST) -> Iterator[Impatience]:
    """Ports of a closed socket that something else is to listen on later."""
    for opened, end in _closed_sockets(function):
        for node in ast.walk(function):
            if not (isinstance(node, ast.Assign | ast.AnnAssign | ast.Return) and node.lineno <= end):
                continue
            asked = (each for each in ast.walk(node) if isinstance(each, ast.Call) and _name(each.func) == _PORT)
            if not any(_owner(each) == opened for each in asked):
                continue
            if isinstance(node, ast.Return) or _is_used_after(function, node, end):
                yield Impatience(node.lineno, "a port of a closed socket: use PortReservation")


def _closed_sockets(function: ast.AST) -> Iterator[tuple[str, int]]:
    """The names of sockets, and the lines on which they are closed."""
    for node in ast.walk(function):
        if isinstance(node, ast.With):
            for item in node.items:
                if isinstance(item.context_expr, ast.Call) and _name(item.context_expr.func) in ("socket", "create_server"):
                    yield _name(item.optional_vars), node.end_lineno or node.lineno
        elif isinstance(node, ast.Call) and _name(node.func) == "close":
            yield _owner(node), node.lineno


def _is_used_after(function: ast.AST, assigned: ast.Assign | ast.AnnAssign, end: int) -> bool:
    targets = assigned.targets if isinstance(assigned, ast.Assign) else [assigned.target]
    names = {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return any(isinstance(each, ast.Name) and each.id in names and each.lineno > end for each in ast.walk(function))
