"""Names of classes and functions in texts: a program that changes one sees the new one in errors and in `repr`."""

import pytest
import torch

import dynacore


def classes():
    """Classes of a program, afresh, as their names change."""

    class Meta(type):
        pass

    class Plain(metaclass=Meta):
        __slots__ = ("slot",)

        def method(self):
            pass

    class Items(list):
        pass

    return Meta, Plain, Items


def function():
    pass


def enter(o):
    with o:
        pass


def throw(o):
    raise o


TEXTS = {
    "call": lambda o: o(),
    "attribute": lambda o: o.missing,
    "attribute of the class": lambda o: type(o).missing,
    "slot": lambda o: o.slot,
    "delete": lambda o: delattr(o, "missing"),
    "make": lambda o: type(o)(1, 2),
    "length": lambda o: len(o),
    "truth of an item": lambda o: [1][o],
    "iterate": lambda o: list(iter(o)),
    "unpack": lambda o: [*o][0],
    "arguments": lambda o: (lambda a: a)(*o),
    "contains": lambda o: 1 in o,
    "reversed": lambda o: list(reversed(o)),
    "subscript": lambda o: o["a"],
    "key": lambda o: {o: 1},
    "index": lambda o: range(o),
    "number": lambda o: int(o),
    "add": lambda o: o + 1,
    "add to": lambda o: 1 + o,
    "add a class": lambda o: 1 + type(o),
    "negative": lambda o: -o,
    "compare": lambda o: o < 1,
    "sort": lambda o: sorted([o, o]),
    "join": lambda o: ",".join([o]),
    "format": lambda o: "%d" % o,
    "with": enter,
    "raise": throw,
    "is one": lambda o: isinstance(1, o),
    "super": lambda o: super(type(o), 1),
    "repr": lambda o: repr(type(o)),
    "repr in a list": lambda o: f"{[type(o)]} {(type(o),)}",
    "repr in a set": lambda o: f"{ {type(o)} } {frozenset([type(o)])} {slice(type(o))}",
    "repr of an alias": lambda o: f"{list[type(o)]} {type(o) | None}",
    "repr of a descriptor": lambda o: repr(vars(type(o)).get("slot")),
    "repr of a function": lambda o: f"{function} {type(o)}",
    "key error": lambda o: {}[type(o)],
    "own code": lambda o: (type(o).__name__, type(o).__qualname__, type(o).__module__, type(o) == "a"),
}  # fmt: skip


CHANGES = (("__name__", "A"), ("__name__", "B"), ("__qualname__", "C.D"), ("__module__", "m"), ("", ""))


@pytest.mark.parametrize("at", [1, 2], ids=["plain", "a list"])
@pytest.mark.parametrize("name", TEXTS)
def test_names_in_texts(name, at):
    made = classes()
    text = TEXTS[name]
    obj = made[at]()

    def program(x, o):
        try:
            return str(text(o)), x + 1
        except Exception as error:
            return type(error), str(error), x + 2

    compiled = dynacore.compile(program, backend="eager")
    called = function.__qualname__
    try:
        for field, value in CHANGES:
            for _ in range(2):
                assert str(compiled(torch.ones(1), obj)) == str(program(torch.ones(1), obj))
            if field:
                for cls in made:
                    setattr(cls, field, value)
                function.__qualname__ = value
    finally:
        function.__qualname__ = called
