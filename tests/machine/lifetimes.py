"""Programs: objects that refer to each other, weak references, and when objects die."""

from __future__ import annotations

import weakref

from machine.classes import Base, Node
from machine.oracle import program, say


@program((3,))
def cyclic_objects(n):
    root = Node(0)
    for i in range(n):
        Node(i, root)
    Node("leaf", root.children[-1])
    loop = [root]
    loop.append(loop)
    d = {}
    d["self"] = d
    return root, loop, d


@program(lambda: (Node(1),))
def given_cyclic(node):
    child = Node(2, node)
    child.parent.parent = child
    node.children += [node]
    return child, node.children[0].parent is node


@program((1,))
def weak_references(x):
    b = Base(x)
    r = weakref.ref(b)
    alive = r() is b
    del b
    return alive, r() is None


@program((1,))
def lifetimes(x):
    b, keep = Base(x), Base(x)
    refs = [weakref.ref(b), weakref.ref(keep)]
    b = None
    say([r() is not None for r in refs])
    box = [keep]
    del keep
    say([r() is not None for r in refs])
    box.clear()
    return [r() is not None for r in refs]


@program(lambda: (Base(1), [Base(2)]))
def argument_lifetimes(a, box):
    r = weakref.ref(box[0])
    say(r() is not None)
    box.pop()
    say(r() is not None)
    return len(box), a.n


class Ends:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        say("end", self.name)


@program((1,))
def finalizers_run_in_place(x):
    def inner():
        kept = Ends("inner")
        say("in", kept.name)

    inner()
    say("back")
    a = Ends("first")
    a = Ends("second")
    say("rebound")
    del a
    say("deleted")
    Ends("dropped")
    for i in range(2):
        b = Ends(i)
    say("loop", b.name)
    b = None
    return x
