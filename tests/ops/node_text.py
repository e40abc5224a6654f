"""Reads the lines of cases.txt: nodes as the graph prints them, with types in place of operands."""

import dataclasses
import itertools
import re

import ml_dtypes
import numpy as np

DTYPES = {
    "bool": np.dtype(bool),
    **{f"{kind}{bits}": np.dtype(f"{word}{bits}") for kind, word in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "bf16": np.dtype(ml_dtypes.bfloat16),
}


@dataclasses.dataclass(frozen=True)
class Type:
    dtype: np.dtype
    shape: tuple


@dataclasses.dataclass
class Node:
    results: list  # names; none for a case
    op: str
    operands: list  # Types for a case, names inside of a body
    attributes: dict
    literal: list
    body: list  # Nodes, then the names that are returned
    types: list  # of the results, if written


def expand(lines):
    """The cases that the lines stand for: one per combination of the dtypes of the sets they name."""
    sets = {}
    for line in lines:
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if found := re.fullmatch(r"([A-Z]+) = ([a-z0-9, ]+)", line):
            sets[found[1]] = found[2].split(", ")
            continue
        used = sorted({word for word in re.findall(r"[A-Z]+", line) if word in sets}, key=line.index)
        for dtypes in itertools.product(*(sets[name] for name in used)):
            case = line
            for name, dtype in zip(used, dtypes):
                case = re.sub(rf"\b{name}\b", dtype, case)
            yield case


class Reader:
    def __init__(self, text):
        self.tokens = re.findall(r'"[^"]*"|%\w+|[\w.+-]+|\S', text)
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        if not token or (wanted is not None and token != wanted):
            raise ValueError(f"expected {wanted}, found '{token}' in {' '.join(self.tokens)}")
        self.at += 1
        return token

    def skip(self, wanted):
        if self.peek() == wanted:
            self.at += 1
            return True
        return False

    def items(self, end, read):
        out = []
        while not self.skip(end):
            if out:
                self.take(",")
            out.append(read())
        return out

    def type(self):
        dtype = DTYPES[self.take()]
        self.take("[")
        return Type(dtype, tuple(self.items("]", lambda: int(self.take()))))

    def attribute(self):
        name = self.take()
        self.take("=")
        if self.skip("["):
            return name, self.items("]", lambda: int(self.take()))
        value = self.take()
        return name, value[1:-1] if value.startswith('"') else int(value)

    def node(self):
        results = []
        while self.peek().startswith("%"):
            results.append(self.take())
            if not self.skip(","):
                self.take("=")
        op = self.take()
        operands = []
        if self.skip("("):
            operands = self.items(")", lambda: self.take() if self.peek().startswith("%") else self.type())
        attributes = dict(self.items("}", self.attribute)) if self.skip("{") else {}
        literal = self.items(">", self.take) if self.skip("<") else []
        body = self.block() if self.skip("{") else []
        types = []
        if self.skip(":"):
            types.append(self.type())
            while self.skip(","):
                types.append(self.type())
        return Node(results, op, operands, attributes, literal, body, types)

    def block(self):
        out = []
        while self.peek() != "return":
            out.append(self.node())
        self.take("return")
        out.append([name for name, _ in self.items("}", lambda: (self.take(), self.take()))])
        return out
