"""What the reference interpreter does for each operation that neither jumps nor handles an exception."""

import builtins
import importlib
import operator
from collections.abc import Mapping, Sequence
from types import CellType, FunctionType

from bytecode_models import NULL, UNBOUND

BINARY = {
    "+": "add", "&": "and_", "//": "floordiv", "<<": "lshift", "@": "matmul", "*": "mul", "%": "mod", "|": "or_",
    "**": "pow", ">>": "rshift", "-": "sub", "/": "truediv", "^": "xor",
}  # fmt: skip
IN_PLACE = {symbol: "i" + name.rstrip("_") for symbol, name in BINARY.items()}
COMPARE = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}
UNARY = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "not": operator.not_}


def templatelib():
    """The module of 3.14's templates."""
    return importlib.import_module("string.templatelib")


class Steps:
    """A method per operation, which works on `stack`, `locals`, `program` and `function` of the frame."""

    def pop(self, n):
        """The topmost n items, bottom to top."""
        if not n:
            return []
        items = self.stack[-n:]
        del self.stack[-n:]
        return items

    # stack

    def nop(self, instr):
        pass

    def pop_(self, instr):
        self.stack.pop()

    def copy(self, instr):
        self.stack.append(self.stack[-instr.a])

    def swap(self, instr):
        stack, n = self.stack, instr.a
        stack[-1], stack[-n] = stack[-n], stack[-1]

    def push_null(self, instr):
        self.stack.append(NULL)

    def load_const(self, instr):
        self.stack.append(instr.a)

    # slots

    def load_local(self, instr):
        value = self.locals[instr.a]
        if value is UNBOUND:
            assert instr.b, "an unchecked slot is unbound"
            name = self.program.names[instr.a]
            raise UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value")
        self.stack.append(value)

    def load_local_clear(self, instr):
        value = self.locals[instr.a]
        self.stack.append(NULL if value is UNBOUND else value)
        self.locals[instr.a] = UNBOUND

    def store_local(self, instr):
        value = self.stack.pop()
        self.locals[instr.a] = UNBOUND if value is NULL else value

    def delete_local(self, instr):
        self.load_local(instr)
        self.stack.pop()
        self.locals[instr.a] = UNBOUND

    def make_cell(self, instr):
        value = self.locals[instr.a]
        self.locals[instr.a] = CellType() if value is UNBOUND else CellType(value)

    def bind_free_vars(self, instr):
        assert len(self.program.frees) == instr.a
        self.locals[len(self.locals) - instr.a :] = self.function.__closure__

    def load_cell(self, instr):
        assert isinstance(self.locals[instr.a], CellType)
        self.stack.append(self.locals[instr.a])

    def load_deref(self, instr):
        try:
            self.stack.append(self.locals[instr.a].cell_contents)
        except ValueError:
            self.unbound_cell(instr)

    def unbound_cell(self, instr):
        name = self.program.names[instr.a]
        if instr.a in self.program.frees:
            raise NameError(
                f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
            ) from None
        raise UnboundLocalError(
            f"cannot access local variable '{name}' where it is not associated with a value"
        ) from None

    def store_deref(self, instr):
        self.locals[instr.a].cell_contents = self.stack.pop()

    def delete_deref(self, instr):
        self.load_deref(instr)
        self.stack.pop()
        del self.locals[instr.a].cell_contents

    # names

    def load_global(self, instr):
        self.stack.append(eval(instr.a, self.function.__globals__))  # which also does what is imported lazily (3.15)

    def store_global(self, instr):
        self.function.__globals__[instr.a] = self.stack.pop()

    def delete_global(self, instr):
        del self.function.__globals__[instr.a]

    def load_build_class(self, instr):
        self.stack.append(builtins.__build_class__)

    def import_name(self, instr):
        level, fromlist = self.pop(2)
        self.stack.append(__import__(instr.a, self.function.__globals__, None, fromlist, level))

    def import_from(self, instr):
        self.stack.append(getattr(self.stack[-1], instr.a))

    # attributes

    def load_attr(self, instr):
        self.stack.append(getattr(self.stack.pop(), instr.a))

    def load_method(self, instr):
        self.push_attribute(getattr(self.stack.pop(), instr.a), instr.b)

    def push_attribute(self, value, shape):
        self.stack += [NULL, value] if shape == "null_first" else [value, NULL]

    def load_super(self, instr):
        super_, class_, self_ = self.pop(3)
        method, _ = instr.b
        value = getattr(super_(class_, self_), instr.a)
        if method:
            self.push_attribute(value, instr.c)
        else:
            self.stack.append(value)

    def store_attr(self, instr):
        value, owner = self.pop(2)
        setattr(owner, instr.a, value)

    def delete_attr(self, instr):
        delattr(self.stack.pop(), instr.a)

    # operators

    def unary(self, instr):
        self.stack.append(UNARY[instr.a](self.stack.pop()))

    def to_bool(self, instr):
        self.stack.append(bool(self.stack.pop()))

    def binary(self, instr):
        left, right = self.pop(2)
        table = IN_PLACE if instr.b else BINARY
        self.stack.append(getattr(operator, table[instr.a])(left, right))

    def compare(self, instr):
        left, right = self.pop(2)
        result = getattr(operator, COMPARE[instr.a])(left, right)
        self.stack.append(bool(result) if instr.b else result)

    def is_(self, instr):
        left, right = self.pop(2)
        self.stack.append((left is right) is not instr.a)

    def contains(self, instr):
        left, right = self.pop(2)
        self.stack.append((left in right) is not instr.a)

    def load_item(self, instr):
        owner, key = self.pop(2)
        self.stack.append(owner[key])

    def store_item(self, instr):
        value, owner, key = self.pop(3)
        owner[key] = value

    def delete_item(self, instr):
        owner, key = self.pop(2)
        del owner[key]

    # building

    def build(self, instr):
        make = getattr(self, f"build_{instr.a}", None)
        if make is not None:
            make(instr.b)
        else:
            self.stack.append({"tuple": tuple, "list": list, "set": set}[instr.a](self.pop(instr.b)))

    def build_dict(self, n):
        items = self.pop(2 * n)
        self.stack.append(dict(zip(items[::2], items[1::2])))

    def build_const_key_dict(self, n):
        *values, keys = self.pop(n + 1)
        self.stack.append(dict(zip(keys, values, strict=True)))

    def build_string(self, n):
        self.stack.append("".join(self.pop(n)))

    def build_slice(self, n):
        self.stack.append(slice(*self.pop(n)))

    def build_template(self, instr):
        strings, interpolations = self.pop(2)
        pairs = zip(strings, (*interpolations, None))
        self.stack.append(templatelib().Template(*(part for pair in pairs for part in pair if part is not None)))

    def build_interpolation(self, instr):
        value, text, *spec = self.pop(3 if instr.b else 2)
        conversion = {None: None, "str": "s", "repr": "r", "ascii": "a"}[instr.a]
        self.stack.append(templatelib().Interpolation(value, text, conversion, *spec))

    def append(self, instr):
        if instr.a == "dict":
            key, value = self.pop(2)
            self.stack[-instr.b][key] = value
        else:
            item = self.stack.pop()
            {"list": list.append, "set": set.add}[instr.a](self.stack[-instr.b], item)

    def extend(self, instr):
        items = self.stack.pop()
        owner = self.stack[-instr.b]
        if instr.a == "dict_merge":
            twice = next((key for key in items.keys() if key in owner), None)
            if twice is not None:
                function = next(item for item in reversed(self.stack) if callable(item))
                raise TypeError(f"{function.__module__}.{function.__qualname__}() got multiple values for keyword "
                                f"argument '{twice}'")  # fmt: skip
        # A display's own iteration has its own messages.
        {"list": lambda: owner.extend([*items]), "set": lambda: owner.update({*items})}.get(
            instr.a, lambda: owner.update(items)
        )()

    def unpack(self, instr):
        # The interpreter's own unpacking has its own messages.
        before = [f"a{n}" for n in range(instr.a)]
        after = [] if instr.b is None else ["*rest", *(f"b{n}" for n in range(instr.b))]
        targets = "".join(f"{name}, " for name in [*before, *after])
        namespace = {}
        exec(f"def unpack(value):\n [{targets}] = value\n return [{targets.replace('*', '')}]", namespace)
        self.stack += reversed(namespace["unpack"](self.stack.pop()))

    def convert(self, instr):
        self.stack.append({"str": str, "repr": repr, "ascii": ascii}[instr.a](self.stack.pop()))

    def format(self, instr):
        spec = self.stack.pop() if instr.a else ""
        self.stack.append(format(self.stack.pop(), spec))

    # calls

    def call_(self, instr):
        first, second, *arguments = self.pop(instr.a + 2)
        function, self_ = (first, second) if instr.c == "callable_first" or first is not NULL else (second, NULL)
        if self_ is not NULL:
            arguments.insert(0, self_)
        if function is super and not arguments:
            arguments = [self.contents("__class__"), self.contents(self.program.names[0])]
        names = instr.b or ()
        split = len(arguments) - len(names)
        self.stack.append(function(*arguments[:split], **dict(zip(names, arguments[split:]))))

    def contents(self, name):
        value = self.locals[self.program.names.index(name)]
        return value.cell_contents if isinstance(value, CellType) else value

    def call_ex(self, instr):
        keywords = self.stack.pop() if instr.a else {}
        first, second, arguments = self.pop(3)
        function = second if first is NULL else first
        self.stack.append(function(*arguments, **keywords))

    def intrinsic(self, instr):
        arguments = self.pop(instr.b)
        self.stack.append(getattr(self, f"intrinsic_{instr.a.lower()}")(*arguments))

    def intrinsic_list_to_tuple(self, items):
        return tuple(items)

    def intrinsic_stopiteration_error(self, exception):
        if not isinstance(exception, StopIteration):
            return exception
        kind = "coroutine" if self.program.is_coroutine else "generator"
        error = RuntimeError(f"{kind} raised StopIteration")
        error.__cause__ = error.__context__ = exception
        return error

    def make_function(self, instr):
        *attributes, code = self.pop(len(instr.a) + 1)
        given = dict(zip(instr.a, attributes, strict=True))
        function = FunctionType(
            code, self.function.__globals__, code.co_name, given.get("defaults"), given.get("closure")
        )
        function.__kwdefaults__ = given.get("kwdefaults")
        annotations = given.get("annotations", ())
        if annotations:
            function.__annotations__ = dict(zip(annotations[::2], annotations[1::2]))
        if "annotate" in given:
            function.__annotate__ = given["annotate"]
        self.stack.append(function)

    # pattern matching

    def match(self, instr):
        getattr(self, f"match_{instr.a}")(instr.b)

    def match_len(self, n):
        self.stack.append(len(self.stack[-1]))

    def match_mapping(self, n):
        self.stack.append(isinstance(self.stack[-1], Mapping))

    def match_sequence(self, n):
        value = self.stack[-1]
        self.stack.append(isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)))

    def match_keys(self, n):
        subject, keys = self.stack[-2:]
        found = all(key in subject for key in keys)
        self.stack.append(tuple(subject[key] for key in keys) if found else None)

    def match_class(self, positional):
        subject, type_, names = self.pop(3)
        names = (*type_.__match_args__[:positional], *names) if positional else names
        fits = isinstance(subject, type_) and all(hasattr(subject, name) for name in names)
        self.stack.append(tuple(getattr(subject, name) for name in names) if fits else None)
