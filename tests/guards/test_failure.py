"""What the twin says of the guard that failed."""

from native.extension import node, root

from dynacore.guards import twin


class Linear:
    def __init__(self):
        self.training = True
        self.children = [1, 2]

    def forward(self):
        pass


def failure(tree, state=(), names=()):
    found, failed = twin.evaluate(tree, 0, list(state), names)
    assert found is None
    return str(failed)


def test_texts():
    module = Linear()
    training = node("dict", None, node("key", "training", checks=(("is", False),)))
    children = node("dict", None, node("key", "children", node("item", 0, checks=(("eq", 3),))))
    forward = node("type", None, node("mro", "forward", node("func", "code", checks=(("is", failure.__code__),))))
    by_argument = root(node("arg", 0, training))
    assert (
        failure(by_argument, [module], ["model"]) == "model.__dict__['training']: expected the object False, found True"
    )
    assert failure(by_argument, [module]).startswith("state[0].__dict__")
    assert (
        failure(root(node("arg", 0, children)), [module], ["m"])
        == "m.__dict__['children'][0]: expected the value 3, found 1"
    )
    assert "type(m).forward.__code__: expected the object" in failure(root(node("arg", 0, forward)), [module], ["m"])
    assert failure(root(node("arg", 0)), [], ["m"]) == "m: expected an object, found nothing"
    assert failure(root(node("arg", 0, node("attr", "missing"))), [module], ["m"]) == (
        "m.missing: expected an object, found AttributeError: 'Linear' object has no attribute 'missing'"
    )


def test_both_values_are_named():
    for check, obj, text in [
        (("type", int), "x", "expected type int, found type str"),
        (("len", 2), [1], "expected length 2, found length 1"),
        (("len", 2), 7, "expected length 2, found type int"),
        (("keys", ("a", "b")), {"a": 1}, "expected the keys 'a', 'b', found the keys 'a'"),
        (("keys", ("a", "b")), 7, "expected the keys 'a', 'b', found type int"),
        (("has", "a"), {}, "expected the key 'a', found <dict at"),
        (("lacks", "a"), {"a": 1}, "expected no key 'a', found <dict at"),
        (("mro_is", ("forward", Linear.forward)), int, "expected Linear.forward as its forward, found nothing"),
        (
            ("mro_eq", (bool, int, object)),
            bool.__base__,
            "expected the classes bool, int, object, found the classes int, o",
        ),
        (("mro_eq", (int, object)), 7, "expected the classes int, object, found 7"),
        (("mro_lacks", "forward"), Linear, "expected no attribute forward, found Linear"),
        (("func_code", failure.__code__), test_texts, "expected the code failure, found the code test_texts"),
        (("unbound_cell", None), 1, "expected an empty cell, found 1"),
        (("is_not", None), None, "expected another object than None, found None"),
        (("true", str.isdigit), "x", "expected str.isdigit to be true, found 'x'"),
        (("true", str.isdigit), 1, "to be true, found TypeError: "),
        (("eq", "y" * 200), "x" * 200, "…, found 'xxx"),
    ]:
        assert text in failure(root(node("arg", 0, checks=(check,))), [obj]), check


def test_root_checks_are_named():
    def grad_mode():
        return True

    assert failure(root(checks=(("call0_is", (grad_mode, False)),))).endswith("grad_mode(): expected False, found True")
    tree = root(node("arg", 0, handed=0), node("arg", 1, handed=1), checks=(("same", (0, 1)),))
    assert str(twin.evaluate(tree, 2, [[], []])[1]) == "objects 0 and 1: expected one object, found otherwise"
