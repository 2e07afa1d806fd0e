"""Random programs: the source of `def program(t, xs, d, i)`, from a source of random integers.

The variables have fixed kinds (numbers i j k n, lists xs ys, a dict d, tensors t u), so that most programs get far;
every loop ends. In templates N stands for a number, C for a condition, L for a list, K for a key, T for a tensor, S for
a simple number, E for what is caught.
"""

from __future__ import annotations

import re
import textwrap

LEAVES = {
    "S": ("i", "j", "k", "n", "0", "1", "2", "-3", "True"),
    "L": ("xs", "ys"),
    "K": ("'a'", "'b'", "'c'", "1"),
    "V": ("t", "u"),
    "E": ("KeyError", "ValueError", "ZeroDivisionError", "(IndexError, KeyError)", "Exception", "Custom"),
}
NUMBER = (
    "S", "S", "(N + N) % 97", "N * N % 89", "N - N", "N // N", "len(L)", "L[N % 3]", "d[K]", "d.get(K, N)",
    "(N if C else N)", "say(N)", "max(N, N)",
    "sum(v for v in L if v)", "helper(N)", "add(N)", "len('{!r}-{}'.format(N, N))", "next(iter(L), N)", "obj.value",
    "obj.method(N)", "(N and N)", "(N or N)",
    "len(f'{S:>4}|{xs!r}|{n=}')", "int(str(N))", "abs(N)", "len({N, N, 1})", "(lambda v, w=S: v - w)(N)",
    "call(add, N)", "call(obj.method, *[N])",
)  # fmt: skip
CONDITION = (
    "S < S", "S == S", "S in xs", "not S", "K in d", "xs is ys", "0 <= S < S", "(V.sum() > S)", "xs", "d",
    "isinstance(S, bool)",
)  # fmt: skip
TENSOR = (
    "V", "(T + V)", "(T * S)", "(T - V)", "torch.relu(T)", "T.neg()", "scale(T)", "torch.where(V > 0, T, V)",
    "(T + n)", "torch.stack([T, V]).sum(0)",
)  # fmt: skip
SIMPLE = (
    "i = N", "j = N", "k += N", "i, j = N, N", "obj.value = N", "ys = xs", "ys = list(xs)",
    "if len(L) < 12: L.append(N)", "L.pop()", "L[0] = N", "L[N % 2:] = [N]",
    "L.sort()", "L.reverse()", "del L[0]", "xs = xs[:4] + [N]", "ys += [N][:12 - len(ys)]", "d[K] = N", "del d[K]",
    "d.pop(K, None)", "d.setdefault(K, N)", "d.update(b=N)",
    "d[K] += N", "t = T", "u = T", "u = t.clone()", "u.add_(S)", "i = int(V.sum().item()) % 53", "say(N, xs)",
    "say(sorted(map(str, d)))", "say(V.tolist())",
    "say(repr(sys.exc_info()[1]))", "if C: raise KeyError(S)", "if C: raise Custom(S)", "if C: return 'early', S",
    "ys = [v + S for v in xs if v != S]",
    "d = {str(v): v for v in xs}", "i = sum(v * S for v in ys) % 31", "ys = [(lambda: v + n)() for v in xs]",
    "xs = sorted({v for v in ys}, key=lambda v: -v)",
    "ys = [*xs, *(v for v in count(2))][:12]", "obj = Thing(N)", "obj.extra = L", "del obj.extra", "a, *ys = xs",
    "gen = count(S)", "j = next(gen, S)", "STATE['s'] = N", "j = STATE.get('s', S)",
)  # fmt: skip
IN_LOOP = ("if C: break", "if C: continue")
LOOPS = (
    "k in range(2)", "k in range(3)", "k in xs", "k, v in enumerate(ys)", "k in list(d)", "key, k in d.items()",
    "k, j in zip(xs, ys)", "k in count(2)", "k in map(add, xs)", "k in reversed(ys)",
)  # fmt: skip
ENDINGS = (
    "say(repr(error))", "raise", "raise ValueError('again') from error", "raise Custom(1)", "k = 5",
    "say(repr(error.__context__))",
)  # fmt: skip
MANAGERS = ("Manager(1)", "Manager(2, ValueError)", "managed(S)", "torch.no_grad()")
TEMPLATE = """\
def program(t, xs, d, i):
    j, k, n, ys, u, obj = 1, 0, 2, [3, 1], t, Thing(4)
    STATE.clear()
    def add(v):
        nonlocal n
        n += 1
        return v + n
{body}
    return i, j, k, n, xs, ys, d, t, u, obj, dict(STATE)
"""


class Writer:
    """Writes one program; `below(n)` gives a random integer from 0 to n - 1."""

    def __init__(self, below):
        self.below = below
        self.counter = 0
        self.budget = 4 + below(20)

    def pick(self, choices):
        return choices[self.below(len(choices))]

    def fill(self, template, depth=2):
        """Replace the letters that stand for something."""
        return re.sub(r"\b[NCLKTVSE]\b", lambda found: self.part(found[0], depth - 1), template)

    def part(self, letter, depth):
        if letter in LEAVES:
            return self.pick(LEAVES[letter])
        if depth < 0:
            return self.pick(LEAVES["V" if letter == "T" else "S"])
        return self.fill(self.pick({"N": NUMBER, "C": CONDITION, "T": TENSOR}[letter]), depth)

    def block(self, depth, loop):
        lines = []
        for _ in range(1 + self.below(3)):
            if self.budget > 0:
                self.budget -= 1
                lines += self.statement(depth, loop)
        return lines or ["pass"]

    def indented(self, depth, loop):
        return ["    " + line for line in self.block(depth - 1, loop)]

    def statement(self, depth, loop):
        nested = (self.if_, self.for_, self.while_, self.try_, self.with_, self.define)
        if depth > 0 and self.below(5) < 3:
            return self.pick(nested)(depth, loop)
        return [self.fill(self.pick((*SIMPLE, *IN_LOOP) if loop else SIMPLE))]

    def if_(self, depth, loop):
        lines = [self.fill("if C:"), *self.indented(depth, loop)]
        return lines + (["else:", *self.indented(depth, loop)] if self.below(2) else [])

    def for_(self, depth, loop):
        lines = [f"for {self.pick(LOOPS)}:", "    if len(xs) + len(ys) > 24: break", *self.indented(depth, True)]
        return lines + (["else:", *self.indented(depth, loop)] if self.below(3) == 0 else [])

    def while_(self, depth, loop):
        self.counter += 1
        name = f"w{self.counter}"
        head = self.fill(f"while {name} < {1 + self.below(3)} and C:")
        return [f"{name} = 0", head, f"    {name} += 1", *self.indented(depth, True)]

    def try_(self, depth, loop):
        lines, form = ["try:", *self.indented(depth, loop)], self.below(3)
        if form:
            lines += [self.fill("except E as error:"), *self.indented(depth, loop), f"    {self.pick(ENDINGS)}"]
            if self.below(2):
                lines += ["else:", *self.indented(depth, loop)]
        return lines + (["finally:", *self.indented(depth, False)] if form != 1 else [])

    def with_(self, depth, loop):
        return [self.fill(f"with {self.pick(MANAGERS)}:"), *self.indented(depth, loop)]

    def define(self, depth, loop):
        self.counter += 1
        name = f"f{self.counter}"
        body = [*self.indented(min(depth, 2), False), self.fill("    return N")]
        use = self.fill(self.pick((f"k = {name}(S)", f"j = {name}(1, ys)", f"n = {name}(n)", f"k = call({name}, i=S)")))
        return [f"def {name}(i, xs=xs, *, t=t, u=u, ys=ys, d=d, j=j, k=k, obj=obj):", "    nonlocal n", *body, use]


def write(below):
    """The source of a random program."""
    writer = Writer(below)
    lines = []
    while writer.budget > 0:
        lines += writer.block(3, False)
    return TEMPLATE.format(body=textwrap.indent("\n".join(lines), "    "))
