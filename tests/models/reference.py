"""A plain interpreter of neutral instructions over real values, which can stop before any instruction.

It is here to be compared with CPython: that it gives the same results shows that `decode` is right, and where it stops
it has the state from which `resume_function` must go on.
"""

import inspect

from models.reference_steps import Steps

from bytecode_models import NULL, UNBOUND, Op, decode


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


class Frame(Steps):
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
                    value = throw_into(self.receiver(instr), exception)
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

    def receiver(self, instr):
        """To whom the frame delegates when it yields at `instr`."""
        return self.stack[-self.program.instrs[instr.index - 1].a]

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
            self.stack.append(next(self.stack[-instr.a]))
        except StopIteration:
            if instr.b:
                self.pop(instr.a)
            return instr.target

    def pop_iter(self, instr):
        self.pop(instr.a)

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

    def load_special(self, instr):
        self.push_attribute(getattr(self.stack.pop(), instr.a), "callable_first")

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
        iterator = self.stack[-1 - instr.a]
        try:
            self.stack[-1] = next(iterator) if value is None and hasattr(iterator, "__next__") else iterator.send(value)
        except StopIteration as stop:
            return self.finish_send(instr, stop.value)

    def finish_send(self, instr, result):
        self.stack[-1] = result
        if instr.b:
            del self.stack[-1 - instr.a : -1]
        return instr.target

    def end_send(self, instr):
        del self.stack[-1 - instr.a : -1]

    def throw_cleanup(self, instr):
        *_, exception = self.pop(2 + instr.a)
        if not isinstance(exception, StopIteration):
            raise exception
        self.stack += [*([NULL] * instr.a), exception.value]

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


def step_of(op):
    """The method for an operation; it ends in `_` where the plain name means something else."""
    name = op.name.lower()
    return getattr(Frame, name + "_", None) or getattr(Frame, name, None)


STEPS = {op: step_of(op) for op in Op}
