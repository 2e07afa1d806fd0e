"""Random object graphs, guard trees that hold for them, and mutations: what guards must keep up with."""

import gc
from collections import OrderedDict
from random import Random
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

NAMES = ("alpha", "beta", "gamma", "delta")
KEYS = (*NAMES, 7, (1, "x"), 2.5)


class World:
    """Objects that refer to each other, and ways to change them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.classes = self._make_classes()
        self.undo: list[Any] = []
        self.objects: list[Any] = []
        for _ in range(8):
            self.objects.append(self.make_object())
        for _ in range(30):
            self.mutate()

    def _make_classes(self) -> list[type]:
        class Base:
            alpha = 1

            def method(self) -> int:
                return 1

        class Plain(Base):
            pass

        class Sibling(Base):
            beta = "class attribute"

        class Slotted:
            __slots__ = ("__weakref__", "alpha", "beta")

        class DictLike(dict):
            pass

        class Extra:
            gamma = "of another base"

        return [Base, Plain, Sibling, Slotted, DictLike, Extra]

    def make_object(self) -> Any:
        """A mutable object."""
        match self.random.randrange(9):
            case 0 | 1 | 2:
                return self.random.choice(self.classes[:3])()
            case 3:
                return {self.random.choice(KEYS): self.value() for _ in range(self.random.randrange(6))}
            case 4:
                return [self.value() for _ in range(self.random.randrange(4))]
            case 5:
                return CellType(self.value()) if self.random.random() < 0.7 else CellType()
            case 6:
                return self.make_function()
            case 7:
                return OrderedDict((name, self.value()) for name in NAMES[: self.random.randrange(4)])
            case _:
                return self.random.choice([self.classes[3](), self.classes[4](alpha=1), ModuleType("world"), {1, 2}])

    def make_function(self) -> FunctionType:
        """A function with all its fields filled."""
        captured = self.value()

        def function(a: Any = self.value(), *, b: Any = self.value()) -> Any:
            return captured, a, b

        return function

    def value(self) -> Any:
        """A constant, made anew where that is possible, or one of the objects."""
        small = self.random.randrange(3)
        match self.random.randrange(12):
            case 0:
                return 10**6 + small
            case 1:
                return [float("nan"), 0.0, -0.0][small]
            case 2:
                return "text " + str(small)
            case 3:
                return tuple([small, 10**7 + small, "x"][: small + 1])
            case 4:
                return frozenset([small, str(small)])
            case 5:
                return [None, True, 1][small]
            case 6:
                return complex(0.0, -0.0 if small else 0.0)
            case 7:
                return MethodType(self.make_function(), self.pick()) if self.objects else None
            case 8:
                return (self.pick(), small)
            case 9:
                return self.random.choice(self.classes)
            case _:
                return self.pick()

    def pick(self) -> Any:
        return self.random.choice(self.objects) if self.objects else None

    def mutate(self) -> None:
        """Change one thing, or take the last change back."""
        try:
            if self.undo and self.random.random() < 0.3:
                self.undo.pop()()
            else:
                self._mutate(self.random.choice([*self.objects, *self.classes]))
        except (TypeError, AttributeError, KeyError, IndexError, ValueError):
            pass  # the target can't be changed in this way

    def _mutate(self, target: Any) -> None:
        name, value = self.random.choice(NAMES), self.value()
        if isinstance(target, CellType):
            self._mutate_cell(target, value)
        elif isinstance(target, FunctionType):
            self._mutate_function(target, value)
        elif isinstance(target, dict):
            self._mutate_dict(target, self.random.choice(KEYS), value)
        elif isinstance(target, list):
            self._mutate_list(target, value)
        elif isinstance(target, set):
            target.symmetric_difference_update({self.random.randrange(4)})
        else:
            self._mutate_attributes(target, name, value)

    def _mutate_cell(self, cell: CellType, value: Any) -> None:
        if self.random.random() < 0.3:
            del cell.cell_contents
        else:
            cell.cell_contents = value

    def _mutate_function(self, function: FunctionType, value: Any) -> None:
        match self.random.randrange(5):
            case 0:
                function.__defaults__ = self.random.choice([None, (value,)])
            case 1:
                function.__kwdefaults__ = self.random.choice([None, {"b": value}])
            case 2:
                function.__code__ = self.make_function().__code__
            case 3:
                function.__closure__[0].cell_contents = value
            case 4:
                setattr(function, self.random.choice(NAMES), value)

    def _mutate_dict(self, target: dict, key: Any, value: Any) -> None:
        match self.random.randrange(8):
            case 0:
                del target[key]
            case 1:
                items = list(target.items())
                target.clear()
                self.undo.append(lambda: target.update(items))
            case 2:
                target.popitem()
            case 3:
                target.update(dict.fromkeys(NAMES, value))
            case 4 if isinstance(target, OrderedDict):
                target.move_to_end(key)
            case _:
                old = target.get(key, target)
                target[key] = value
                self.undo.append(lambda: target.pop(key, None) if old is target else target.update({key: old}))

    def _mutate_list(self, target: list, value: Any) -> None:
        match self.random.randrange(4):
            case 0:
                target.append(value)
                self.undo.append(lambda: target.pop() if target else None)
            case 1:
                del target[-1]
            case 2:
                target[:] = list(target)
            case _:
                index = self.random.randrange(len(target))
                old, target[index] = target[index], value
                self.undo.append(lambda: target.__setitem__(slice(index, index + 1), [old]))

    def _mutate_attributes(self, target: Any, name: str, value: Any) -> None:
        match self.random.randrange(9):
            case 0:
                delattr(target, name)
            case 1:
                target.__dict__ = dict(target.__dict__)
            case 2:
                target.__class__ = self.random.choice(self.classes[:3])
            case 3:
                read_often(target)
            case 4:
                old_bases = target.__bases__
                base, extra = self.classes[0], self.classes[-1]
                target.__bases__ = self.random.choice([old_bases, (base,), (extra, base), (base, extra)])
                self.undo.append(lambda: setattr(target, "__bases__", old_bases))
            case 5:
                object.__setattr__(target, name, value)
            case 6:
                target.__dict__.clear()
            case _:
                old = getattr(target, name, self)
                setattr(target, name, value)
                if old is not self:
                    self.undo.append(lambda: setattr(target, name, old))

    # ---- trees that hold now ----

    def tree(self, roots: int = 3) -> tuple[tuple, int, list[Any]]:
        """A guard tree, the number of objects that it hands over, and the state that it holds for."""
        state = [self.pick() for _ in range(roots)]
        self.handed = 0
        children = [self._node(self.random.choice(["arg", "const"]), index, state[index]) for index in range(roots)]
        return ("root", None, (), -1, tuple(children)), self.handed, state

    def _node(self, accessor: str, key: Any, obj: Any, depth: int = 5) -> tuple:
        if accessor == "const":
            key = obj
        checks = tuple(self._check(obj) for _ in range(self.random.choice([0, 1, 1, 2])))
        handed = -1
        if self.random.random() < 0.3:
            handed, self.handed = self.handed, self.handed + 1
        children = []
        if depth > 0:
            steps = self._steps(obj)
            for step in self.random.sample(steps, min(len(steps), self.random.randrange(4))):
                children.append(self._node(*step, depth=depth - 1))
        return (accessor, key, checks, handed, tuple(children))

    def _steps(self, obj: Any) -> list[tuple[str, Any, Any]]:
        steps: list[tuple[str, Any, Any]] = [("type", None, type(obj))]
        if isinstance(obj, dict):
            steps += [("key", key, value) for key, value in obj.items()]
        if isinstance(obj, (list, tuple)):
            steps += [("item", index, value) for index, value in enumerate(obj)]
        if isinstance(obj, type):
            steps += [("mro", name, obj.__dict__[name]) for name in NAMES if name in obj.__dict__]
            steps += [("slot", name, getattr(obj, name)) for name in ("__mro__", "__bases__", "__base__")]
        elif hasattr(obj, "__dict__") and not isinstance(obj, MethodType):
            steps += [("dict", None, obj.__dict__)] * 2
            steps += [("attr", name, getattr(obj, name)) for name in NAMES if hasattr(obj, name)]
            steps += [("slot", name, getattr(obj, name)) for name in NAMES if hasattr(obj, name)]
        if isinstance(obj, CellType) and not is_empty(obj):
            steps.append(("cell", None, obj.cell_contents))
        if isinstance(obj, FunctionType):
            fields = ("code", "defaults", "kwdefaults", "closure")
            steps += [("func", field, getattr(obj, f"__{field}__")) for field in fields]
        if isinstance(obj, MethodType):
            steps += [("method", "self", obj.__self__), ("method", "func", obj.__func__)]
        return steps

    def _check(self, obj: Any) -> tuple[str, Any]:
        checks: list[tuple[str, Any]] = [("is", obj), ("is_not", self), ("type", type(obj)), ("true", always)]
        if isinstance(obj, (int, float, str, tuple, frozenset, complex, type(None))):
            checks += [("eq", obj)] * 4
        if isinstance(obj, (list, tuple, dict, set, frozenset)):
            checks.append(("len", len(obj)))
        if isinstance(obj, dict):
            checks += [("keys", tuple(obj)), ("lacks", "nothing"), *(("has", key) for key in obj)]
            checks += [("lacks", key) for key in KEYS if key not in obj]
        if isinstance(obj, type):
            checks += [("mro_lacks", "nothing"), ("mro_eq", obj.__mro__)]
            checks += [("mro_is", (name, obj.__dict__[name])) for name in NAMES if name in obj.__dict__]
        if isinstance(obj, FunctionType):
            checks.append(("func_code", obj.__code__))
        if isinstance(obj, CellType) and is_empty(obj):
            checks.append(("unbound_cell", None))
        return self.random.choice(checks)


def is_empty(cell: CellType) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return True
    return False


def always(_: Any) -> bool:
    return True


def read_often(target: Any) -> None:
    """Reads an attribute at one place until the interpreter specialises that, which may inline the object's values."""
    gc.collect(0)
    for _ in range(20):
        read_alpha(target)


def read_alpha(target: Any) -> Any:
    return target.alpha
