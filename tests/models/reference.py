"""A plain interpreter of neutral instructions over real values, which can stop before any instruction.

It is here to be compared with CPython: that it gives the same results shows that `decode` is right, and where it stops
it has the state from which `resume_function` must go on.
"""

import builtins
import inspect
import operator
from collections.abc import Mapping, Sequence
from types import CellType, FunctionType

from bytecode_models import NULL, UNBOUND, Op, decode

BINARY = {
    "+": "add", "&": "and_", "//": "floordiv", "<<": "lshift", "@": "matmul", "*": "mul", "%": "mod", "|": "or_",
    "**": "pow", ">>": "rshift", "-": "sub", "/": "truediv", "^": "xor",
}  # fmt: skip
IN_PLACE = {symbol: "i" + name.rstrip("_") for symbol, name in BINARY.items()}
COMPARE = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}
UNARY = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "not": operator.not_}


class Cut(BaseException):
    """The frame has run the steps that it was given."""


def under(handled, function, *arguments):
    """Call `function` while `handled` is the exception being handled."""
    if handled is None:
        return function(*arguments)
    traceback = handled.__traceback__
    try:
        raise handled
    except BaseException:
        handled.__traceback__ = traceback
        return function(*arguments)


def throw_into(iterator, exception):
    """What `yield from` does with an exception."""
    if isinstance(exception, GeneratorExit):
        if hasattr(iterator, "close"):
            iterator.close()
    elif hasattr(iterator, "throw"):
        return iterator.throw(exception)
    raise exception


class Frame:
    """One call of `function`. `steps` are left to run; without limit when negative."""

    def __init__(self, function, arguments=(), steps=-1):
        self.function = function
        self.program = decode(function.__code__)
        self.locals = [UNBOUND] * len(self.program.names)
        bound = inspect.signature(function).bind(*arguments)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            self.locals[self.program.names.index(name)] = value
        self.stack = []
        self.handled = None
        self.index = 0
        self.steps = steps
        self.visited = []
        self.abandoned = False  # then its end as a generator has no effects

    def call(self):
        """The result of a plain function."""
        try:
            next(self.run())
        except StopIteration as stop:
            return stop.value
        raise AssertionError("a plain function yielded")

    def run(self):
        """Run as a generator: yields what the frame yields, returns what it returns."""
        instrs = self.program.instrs
        while True:
            if self.steps == 0:
                raise Cut
            self.steps -= 1
            instr = instrs[self.index]
            self.visited.append(self.index)
            assert len(self.stack) == self.program.depths[self.index], instr
            try:
                if instr.op is Op.RETURN:
                    return self.stack.pop()
                if instr.op is Op.YIELD:
                    self.index += 1
                    yield from self.suspend(instr)
                    continue
                to = under(self.handled, STEPS[instr.op], self, instr)
                self.index = instr.index + 1 if to is None else to
            except BaseException as exception:
                if self.abandoned:
                    raise
                self.unwind(instr, exception)

    def suspend(self, instr):
        """YIELD. What is thrown in goes to the iterator that the frame delegates to, if there is one."""
        value = self.stack.pop()
        delegating = self.program.instrs[self.index].a in ("yield_from", "await")
        while True:
            try:
                self.stack.append((yield value))
                return
            except BaseException as thrown:
                exception = thrown
            if self.abandoned:
                raise exception
            if delegating:
                try:
                    value = throw_into(self.stack[-1], exception)
                    continue
                except BaseException as raised:
                    exception = raised
            self.stack.append(None)
            cleanup = instr.handler and self.program.instrs[instr.handler.target].op is Op.THROW_CLEANUP
            if delegating and isinstance(exception, StopIteration) and not cleanup:
                self.index = self.finish_send(self.program.instrs[instr.index - 1], exception.value)
            else:
                self.unwind(instr, exception)
            return

    def unwind(self, instr, exception):
        """Go to the handler, or out of the frame."""
        handler = instr.handler
        if handler is None:
            raise exception
        del self.stack[handler.depth :]
        if handler.lasti:
            self.stack.append(instr.lasti)
        self.stack.append(exception)
        self.index = handler.target

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
        names = self.function.__globals__
        if instr.a in names:
            self.stack.append(names[instr.a])
        elif hasattr(builtins, instr.a):
            self.stack.append(getattr(builtins, instr.a))
        else:
            raise NameError(f"name '{instr.a}' is not defined")

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
        {"list": list.extend, "set": set.update}.get(instr.a, dict.update)(owner, items)

    def unpack(self, instr):
        value = self.stack.pop()
        before, after = instr.a, instr.b
        if after is None:
            items = list(value)
            if len(items) > before:
                raise ValueError(f"too many values to unpack (expected {before})")
            if len(items) < before:
                raise ValueError(f"not enough values to unpack (expected {before}, got {len(items)})")
        else:
            items = list(value)
            if len(items) < before + after:
                raise ValueError(
                    f"not enough values to unpack (expected at least {before + after}, got {len(items)})"
                )
            end = len(items) - after
            items = [*items[:before], items[before:end], *items[end:]]
        self.stack += reversed(items)

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
        function.__annotations__ = dict(zip(annotations[::2], annotations[1::2]))
        self.stack.append(function)

    # control

    def jump(self, instr):
        return instr.target

    def jump_if(self, instr):
        value = self.stack.pop()
        if instr.a == "true":
            return instr.target if value else None
        if instr.a == "false":
            return instr.target if not value else None
        return instr.target if (value is None) is (instr.a == "none") else None

    def get_iter(self, instr):
        value = self.stack.pop()
        if instr.a == "yield_from" and inspect.isgenerator(value):
            self.stack.append(value)
        else:
            self.stack.append(iter(value))

    def for_iter(self, instr):
        try:
            self.stack.append(next(self.stack[-1]))
        except StopIteration:
            if instr.b:
                self.stack.pop()
            return instr.target

    # exceptions

    def raise_(self, instr):
        given = self.pop(instr.a)
        if not given:
            raise  # noqa: PLE0704 - RAISE is run while the exception is handled
        if len(given) == 2:
            raise given[0] from given[1]
        raise given[0]

    def reraise(self, instr):
        exception = self.stack.pop()
        traceback = exception.__traceback__
        context = exception.__context__
        try:
            raise exception
        finally:
            exception.__traceback__ = traceback
            exception.__context__ = context

    def enter_handler(self, instr):
        exception = self.stack.pop()
        self.stack += [self.handled, exception]
        self.handled = exception

    def leave_handler(self, instr):
        self.handled = self.stack.pop()

    def match_exc(self, instr):
        type_ = self.stack.pop()
        if instr.a == "single":
            self.stack.append(isinstance(self.stack[-1], type_))
            return
        exception = self.stack.pop()
        if isinstance(exception, type_):
            wrapped = exception if isinstance(exception, BaseExceptionGroup) else ExceptionGroup("", [exception])
            self.stack += [None, wrapped]
        elif isinstance(exception, BaseExceptionGroup):
            match, rest = exception.split(type_)
            self.stack += [rest, match]
        else:
            self.stack += [exception, None]
        if self.stack[-1] is not None:
            self.handled = self.stack[-1]

    def intrinsic_prep_reraise_star(self, original, raised):
        raised = [exception for exception in raised if exception is not None]
        assert len(raised) <= 1, "the corpus raises at most one remainder"
        return raised[0] if raised else None

    def enter_with(self, instr):
        manager = self.stack.pop()
        enter, exit_ = ("__aenter__", "__aexit__") if instr.a else ("__enter__", "__exit__")
        leave = getattr(manager, exit_)
        self.stack += [leave, getattr(manager, enter)()]

    def call_exit(self, instr):
        exception = self.stack[-1]
        leave = self.stack[-instr.a]
        arguments = (type(exception), exception, exception.__traceback__)
        if instr.b and self.stack[1 - instr.a] is not NULL:
            arguments = (self.stack[1 - instr.a], *arguments)
        self.stack.append(leave(*arguments))

    # generators

    def start(self, instr):
        if instr.a == "create_generator":
            self.stack.append(None)

    def send(self, instr):
        value = self.stack[-1]
        iterator = self.stack[-2]
        try:
            self.stack[-1] = next(iterator) if value is None and hasattr(iterator, "__next__") else iterator.send(value)
        except StopIteration as stop:
            return self.finish_send(instr, stop.value)

    def finish_send(self, instr, result):
        self.stack[-1] = result
        if instr.b:
            del self.stack[-2]
        return instr.target

    def end_send(self, instr):
        del self.stack[-2]

    def throw_cleanup(self, instr):
        *_, exception = self.pop(3)
        if not isinstance(exception, StopIteration):
            raise exception
        self.stack += [None, exception.value]

    def get_awaitable(self, instr):
        value = self.stack.pop()
        self.stack.append(value if inspect.iscoroutine(value) else value.__await__())

    def get_aiter(self, instr):
        self.stack.append(self.stack.pop().__aiter__())

    def get_anext(self, instr):
        self.stack.append(self.stack[-1].__anext__())
        self.get_awaitable(instr)

    def end_async_for(self, instr):
        _, exception = self.pop(2)
        if not isinstance(exception, StopAsyncIteration):
            raise exception

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



def step_of(op):
    """The method for an operation; it ends in `_` where the plain name means something else."""
    name = op.name.lower()
    return getattr(Frame, name + "_", None) or getattr(Frame, name, None)


STEPS = {op: step_of(op) for op in Op}
