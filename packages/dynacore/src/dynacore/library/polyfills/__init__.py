"""C functions and classes of the standard library, written in Python so that the machine can run them as frames.

They do what the C code does, in the same order: when an item is asked for, when a function is called, what is kept. A
break or an exception inside one then happens at the place where it would in plain Python, and resumes there.

A class here stands for a class written in C. Its instances are made real by `rebuild`, an expression over the
attributes (in braces) and the modules `builtins`, `collections`, `functools`, `itertools`, `operator` (or a function
that writes it): the C object in the same state, sharing the iterators below it. Where no expression can give that, the
class stands for nothing, a function makes its instances, and they are handed out as the Python objects that they are.
"""

from . import autograd, combinatorics, constructors, functions, iterators, itertoolz, objects

__all__ = ["autograd", "combinatorics", "constructors", "functions", "iterators", "itertoolz", "objects"]
