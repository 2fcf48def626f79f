"""What a compiled program does, from its text (HLO) and its jaxpr: products, bytes, collectives.

XLA's own `cost_analysis` counts the body of a loop once, and a streamed program is one loop. Here
every operation counts as often as the loops around it run.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import lax

TYPES = {"pred": 1, "bf16": 2}  # bytes; the names of all others end with their bits
SHAPE = re.compile(r"\b(pred|bf16|[fsuc]\d+)\[([\d,]*)\](?:\{([^{}]*)\})?")
COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]+) .*\{$")
INSTRUCTION = re.compile(r"(?:ROOT )?%?([\w.\-]+) = (.*?) ([\w\-]+)\((.*)$")
TRIPS = re.compile(r'known_trip_count"?:\{"?n"?:"?(\d+)')
CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
# Operations that name or group values and move none.
FREE = {
    "parameter",
    "constant",
    "tuple",
    "get-tuple-element",
    "bitcast",
    "after-all",
    "partition-id",
    "replica-id",
    "iota",
}


class Instruction(NamedTuple):
    """A line of a computation."""

    name: str
    shape: str
    operation: str
    operands: list[str]
    line: str


class Cost(NamedTuple):
    """What one device does in a call.

    Attributes:
      bytes: read and written in the main memory by all operations, padding of the tiles included.
      cycles: of a core as the compiler estimates them, a floor; 0: it tells none.
      collectives: kind -> bytes of the results, each as often as it runs.
      counts: kind -> how often it runs.
    """

    bytes: float
    cycles: float
    collectives: dict[str, float]
    counts: dict[str, float]


def product_flops(jaxpr: Any, trips: float = 1.0, high: float = 1.0) -> float:
    """Operations of the matrix products and convolutions of one device.

    Args:
      jaxpr: of the program, in which mapped functions are those of one device.
      trips: iterations of loops whose number is only known when they run.
      high: for how much an operation of a product in precision HIGH counts.
    """
    total = 0.0
    for equation in jaxpr.eqns:
        name, parameters = equation.primitive.name, equation.params
        size = float(np.prod(equation.outvars[0].aval.shape)) if equation.outvars else 0.0
        if name == "dot_general":
            (contracted, _), _ = parameters["dimension_numbers"]
            left = equation.invars[0].aval.shape
            weight = high if lax.Precision.HIGH in (parameters["precision"] or ()) else 1.0
            total += weight * 2 * size * float(np.prod([left[i] for i in contracted]))
        elif name == "conv_general_dilated":
            kernel = equation.invars[1].aval.shape
            outputs = kernel[parameters["dimension_numbers"].rhs_spec[0]]
            total += 2 * size * float(np.prod(kernel)) / outputs
        inner = [product_flops(part, trips, high) for part in _inner_jaxprs(parameters)]
        if name == "cond":  # one of the branches runs
            total += max(inner, default=0.0)
        else:
            times = {"scan": parameters.get("length"), "while": trips}.get(name, 1)
            total += times * sum(inner)
    return total


def _inner_jaxprs(parameters: Mapping[str, Any]) -> Iterator[Any]:
    for value in parameters.values():
        for part in value if isinstance(value, (list, tuple)) else [value]:
            part = getattr(part, "jaxpr", part)
            if hasattr(part, "eqns"):
                yield part


def has_callback(jaxpr: Any) -> bool:
    """Whether a program calls back into Python."""
    return any(
        "callback" in equation.primitive.name
        or equation.primitive.name == "debug_print"
        or any(has_callback(part) for part in _inner_jaxprs(equation.params))
        for equation in jaxpr.eqns
    )


def cost(text: str, trips: float = 1.0) -> Cost:
    """The cost of a compiled program.

    Args:
      text: of the program.
      trips: iterations of loops whose number is only known when they run.
    """
    computations, entry = _parse(text)
    read = _Reader(computations)
    total = {"bytes": 0.0, "cycles": 0.0}
    collectives: dict[str, float] = {}
    counts: dict[str, float] = {}

    def visit(name, times):
        for x in computations[name]:
            if x.operation in FREE:
                continue
            if x.operation == "while":
                condition, body = (_called(x.line, part) for part in ("condition", "body"))
                visit(body, times * _trips(x.line, computations[condition], trips))
                continue
            if x.operation == "conditional":
                branches = _branches(x.line)
                for branch in branches:
                    visit(branch, times / len(branches))
                continue
            if x.operation == "call":
                visit(_called(x.line, "to_apply"), times)
                continue
            kind = x.operation.removesuffix("-start")
            if kind in COLLECTIVES:
                sizes = [logical for logical, _, _ in _sizes(x.shape)]
                # The result of a start repeats the operand, except for an all-reduce.
                halved = x.operation.endswith("-start") and kind != "all-reduce"
                moved = sum(sizes) / (2 if halved else 1)
                collectives[kind] = collectives.get(kind, 0) + times * moved
                counts[kind] = counts.get(kind, 0) + times
            cycles = CYCLES.search(x.line)
            total["cycles"] += times * int(cycles[1]) if cycles else 0
            total["bytes"] += times * read.bytes(name, x)

    visit(entry, 1.0)
    return Cost(total["bytes"], total["cycles"], collectives, counts)


def _parse(text: str) -> tuple[dict[str, list[Instruction]], str]:
    """The instructions of each computation, and the name of the one that is called."""
    computations: dict[str, list[Instruction]] = {}
    name = entry = ""
    for line in text.splitlines():
        if not line.startswith(" ") and (match := COMPUTATION.match(line.rstrip())):
            name = match[2]
            computations[name] = []
            entry = name if match[1] else entry
        elif name and (match := INSTRUCTION.match(line.strip())):
            operands = re.findall(r"%([\w.\-]+)", match[4].split("), ")[0])
            computations[name].append(Instruction(*match.groups()[:3], operands, line.strip()))
    return computations, entry


def _called(line: str, part: str) -> str:
    return re.search(rf"{part}=%?([\w.\-]+)", line)[1]


def _branches(line: str) -> list[str]:
    listed = re.search(r"branch_computations=\{([^}]*)\}", line)
    if listed:
        return [name.strip().lstrip("%") for name in listed[1].split(",")]
    return [_called(line, f"{value}_computation") for value in ("true", "false")]


def _trips(line: str, condition: list[Instruction], unknown: float) -> float:
    """Iterations of a loop: told by the compiler, or the number in its condition."""
    if known := TRIPS.search(line):
        return float(known[1])
    limits = [
        int(n) for x in condition for n in re.findall(r"s32\[\]\S* constant\((\d+)\)", x.line)
    ]
    return float(max(limits)) if limits else unknown


def _sizes(shape: str) -> Iterator[tuple[float, float, bool]]:
    """Bytes of each array of a shape, with and without padding, and whether it is on the chip.

    A layout of a TPU is `{1,0:T(8,128)S(1)}` for instance: the order of the axes, the tile to whose
    multiples the last ones are padded, and a memory other than the main one.
    """
    for kind, dims, layout in SHAPE.findall(shape):
        item = TYPES.get(kind) or int(re.sub(r"\D", "", kind)) / 8
        sizes = [int(d) for d in dims.split(",") if d]
        logical = item * float(np.prod(sizes))
        padded, tile = logical, re.match(r"([\d,]+):T\(([\d,]+)\)", layout)
        if tile and sizes:
            order, tile = ([int(x) for x in part.split(",")] for part in tile.groups())
            if len(tile) == 1:
                padded = item * float(-(-np.prod(sizes) // tile[0]) * tile[0])
            else:
                for axis, size in zip(order, reversed(tile), strict=False):
                    sizes[axis] = -(-sizes[axis] // size) * size
                padded = item * float(np.prod(sizes))
        yield logical, padded, bool(re.search(r"S\([1-9]\)", layout))


class _Reader:
    """Bytes that operations read and write in the main memory."""

    def __init__(self, computations: dict[str, list[Instruction]]):
        self.computations = computations
        self.shapes = {name: {x.name: x.shape for x in rows} for name, rows in computations.items()}
        self.memo: dict[str, dict[int, float]] = {}

    def bytes(self, computation: str, x: Instruction) -> float:
        if x.operation.endswith("-done"):
            return 0.0
        if x.operation.endswith("-start"):  # a copy between two memories, or a collective
            sizes = [(size, on_chip) for _, size, on_chip in _sizes(x.shape) if size > 64]
            return min(size for size, _ in sizes) if sizes else 0.0
        if x.operation in ("dynamic-slice", "gather", "slice"):
            return 2 * _in_memory(x.shape)
        shapes = self.shapes[computation]
        if x.operation == "dynamic-update-slice":
            return 2 * _in_memory(shapes.get(x.operands[1], ""))
        parts = self._parts(_called(x.line, "calls")) if x.operation == "fusion" else {}
        total = _in_memory(x.shape)
        if -1 in parts:  # the result is an operand of which a slice is replaced
            total = parts[-1]
        for place, operand in enumerate(x.operands):
            shape = shapes.get(operand, "")
            whole = _in_memory(shape)
            total += min(whole, parts[place]) if place in parts else whole
        return total

    def _parts(self, computation: str) -> dict[int, float]:
        """Bytes of those operands of a fusion of which only slices are read."""
        if computation in self.memo:
            return self.memo[computation]
        parts = self.memo[computation] = {}
        instructions = self.computations.get(computation, [])
        shapes = self.shapes.get(computation, {})
        for x in instructions:
            if x.operation == "parameter":
                place = int(re.search(r"parameter\((\d+)\)", x.line)[1])
                uses = list(self._uses(instructions, shapes, x.name))
                if uses and all(use is not None for use in uses):
                    parts[place] = sum(uses)
        root = next((x for x in instructions if x.line.startswith("ROOT")), None)
        if root and root.operation == "dynamic-update-slice":
            parts[-1] = _in_memory(shapes.get(root.operands[1], ""))
        return parts

    def _uses(self, instructions, shapes, name) -> Iterator[float | None]:
        """Bytes that each use of a value reads, or None for all of them."""
        for x in instructions:
            if name not in x.operands:
                continue
            if x.operation == "bitcast":
                yield from self._uses(instructions, shapes, x.name)
            elif x.operation == "fusion":
                inner = self._parts(_called(x.line, "calls"))
                places = [i for i, operand in enumerate(x.operands) if operand == name]
                yield sum(inner[i] for i in places) if all(i in inner for i in places) else None
            elif x.operation in ("gather", "dynamic-slice", "slice") and x.operands[0] == name:
                yield sum(size for _, size, _ in _sizes(x.shape))
            elif x.operation == "dynamic-update-slice" and x.operands[0] == name:
                yield 0.0
            else:
                yield None


def _in_memory(shape: str) -> float:
    return sum(size for _, size, on_chip in _sizes(shape) if not on_chip)


def has_float64(text: str) -> bool:
    """Whether a program computes in double precision."""
    return bool(re.search(r"\bf64\[", text))


def traced(function: Any, *arguments: Any) -> Any:
    """`jax.jit(function).trace`."""
    return (function if hasattr(function, "trace") else jax.jit(function)).trace(*arguments)
