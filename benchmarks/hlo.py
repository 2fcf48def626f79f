"""What a compiled program does, from its text (HLO) and its jaxpr: products, bytes, collectives.

XLA's own `cost_analysis` counts the body of a loop once, and a streamed program is one loop. Here
every operation counts as often as the loops around it run.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import lax

TYPES = {"pred": 1, "bf16": 2}  # bytes; the names of all others end with their bits
SHAPE = re.compile(r"\b(pred|bf16|[fsuc]\d+)\[([\d,]*)\](?:\{([^{}]*)\})?")
COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]+) .*\{$")
INSTRUCTION = re.compile(r"(?:ROOT )?%?([\w.\-]+) = (.*?) ([\w\-]+)\((.*)$")
TRIPS = re.compile(r'known_trip_count"?:\{"?n"?:"?(\d+)')
BRANCHES = re.compile(r"branch_computations=\{(.*?)\}|(?:true|false)_computation=(%?[\w.\-]+)")
CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
# Operations that name or group values and move none.
FREE = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "iota")
FREE += ("partition-id", "replica-id")
SLICES = ("dynamic-slice", "gather", "slice")


class Instruction(NamedTuple):
    """A line of a computation."""

    shape: str
    operation: str
    operands: list[str]
    line: str


class Cost(NamedTuple):
    """What one device does in a call, each operation as often as it runs."""

    bytes: float  # that all operations read and write in the main memory, padding of tiles included
    cycles: float  # of a core as the compiler estimates them, a floor; 0: it tells none
    collectives: Counter[str]  # kind -> bytes of the results
    counts: Counter[str]  # kind -> how often it runs


def traced(function: Any, *arguments: Any) -> Any:
    """`jax.jit(function).trace`."""
    return (function if hasattr(function, "trace") else jax.jit(function)).trace(*arguments)


def product_flops(jaxpr: Any, trips: float = 1.0, high: float = 1.0) -> float:
    """Operations of the matrix products and convolutions of one device.

    Loops whose number is only known when they run have `trips` iterations; an operation of a
    product in precision HIGH counts for `high`.
    """
    total = 0.0
    for equation in jaxpr.eqns:
        name, parameters = equation.primitive.name, equation.params
        if name == "dot_general":
            (contracted, _), _ = parameters["dimension_numbers"]
            left = equation.invars[0].aval.shape
            weight = high if lax.Precision.HIGH in (parameters["precision"] or ()) else 1.0
            sums = float(np.prod([left[i] for i in contracted]))
            total += weight * 2 * equation.outvars[0].aval.size * sums
        elif name == "conv_general_dilated":
            kernel = equation.invars[1].aval
            outputs = kernel.shape[parameters["dimension_numbers"].rhs_spec[0]]
            total += 2 * equation.outvars[0].aval.size * float(kernel.size) / outputs
        parts = [part for value in parameters.values() for part in _parts(value)]
        inner = [product_flops(part, trips, high) for part in parts]
        if name == "cond":  # one of the branches runs
            total += max(inner, default=0.0)
        else:
            total += {"scan": parameters.get("length"), "while": trips}.get(name, 1) * sum(inner)
    return total


def _parts(value: Any) -> Iterator[Any]:
    """The jaxprs in a parameter of an equation."""
    for part in value if isinstance(value, (list, tuple)) else [value]:
        part = getattr(part, "jaxpr", part)
        if hasattr(part, "eqns"):
            yield part


def cost(text: str, trips: float = 1.0) -> Cost:
    """The cost of a compiled program; `trips` as in `product_flops`."""
    program = _Program(text)
    total, collectives, counts = Counter(), Counter(), Counter()

    def visit(name, times):
        for x in program.computations[name].values():
            kind = x.operation.removesuffix("-start")
            if x.operation == "while":
                visit(_called(x, "body"), times * program.trips(x, trips))
            elif x.operation == "conditional":
                listed = [name for found in BRANCHES.findall(x.line) for name in found]
                branches = re.findall(r"[\w.\-]+", " ".join(listed))
                for branch in branches:
                    visit(branch, times / len(branches))
            elif x.operation == "call":
                visit(_called(x, "to_apply"), times)
            elif x.operation not in FREE:
                cycles = CYCLES.search(x.line)
                total["cycles"] += times * int(cycles[1]) if cycles else 0
                total["bytes"] += times * program.bytes(name, x)
            if kind in COLLECTIVES:
                # The result of a start repeats the operand, except for an all-reduce.
                halved = x.operation.endswith("-start") and kind != "all-reduce"
                moved = sum(logical for logical, _, _ in sizes(x.shape)) / (2 if halved else 1)
                collectives[kind] += times * moved
                counts[kind] += times

    visit(program.entry, 1.0)
    return Cost(total["bytes"], total["cycles"], collectives, counts)


def sizes(shape: str) -> Iterator[tuple[float, float, bool]]:
    """Bytes of each array of a shape, with and without padding, and whether it is on the chip.

    A layout of a TPU is `{1,0:T(8,128)S(1)}` for instance: the order of the axes, the tile to whose
    multiples the last ones are padded, and a memory other than the main one.
    """
    for kind, dims, layout in SHAPE.findall(shape):
        item = TYPES.get(kind) or int(re.sub(r"\D", "", kind)) / 8
        axes = [int(d) for d in dims.split(",") if d]
        logical = item * float(np.prod(axes))
        tiled = re.match(r"([\d,]+):T\(([\d,]+)\)", layout)
        if tiled and axes:
            order, tile = ([int(x) for x in part.split(",")] for part in tiled.groups())
            if len(tile) == 1:
                axes, order = [int(np.prod(axes))], [0]
            for axis, size in zip(order, reversed(tile), strict=False):
                axes[axis] = -(-axes[axis] // size) * size
        yield logical, item * float(np.prod(axes)), bool(re.search(r"S\([1-9]\)", layout))


def _in_memory(shape: str) -> float:
    return sum(size for _, size, on_chip in sizes(shape) if not on_chip)


def _called(x: Instruction, part: str) -> str:
    return re.search(rf"{part}=%?([\w.\-]+)", x.line)[1]


class _Program:
    """The computations of a compiled program, by name, each with its instructions by name."""

    def __init__(self, text: str):
        self.computations: dict[str, dict[str, Instruction]] = {}
        self.entry = ""
        name = ""
        for line in text.splitlines():
            if not line.startswith(" ") and (match := COMPUTATION.match(line.rstrip())):
                name = match[2]
                self.computations[name] = {}
                self.entry = name if match[1] else self.entry
            elif name and (match := INSTRUCTION.match(line.strip())):
                operands = re.findall(r"%([\w.\-]+)", match[4].split("), ")[0])
                instruction = Instruction(match[2], match[3], operands, line.strip())
                self.computations[name][match[1]] = instruction

    def trips(self, loop: Instruction, unknown: float) -> float:
        """Iterations of a loop: told by the compiler, or the number in its condition."""
        if known := TRIPS.search(loop.line):
            return float(known[1])
        lines = [x.line for x in self.computations[_called(loop, "condition")].values()]
        limits = re.findall(r"s32\[\]\S* constant\((\d+)\)", "\n".join(lines))
        return float(max(map(int, limits))) if limits else unknown

    def shape(self, computation: str, name: str) -> str:
        """The shape of a value."""
        instruction = self.computations[computation].get(name)
        return instruction.shape if instruction else ""

    def bytes(self, computation: str, x: Instruction) -> float:
        """Bytes that an operation reads and writes in the main memory."""
        if x.operation.endswith("-done"):
            return 0.0
        if x.operation.endswith("-start"):  # a copy between two memories, or a collective
            return min((size for _, size, _ in sizes(x.shape) if size > 64), default=0.0)
        if x.operation in SLICES:
            return 2 * _in_memory(x.shape)
        if x.operation == "dynamic-update-slice":
            return 2 * _in_memory(self.shape(computation, x.operands[1]))
        parts = self.parts(_called(x, "calls")) if x.operation == "fusion" else {}
        total = parts.get(-1, _in_memory(x.shape))
        for place, operand in enumerate(x.operands):
            whole = _in_memory(self.shape(computation, operand))
            total += min(whole, parts.get(place, whole))
        return total

    def parts(self, computation: str) -> dict[int, float]:
        """Bytes of those operands of a fusion of which only slices are read.

        With -1 those of its result, if it is an operand of which a slice is replaced.
        """
        parts = {}
        for name, x in self.computations.get(computation, {}).items():
            if x.operation == "parameter":
                uses = list(self.uses(computation, name))
                if uses and None not in uses:
                    parts[int(re.search(r"parameter\((\d+)\)", x.line)[1])] = sum(uses)
            if x.line.startswith("ROOT") and x.operation == "dynamic-update-slice":
                parts[-1] = _in_memory(self.shape(computation, x.operands[1]))
        return parts

    def uses(self, computation: str, name: str) -> Iterator[float | None]:
        """Bytes that each use of a value reads, or None for all of them."""
        for other, x in self.computations[computation].items():
            if name not in x.operands:
                continue
            if x.operation == "bitcast":
                yield from self.uses(computation, other)
            elif x.operation == "fusion":
                inner = self.parts(_called(x, "calls"))
                places = [i for i, operand in enumerate(x.operands) if operand == name]
                yield sum(inner[i] for i in places) if all(i in inner for i in places) else None
            elif x.operation in SLICES and x.operands[0] == name:
                yield sum(size for _, size, _ in sizes(x.shape))
            elif x.operation == "dynamic-update-slice" and x.operands[0] == name:
                yield 0.0
            else:
                yield None
