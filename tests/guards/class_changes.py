"""Programs that rely on what a class is, and changes to it: `guards.test_watching` calls them after each."""

import abc
import collections.abc

from guards.surroundings import case


def change_of_bases(make):
    """Register a program `make(A, B, C, a)`: `a` is an instance of `A(B)`, whose bases change."""

    def family():
        class B:
            tag = 1

            def who(self):
                return "B"

            @classmethod
            def made_by(cls):
                return "B"

        class C:
            tag = 2

            def who(self):
                return "C"

            @classmethod
            def made_by(cls):
                return "C"

        class Plain:
            pass

        class A(B):
            tag = 0

            def who(self):
                return "A" + super().who()

            @classmethod
            def made_by(cls):
                return "A" + super().made_by()

            def inherited(self):
                return super().tag

            @classmethod
            def inherited_by_class(cls):
                return super().tag

        bases = [(C,), (B, C), (C, B), (Plain,), (B,)]
        return make(A, B, C, A()), [lambda new=new: setattr(A, "__bases__", new) for new in bases]

    family.__name__ = make.__name__
    case(family)


@change_of_bases
def isinstance_by_bases(A, B, C, a):
    return lambda x: x + 1 if isinstance(a, B) else x - 1


@change_of_bases
def isinstance_of_one_of_several(A, B, C, a):
    return lambda x: x + 1 if isinstance(a, (int, C)) else x - 1


@change_of_bases
def issubclass_by_bases(A, B, C, a):
    return lambda x: (issubclass(A, B), issubclass(type(a), C))


@change_of_bases
def class_patterns(A, B, C, a):
    def program(x):
        match a:
            case C():
                return x + 2
            case B():
                return x + 1
            case _:
                return x + 3

    return program


@change_of_bases
def reads_of_the_mro(A, B, C, a):
    return lambda x: ([c.__name__ for c in A.__mro__], type(a).__mro__[1] is B)


@change_of_bases
def reads_of_the_bases(A, B, C, a):
    return lambda x: ([c.__name__ for c in A.__bases__], A.__base__.__name__, A.__base__ is C)


@change_of_bases
def super_in_methods(A, B, C, a):
    return lambda x: a.who()


@change_of_bases
def super_in_classmethods(A, B, C, a):
    return lambda x: A.made_by()


@change_of_bases
def super_of_two_arguments(A, B, C, a):
    return lambda x: super(A, a).who()


@change_of_bases
def attributes_through_super(A, B, C, a):
    return lambda x: x + a.inherited()


@change_of_bases
def attributes_through_super_of_a_class(A, B, C, a):
    return lambda x: x + A.inherited_by_class()


@case
def bases_that_leave_the_mro_alone():
    class C:
        pass

    class B(C):
        pass

    class A(B):
        pass

    return lambda x: x + len(A.__bases__), [lambda: setattr(A, "__bases__", (B, C))]


@case
def bases_of_a_base():
    class B:
        pass

    class C:
        pass

    class Middle(B):
        pass

    class A(Middle):
        pass

    a = A()

    def program(x):
        return isinstance(a, B), isinstance(a, C)

    return program, [lambda new=new: setattr(Middle, "__bases__", new) for new in [(C,), (B, C), (B,)]]


@case
def bases_by_a_metaclass_of_its_own():
    class Left:
        pass

    class Right:
        pass

    class Meta(type):
        def mro(cls):
            return [cls, *order, object]

    order = [Left]

    class A(Left, Right, metaclass=Meta):
        pass

    a = A()

    def reorder():
        order[:] = [Right]
        A.__bases__ = (Right, Left)

    return lambda x: (isinstance(a, Left), isinstance(a, Right)), [reorder]


@case
def handlers_by_bases():
    class First(Exception):
        pass

    class Second(Exception):
        pass

    class Middle(First):
        pass

    class Error(Middle):
        pass

    def program(x):
        try:
            raise Error
        except First:
            return x + 1
        except (Second, ValueError):
            return x + 2
        except Exception:
            return x + 3

    class Other(Exception):
        pass

    bases = [(Middle, (Second,)), (Middle, (Other,)), (Error, (First,)), (Error, (Middle, Second))]
    return program, [lambda cls=cls, new=new: setattr(cls, "__bases__", new) for cls, new in bases]


@case
def operators_by_bases():
    class B:
        def __add__(self, other):
            return "B +"

        def __radd__(self, other):
            return "+ B"

        def __lt__(self, other):
            return "B <"

        def __gt__(self, other):
            return "B >"

    class D:
        pass

    class A(B):
        def __radd__(self, other):
            return "+ A"

        def __gt__(self, other):
            return "A >"

    a, b = A(), B()
    return lambda x: (b + a, b < a), [lambda: setattr(A, "__bases__", (D,)), lambda: setattr(A, "__bases__", (B,))]


@case
def an_abstract_class_remembers_its_answers():
    class Interface(abc.ABC):
        pass

    class B:
        pass

    class C:
        pass

    class A(B):
        pass

    a = A()
    return lambda x: isinstance(a, Interface), [
        lambda: Interface.register(C),
        lambda: setattr(A, "__bases__", (C,)),
        lambda: Interface.register(int),
        lambda: setattr(A, "__bases__", (B,)),
    ]


@case
def attributes_of_classes_between():
    class B:
        number = 1
        items = [1]

    class Middle(B):
        pass

    class A(Middle):
        number = 0

        def read(self):
            return super().number, list(super().items), super().__thisclass__.__name__

        @classmethod
        def read_by_class(cls):
            return super().number

    a = A()
    return lambda x: (a.read(), A.read_by_class()), [
        lambda: setattr(Middle, "number", 5),
        lambda: B.items.append(3),
        lambda: setattr(B, "items", [9]),
        lambda: setattr(Middle, "items", [7]),
        lambda: delattr(Middle, "number"),
        lambda: setattr(B, "number", 2),
        lambda: setattr(A, "number", 6),
    ]


@case
def sequences_by_registration():
    class Items:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return (3.0, 4.0)[index]

        def keys(self):
            return ()

    class Derived(Items):
        pass

    items = Derived()

    def program(x):
        match items:
            case [first, second]:
                return x * first + second
            case {}:
                return x + 2
            case _:
                return x

    return program, [
        lambda: collections.abc.Sequence.register(Items),
        lambda: collections.abc.Mapping.register(Items),
        lambda: collections.abc.Mapping.register(Derived),
    ]


@case
def patterns_by_match_args():
    class Point:
        __match_args__ = ("x", "y")
        x, y = 1, 2

    class Itself(int):
        pass

    point, number = Point(), Itself(3)

    def program(x):
        match point:
            case Point(a, b):
                x = x + a * 10 + b
        match number:
            case Itself(a):
                return x, a
        return x

    def outcome(x):
        found = program(x)
        return (found[0].tolist(), found[1]) if isinstance(found, tuple) else found

    return outcome, [
        lambda: setattr(Point, "__match_args__", ("y", "x")),
        lambda: setattr(Point, "__match_args__", ("x",)),
        lambda: setattr(Point, "__match_args__", ["x", "y"]),
        lambda: delattr(Point, "__match_args__"),
        lambda: setattr(Point, "__match_args__", ("y", "y")),
        lambda: setattr(Point, "__match_args__", ("y", "z")),
        lambda: setattr(Point, "z", 7),
        lambda: setattr(Itself, "__match_args__", ("real",)),
        lambda: setattr(Itself, "__match_args__", ()),
        lambda: delattr(Itself, "__match_args__"),
    ]
