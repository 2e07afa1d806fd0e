"""What a program drops goes, whatever an entry has assumed of it; an entry whose keys are gone is never used again."""

import gc
import weakref

import pytest
import torch

import dynacore

X = torch.ones(2)


class Key:
    scale = 3.0


GLOBAL = {}


def is_there(x, d, k):
    d["found"] = k in d
    return x + (k in d)


def writes(x, d, k):
    d[k] = d.get(k, 1.0) + 1.0
    return x * d[k]


def walks(x, d, k):
    return sum([x * v for v in d.values()]) * len([key for key in d if key is k])


def through_a_global(x, d, k):
    return x * GLOBAL[k]


def made(x, d, k):
    return {k: x, 1: x}[k] + (k in {k})


def of_the_key(x, d, k):
    return [key.scale for key in d][0] * x if hasattr(k, "scale") else x


def finds(x, d, k):
    return x * d[k]


def misses(x, d, k):
    return x * d.get((k, 1), 2.0) * (k not in GLOBAL)


def in_tuples(x, d, k):
    return x * PAIRS[k, 1] * PAIRS.get((k, 2), 3.0) * (((k, 1) in PAIRS) + 1)


PAIRS = {}
PROGRAMS = (finds, misses, in_tuples, is_there, writes, walks, made, of_the_key, through_a_global)


KINDS = {"object": Key, "tensor": lambda: torch.ones(3), "module": lambda: torch.nn.Linear(1, 1)}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_keys_of_dicts(program, kind):
    dynacore.reset()
    compiled = dynacore.compile(program, backend="eager")
    for calls in (1, 30):
        key = kind()
        d, plain = {key: 2.0}, {key: 2.0}
        GLOBAL[key], PAIRS[key, 1] = 2.0, 3.0
        for _ in range(calls):
            assert torch.equal(compiled(X, d, key), program(X, plain, key))
        died = weakref.ref(key)
        del key, d, plain
        GLOBAL.clear()
        PAIRS.clear()
        gc.collect()
        assert died() is None


def test_parameters_of_an_optimizer():
    compiled = dynacore.compile(lambda optimizer: optimizer.step(), backend="eager")
    for _ in range(3):
        model = torch.nn.Linear(2, 2)
        twin = torch.nn.Linear(2, 2)
        twin.load_state_dict(model.state_dict())
        optimizers = [torch.optim.Adam(m.parameters(), lr=0.1) for m in (model, twin)]
        for _ in range(4):
            for m, step in ((model, compiled), (twin, torch.optim.Adam.step)):
                m(X).sum().backward()
                step(optimizers[m is twin])
            assert torch.equal(model.weight, twin.weight)
        died = weakref.ref(model.weight)
        del m, model, optimizers
        gc.collect()
        assert died() is None


def test_another_key_at_the_address_of_one_that_is_gone():
    compiled = dynacore.compile(finds, backend="eager")
    for n in range(20):  # a key's memory is taken by the next one
        key = Key()
        assert torch.equal(compiled(X, {key: float(n)}, key), X * n)
        del key
