"""Where torch keeps what guards look at, so that the extension can read it instead of asking.

Asking torch about one tensor takes fifty nanoseconds, about its state two hundred; reading takes five and thirty.
Nothing is taken from a version number: places are found by making tensors whose metadata are known and looking for
these, and every kind of change must then be seen. Where anything is odd nothing is read, and torch is asked as before.
"""

from __future__ import annotations

import abc
import ctypes
import functools
import operator
import platform
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from . import _C
from .torch_api import (
    SWITCHES,
    InferenceMode,
    body_address,
    context_address,
    sdp_priority_order,
    set_conj,
    set_fp32_precision,
    set_grad_enabled,
    set_neg,
    set_sdp_priority_order,
    state_functions,
    switch_functions,
    thread_keys,
)

WORD = 8
BODY = 22
"""Words of what torch keeps behind a tensor that are looked at: fewer than it has."""
SIZES = (0, 1009, 1013, 1019, 1021)
STRIDES = (2003, 2011, 2017, 2027, 2029)
DTYPES = (
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64, torch.complex64, torch.complex128, torch.bool,
)  # fmt: skip
DEVICES = ("cpu", "meta")
AUTOCAST_TYPES = ("cpu", "cuda", "xpu", "mps", "hpu", "xla", "ipu", "maia", "mtia", "privateuseone")
"""Types of devices that torch has an autocast for, in one build or another."""
PRECISIONS = ("none", "ieee", "tf32", "bf16")
"""As torch numbers them."""
CONTEXT = 256
"""Words of the object that ATen keeps its settings in that are looked at."""
FLOAT_ONE = 0x3F800000
"""How full a hash table of the C++ library may become, as it says itself."""
LOADS = {b"\x0f\xb6\x87": (1, True), b"\x0f\xb6\x05": (1, False), b"\x0f\xb7\x05": (2, False)}
"""Instructions of x86-64 that load the result of a function: how many bytes, and whether the four bytes behind count
from the function's argument or from the next instruction."""
ENTRY, RETURN = b"\xf3\x0f\x1e\xfa", b"\xc3"
"""What functions may begin with, where jumps are checked, and what they end with."""
TOLD: set[Callable[[], Any]] = set()
"""What else is told by the words that are read as torch's state."""

Load = tuple[int, int]
"""Address of a word, and which of its bits count."""


empty, zeros = (functools.partial(make, device="cpu") for make in (torch.empty, torch.zeros))
"""Whatever torch's default device is."""


class Unknown(Exception):
    """torch's memory isn't as expected."""


def words(address: int, count: int) -> tuple[int, ...]:
    """`count` words of memory."""
    return tuple((ctypes.c_uint64 * count).from_address(address))


def body(tensor: torch.Tensor) -> tuple[int, ...]:
    """What torch keeps behind a tensor."""
    return words(body_address(tensor), BODY)


def only(found: Iterable[int], what: str) -> int:
    """The one place that was found."""
    places = list(found)
    if len(places) != 1:
        raise Unknown(what)
    return places[0]


def place_of_sequence(values: Sequence[int], wanted: Sequence[int]) -> int:
    """Where the numbers stand one behind the other."""
    n = len(wanted)
    return only((i for i in range(len(values) - n + 1) if tuple(values[i : i + n]) == tuple(wanted)), "sizes")


def bytes_that_tell(tensors: Sequence[torch.Tensor], again: Sequence[torch.Tensor], first: int) -> list[int]:
    """Bytes of the body, from word `first` on, that differ for all of these and are the same for tensors made alike."""

    def column(some: Sequence[torch.Tensor]) -> list[bytes]:
        return [ctypes.string_at(body_address(t), BODY * WORD) for t in some]

    one, other = column(tensors), column(again)
    return [
        i
        for i in range(first * WORD, BODY * WORD)
        if len({bits[i] for bits in one}) == len(one) and [bits[i] for bits in one] == [bits[i] for bits in other]
    ]


def find_kind(first: int) -> tuple[int, int]:
    """The word that holds dtype and device, and which of its bits do."""

    def of_dtypes() -> list[torch.Tensor]:
        return [empty(2, dtype=dtype) for dtype in DTYPES]

    def on_devices(*devices: str) -> list[torch.Tensor]:
        return [torch.empty(2, device=device) for device in devices]

    dtype = only(bytes_that_tell(of_dtypes(), of_dtypes(), first), "dtype")
    word = dtype // WORD
    told = bytes_that_tell(on_devices(*DEVICES), on_devices(*DEVICES), word)

    def is_before_number(i: int) -> bool:
        """Whether the device's number comes next: -1 where there is one device. Bytes in gaps hold anything."""
        return all(ctypes.string_at(body_address(t) + i + 1, 1) == b"\xff" for t in on_devices(*DEVICES))

    device = only((i for i in told if (i + 1) // WORD == word and is_before_number(i)), "device")
    number = device + 1
    return word, sum(0xFF << (i % WORD * 8) for i in (dtype, dtype + 1, device, number))


def find_keys(first: int) -> int:
    """The word of the dispatch keys: bits in it say that a tensor is conjugated or negated."""
    plain, conjugated, negated = (empty(2, dtype=torch.complex64) for _ in range(3))
    set_conj(conjugated, True)
    set_neg(negated, True)
    a, b, c = body(plain), body(conjugated), body(negated)
    bits = [(a[i] ^ b[i], a[i] ^ c[i]) for i in range(BODY)]
    return only(
        (i for i in range(first, BODY) if all(x.bit_count() == 1 for x in bits[i]) and len(set(bits[i])) == 2), "keys"
    )


def find_autograd(place: int) -> tuple[int, int, int]:
    """Of the object that torch adds to tensors for autograd: its class, where its function and its flag lie."""
    leaf = zeros(2, requires_grad=True)
    with torch.enable_grad():
        result, view = leaf * 1, leaf.view(2)
    addresses = [body(t)[place] for t in (leaf, result, view)]
    size = min(ctypes.CDLL(None).malloc_usable_size(ctypes.c_void_p(address)) for address in addresses)
    if not 8 * WORD < size < 1024:
        raise Unknown("autograd")
    before, before_view = ctypes.string_at(addresses[0], size), ctypes.string_at(addresses[2], WORD)
    leaf.requires_grad_(False)
    flag = only((i for i in range(size) if before[i] != ctypes.string_at(addresses[0] + i, 1)[0]), "requires_grad")
    leaf.requires_grad_(True)
    with torch.enable_grad():
        view_of_constant = zeros(2).view(2)
    own = [ctypes.string_at(body(view_of_constant.requires_grad_(on))[place], size) for on in (False, True)]
    if own[0][:WORD] != before_view or [i for i in range(size) if own[0][i] != own[1][i]] != [flag]:
        raise Unknown("requires_grad of a view")
    at_leaf, at_result, at_view = (words(address, size // WORD) for address in addresses)
    result.detach_()
    detached = words(body(result)[place], size // WORD) if body(result)[place] else (0,) * (size // WORD)
    functions = [i for i in range(size // WORD) if not at_leaf[i] and at_result[i] and not detached[i]]
    if at_leaf[0] != at_result[0] or at_leaf[0] == at_view[0] or not functions:
        raise Unknown("classes of autograd objects")
    return at_leaf[0], functions[0], flag


def find_layout() -> tuple[Any, ...]:
    """What `_C.set_tensor_layout` takes."""
    strange = empty(0).as_strided(SIZES, STRIDES)
    found = body(strange)
    in_object = words(id(strange), type(strange).__basicsize__ // WORD)
    at = only((i for i, word in enumerate(in_object) if word == body_address(strange)), "body") * WORD
    sizes, strides = place_of_sequence(found, SIZES), place_of_sequence(found, STRIDES)
    dims = sizes - 1
    if [body(empty((1,) * n))[dims] for n in range(8)] != list(range(8)):
        raise Unknown("number of dimensions")
    plain, leaf = body(zeros(2)), body(zeros(2, requires_grad=True))
    autograd = only((i for i in range(BODY) if not plain[i] and leaf[i] > 0xFFFF and i < sizes), "autograd")
    first = strides + len(STRIDES)
    kind, mask = find_kind(first)
    keys = find_keys(first)
    cls, function, flag = find_autograd(autograd)
    return torch.Tensor, torch.nn.Parameter, at, dims, sizes, strides, autograd, kind, keys, mask, cls, function, flag


def tensors_and_changes() -> Iterator[tuple[torch.Tensor, Callable[[torch.Tensor], Any]]]:
    """Every way to change what guards hold a tensor to, in place."""

    def make(*shape: int, **options: Any) -> torch.Tensor:
        return zeros(shape, **options)

    yield make(4, 6), lambda t: t.requires_grad_()
    yield make(4, 6, requires_grad=True), lambda t: t.requires_grad_(False)
    with torch.enable_grad():
        yield make(4, 6).view(6, 4).requires_grad_(), lambda t: t.requires_grad_(False)
    yield make(4, 6), lambda t: t.resize_(2, 3, 4)
    yield make(4, 6), lambda t: t.resize_(6, 4)
    yield make(4, 6), lambda t: t.t_()
    yield make(4, 6), lambda t: t.unsqueeze_(0)
    yield make(1, 6), lambda t: t.squeeze_(0)
    yield make(4, 6), lambda t: t.as_strided_((4, 6), (1, 4))
    yield make(4, 6), lambda t: setattr(t, "data", zeros(4, 6, dtype=torch.float64))
    yield make(4, 6), lambda t: setattr(t, "data", zeros(6, 4))
    yield make(4, 6), lambda t: t.set_(zeros(5))
    yield make(4, dtype=torch.complex64), lambda t: set_conj(t, True)
    yield make(4), lambda t: set_neg(t, True)
    with torch.enable_grad():
        yield make(4, requires_grad=True) * 1, lambda t: t.detach_()
        yield make(4), lambda t: t.add_(zeros(4, requires_grad=True))


def check_layout() -> None:
    """Raise `Unknown` unless what is read tells all that guards ask for."""
    for tensor, change in tensors_and_changes():
        before = _C.tensor_words(tensor)
        change(tensor)
        if before is None or before == _C.tensor_words(tensor):
            raise Unknown("a change isn't seen")
    example = empty(2, 3)
    expected = (torch.Tensor, False, (2, 3), (3, 1))
    seen = _C.tensor_words(example)
    elsewhere = empty(0).set_(empty(7), 1, (2, 3), (3, 1))
    if seen is None or (seen[0], *seen[3:]) != expected or seen != _C.tensor_words(elsewhere):
        raise Unknown("tensors that are alike differ")
    with InferenceMode(True):
        inference = empty(2, 3)
    others = [empty(2, 3, dtype=dtype) for dtype in DTYPES] + [torch.empty(2, 3, device=d) for d in DEVICES[1:]]
    if len({_C.tensor_words(t) for t in (*others, inference)}) != len(others) + 1:
        raise Unknown("tensors that differ are alike")


def find_tensors() -> bool:
    """Let the extension read tensors, if all is as expected."""
    try:
        _C.set_tensor_layout(find_layout())
        check_layout()
    except Exception:  # under a mode, or in a torch that we don't know, anything can happen; all of it means: ask torch
        _C.set_tensor_layout(None)
        return False
    return True


def memory(address: int, size: int) -> bytes:
    """Bytes of memory, of which nobody knows whether they are there: OSError if not."""
    with open("/proc/self/mem", "rb", buffering=0) as file:
        file.seek(address)
        return file.read(size)


def load(place: int, size: int) -> Load:
    """The word that these bytes lie in."""
    if place % WORD + size > WORD:
        raise Unknown("bytes of two words")
    return place & -WORD, ((1 << 8 * size) - 1) << place % WORD * 8


def load_of(function: tuple[int, int, int, int, int, bool]) -> Load | None:
    """The word that the function returns, where all that it does is to load it."""
    address, this, *_ = function
    code = memory(address, 16)
    if code.startswith(ENTRY):
        address, code = address + len(ENTRY), code[len(ENTRY) :]
    kind = LOADS.get(code[:3]) if platform.machine() == "x86_64" else None
    if kind is None or code[7:8] != RETURN:
        return None
    size, from_argument = kind
    base = this if from_argument else address + 7
    return load(base + int.from_bytes(code[3:7], "little", signed=True), size)


def loads_and_calls(functions: Iterable[tuple[int, int, int, int, int, bool]]) -> tuple[list[Load], list[tuple]]:
    """What of it can be read without a call, and what can't."""
    found = [(load_of(function), function) for function in functions]
    return [place for place, _ in found if place is not None], [call for place, call in found if place is None]


def merged(loads: Iterable[Load]) -> tuple[Load, ...]:
    """Each word once."""
    masks: dict[int, int] = {}
    for address, mask in loads:
        masks[address] = masks.get(address, 0) | mask
    return tuple(sorted(masks.items()))


def table_at(header: Sequence[int]) -> dict[tuple[int, int], int] | None:
    """Where the hash table that may begin with these words keeps the value of each key, which is two numbers."""
    _, buckets, node, count, factor = header
    if factor & 0xFFFFFFFF != FLOAT_ONE or not 0 < count <= min(buckets, 64):
        return None
    places: dict[tuple[int, int], int] = {}
    try:
        while node and len(places) < count:
            following, device, operation = struct.unpack("<QII", memory(node, 16))
            places[device, operation] = node + 16
            node = following
    except OSError:
        return None
    return places if not node and len(places) == count else None


def find_precisions(context: int) -> list[Load]:
    """Where it stands what becomes of float32, for each kind of device and operation."""
    values = struct.unpack(f"<{CONTEXT}Q", memory(context, CONTEXT * WORD))
    tables = [table for i in range(CONTEXT - 4) if (table := table_at(values[i : i + 5]))]
    switches = {switch.arguments: switch for switch in SWITCHES if switch.arguments}
    places = tables[only((i for i, table in enumerate(tables) if switches.keys() <= table.keys()), "precisions")]

    def number(key: tuple[int, ...]) -> int:
        return int.from_bytes(memory(places[key], 4), "little")  # type: ignore[index]

    for key, switch in switches.items():
        device, operation = switch.ask.args  # type: ignore[attr-defined]
        was = number(key)
        if was < len(PRECISIONS):  # others can't be set again
            set_fp32_precision(device, operation, PRECISIONS[was == 0])
            now = number(key)
            set_fp32_precision(device, operation, PRECISIONS[was])
            if now != (was == 0) or number(key) != was:
                raise Unknown("precisions")
    return [load(place, 4) for place in places.values()]


def find_priorities(context: int) -> list[Load]:
    """Where the order of attention's kernels stands."""
    order = sdp_priority_order()

    def integers() -> tuple[int, ...]:
        return struct.unpack(f"<{CONTEXT * 2}i", memory(context, CONTEXT * WORD))

    at = place_of_sequence(integers(), order)
    try:
        set_sdp_priority_order(order[::-1])
        if list(integers()[at : at + len(order)]) != order[::-1]:
            raise Unknown("order of kernels")
    finally:
        set_sdp_priority_order(order)
    return [load(context + 4 * (at + i), 4) for i in range(len(order))]


def find_token() -> Load:
    """Where the number stands that changes when an abstract class registers another."""
    module_state = ctypes.pythonapi.PyModule_GetState
    module_state.restype, module_state.argtypes = ctypes.c_void_p, [ctypes.py_object]
    state = module_state(sys.modules["_abc"]) or 0
    before, was = words(state, 2), abc.get_cache_token()
    abc.ABCMeta("Abstract", (), {}).register(Unknown)
    after, now = words(state, 2), abc.get_cache_token()
    place = only((i for i in range(2) if (before[i], after[i]) == (was, now) and was != now), "token")
    return state + WORD * place, 2**64 - 1


def find_state() -> bool:
    """Let the extension read torch's state, if all is as expected."""
    TOLD.clear()
    try:
        library, name = thread_keys()
        context = context_address()
        loads, functions = loads_and_calls(state_functions())
        switch_loads, switches = loads_and_calls(switch_functions())
        places = merged([*loads, *find_precisions(context), find_token()])
        switch_places = merged([*switch_loads, *find_priorities(context)])
        readers = (tuple(functions), tuple(switches), places, switch_places)
        _C.set_state_readers((library, name, 0, 0, *readers))
        pairs = [keys_of_autocast(device) for device in AUTOCAST_TYPES]
        mask, off = (functools.reduce(operator.or_, some) for some in zip(*pairs, strict=True))
        _C.set_state_readers((library, name, mask, off, *readers))
        check_state()
    except Exception:
        _C.set_state_readers(None)
        return False
    TOLD.update((sdp_priority_order, abc.get_cache_token))
    return True


def check_of(function: Callable[[], Any], kind: str) -> str:
    """The check that holds what the function tells to its value: `kind` where that is among what is read."""
    return kind if function in TOLD else "call0_is"


def keys_of_autocast(device: str) -> tuple[int, int]:
    """Bits of the keys that this thread excludes which autocast for the device changes, and what they are without."""
    try:
        was = torch.is_autocast_enabled(device)
        torch.set_autocast_enabled(device, False)
        off = _C.state_words()
        torch.set_autocast_enabled(device, True)
        on = _C.state_words()
        torch.set_autocast_enabled(device, was)
    except RuntimeError:  # this build knows no autocast for it
        return 0, 0
    if off is None or on is None:
        raise Unknown("state")
    return off[1] ^ on[1], off[1] & (off[1] ^ on[1])


def check_state() -> None:
    """Raise `Unknown` unless what is read follows what this thread sets."""
    autocast = [torch.is_autocast_enabled(device) for device in ("cpu", "cuda")]
    before = _C.state_words()
    if (before is None) != any(autocast):
        raise Unknown("autocast")
    if before is None:
        return
    grad = torch.is_grad_enabled()
    set_grad_enabled(not grad)
    other = _C.state_words()
    set_grad_enabled(grad)
    with InferenceMode(not torch.is_inference_mode_enabled()):
        inference = _C.state_words()
    if len({before, other, inference}) != 3 or _C.state_words() != before or torch.get_num_threads() not in before[2:]:
        raise Unknown("state")
