"""Every private name of torch that the packages use, in this one file. Checked against each supported torch by a test.

What is slow to import is imported inside the function that needs it.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import linecache
import logging
import operator
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.optim.adamax import _multi_tensor_adamax as adamax_of_lists  # noqa: F401
from torch.optim.optimizer import _get_value as step_value  # noqa: F401

Tensor = torch.Tensor
TORCHS_FILES = str(Path(torch.__file__).parent)
#: where torch runs the program's functions under state of its own: transforms, and what torch.compile made
RUNNERS = tuple(
    f"{TORCHS_FILES}/{name}"
    for name in ("_functorch/apis.py", "_functorch/eager_transforms.py", "_functorch/vmap.py", "_dynamo/eval_frame.py")
)
#: functions there that only make others
MAKERS = frozenset("vmap chunk_vmap grad grad_and_value jacrev jacfwd hessian functionalize".split())
"""Where torch's own Python files are."""
TORCHS_CAPTURE = "torch._dynamo."
"""How the names of the modules begin in which torch's own marks are defined."""

# --- graph: what a torch operation is ------------------------------------------------------------------------------

VARIABLE_FUNCTIONS = torch._C._VariableFunctions  # the C functions behind `torch.*`
OpOverload = torch._ops.OpOverload
OPERATOR_TYPES = (OpOverload, torch._ops.OpOverloadPacket)


def op_namespaces() -> Iterator[Any]:
    """The objects whose attributes are operations written in C."""
    yield VARIABLE_FUNCTIONS
    for name in ("_nn", "_fft", "_linalg", "_special", "_sparse", "_nested"):
        namespace = getattr(torch._C, name, None)
        if namespace is not None:
            yield namespace


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """`function` of every leaf of nested containers."""
    from torch.utils._pytree import tree_map as mapped

    return mapped(function, tree)


# --- graph: tensors -----------------------------------------------------------------------------------------------

set_conj = torch._C._set_conj
set_neg = torch._C._set_neg
make_wrapper_subclass = torch.Tensor._make_wrapper_subclass
disabled_torch_function = torch._C._disabled_torch_function_impl


def body_address(tensor: torch.Tensor) -> int:
    """Where in memory lies what torch keeps behind a tensor."""
    return tensor._cdata


def storage_key(tensor: torch.Tensor) -> int:
    """Identifies the memory behind a tensor."""
    return tensor.untyped_storage()._cdata


check = torch._check
check_is_size = torch._check_is_size
assert_scalar = torch.ops.aten._assert_scalar.default  # what of `torch._check` compilers keep in a graph

@functools.cache
def takes_device(operation: Any) -> bool:
    """Whether an operator can be told on which device its result is to lie."""
    single = isinstance(operation, OpOverload)
    overloads = [operation] if single else [getattr(operation, name) for name in operation.overloads()]
    return any(argument.name == "device" for overload in overloads for argument in overload._schema.arguments)


# --- graph: state that changes what operations do -----------------------------------------------------------------

set_grad_enabled = torch._C._set_grad_enabled
InferenceMode = torch._C._InferenceMode
get_tracing_state = torch._C._get_tracing_state
any_autocast_enabled = torch._C._is_any_autocast_enabled
function_mode_depth = torch._C._len_torch_function_stack
dispatch_mode_depth = torch._C._len_torch_dispatch_stack
functorch_interpreter = torch._C._functorch.peek_interpreter_stack
log_api_usage_once = torch._C._log_api_usage_once
is_compiling = torch._utils.is_compiling
is_scripting = torch._jit_internal.is_scripting
has_torch_function = torch._C._has_torch_function
has_torch_function_unary = torch._C._has_torch_function_unary
has_torch_function_variadic = torch._C._has_torch_function_variadic
# A class method: in Python until torch 2.14, in C since.
autograd_apply = getattr(torch.autograd.Function.apply, "__func__", torch._C._FunctionBase.__dict__["apply"])


def autocast_nesting() -> int:
    """How many autocast blocks the thread is in; torch tells only when the number changes."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


enter_annotation = torch.ops.profiler._record_function_enter_new
ANNOTATION_IDS = "_cupti_monitor_external_id", "_cuspy_external_id"  # None, unless another observer was told


@functools.cache
def annotation_of_nothing() -> Any:
    """What entering an annotation gives while nothing observes; torch looks for other observers at the first."""
    with torch.profiler.record_function("") as made:
        return made.record


@functools.cache
def observers() -> Callable[[], bool]:
    """A C function: whether anything, such as a profiler, observes operations and annotations."""
    return ctypes.PYFUNCTYPE(ctypes.c_bool)(("_ZN2at12hasCallbacksEv", _library("libtorch_cpu.so")))


def function_mode_queries() -> list[Callable[..., Any]]:
    """Questions whose answer is False where nothing overrides torch's functions for all tensors."""
    return [
        torch._C._is_torch_function_mode_enabled,
        torch._C._are_functorch_transforms_active,
        torch._C._is_torch_function_all_disabled,
        torch._C._is_tracing,
    ]


class Switch(NamedTuple):
    """A setting of the process that chooses between kernels."""

    name: str  # as users know it
    ask: Callable[[], Any]
    method: str  # of ATen's context, which tells the same
    arguments: tuple[int, ...] = ()  # device and operation, as ATen numbers them


fp32_precision = torch._C._get_fp32_precision_getter
set_fp32_precision = torch._C._set_fp32_precision_setter
sdp_priority_order = torch._C._get_sdp_priority_order
set_sdp_priority_order = torch._C._set_sdp_priority_order


def _precisions() -> Iterator[Switch]:
    """What becomes of float32 in each kind of operation on each kind of device."""
    for number, (backend, user) in enumerate((("generic", ""), ("cuda", ".cudnn"), ("mkldnn", ".mkldnn"))):
        for k, operation in enumerate(("all", "conv", "rnn", "matmul") if user else ("all",)):
            owner = ".cuda" if (backend, operation) == ("cuda", "matmul") else user
            name = f"torch.backends{owner}{f'.{operation}' if k else ''}.fp32_precision"
            yield Switch(name, functools.partial(fp32_precision, backend, operation), "float32Precision", (number, k))


SWITCHES = (
    *(Switch(f"torch.{name}", getattr(torch._C, f"_get_{getter}"), method) for name, getter, method in (
        ("backends.cudnn.enabled", "cudnn_enabled", "userEnabledCuDNN"),
        ("backends.cudnn.benchmark", "cudnn_benchmark", "benchmarkCuDNN"),
        ("backends.cudnn.deterministic", "cudnn_deterministic", "deterministicCuDNN"),
        ("backends.mkldnn.enabled", "mkldnn_enabled", "userEnabledMkldnn"),
        ("backends.mkldnn.deterministic", "mkldnn_deterministic", "deterministicMkldnn"),
        ("backends.nnpack.enabled", "nnpack_enabled", "userEnabledNNPACK"),
        ("backends.cuda.matmul.allow_fp16_accumulation", "cublas_allow_fp16_accumulation",
         "allowFP16AccumulationCuBLAS"),
        ("backends.cuda.flash_sdp_enabled", "flash_sdp_enabled", "userEnabledFlashSDP"),
        ("backends.cuda.mem_efficient_sdp_enabled", "mem_efficient_sdp_enabled", "userEnabledMemEfficientSDP"),
        ("backends.cuda.math_sdp_enabled", "math_sdp_enabled", "userEnabledMathSDP"),
        ("backends.cuda.cudnn_sdp_enabled", "cudnn_sdp_enabled", "userEnabledCuDNNSDP"),
        ("backends.cuda.fp16_bf16_reduction_math_sdp_allowed", "math_sdp_allow_fp16_bf16_reduction",
         "allowFP16BF16ReductionMathSDP"),
        ("utils.deterministic.fill_uninitialized_memory", "deterministic_fill_uninitialized_memory",
         "deterministicFillUninitializedMemory"),
    )),
    *_precisions(),
)  # fmt: skip
"""What decides between kernels. ATen looks at these when a kernel runs; a compiler may look when it compiles."""


def backend_switches() -> list[Callable[[], Any]]:
    """Getters without arguments of settings that choose between kernels, most of `SWITCHES` among them."""
    endings = ("_enabled", "_tf32", "_benchmark", "_deterministic", "_matmul_precision", "_reduction", "_accumulation")
    names = [name for name in dir(torch._C) if name.startswith("_get_") and name.endswith(endings)]
    return [getattr(torch._C, name) for name in names]


def pure_functions() -> list[Callable[..., Any]]:
    """Functions of torch's build or of their arguments alone."""
    return [torch._C._is_autocast_available, torch._C._get_privateuse1_backend_name, torch._C._get_cpu_capability]


def global_state_check() -> Callable[[], bool]:
    """A C callable that says whether torch's state is what it is now.

    It covers grad mode, autocast, the default dtype, determinism, the number of threads, reduced-precision switches and
    whether `__torch_function__` is disabled.
    """
    return torch._C._dynamo.guards.GlobalStateGuard().check


def tensor_checker(specs: Sequence[Any]) -> Callable[..., bool]:
    """A C callable over a tensor per spec: whether type, dtype, device, shape, strides, requires_grad are as there."""
    guards = torch._C._dynamo.guards.TensorGuards(
        *[spec.example for spec in specs],
        dynamic_dims_sizes=[list(spec.shape) for spec in specs],
        dynamic_dims_strides=[list(spec.stride) for spec in specs],
    )
    for spec in specs:
        spec.example = None  # the guard keeps metadata only, and so do we
    return guards.check


def _library(name: str) -> ctypes.CDLL:
    """A library of torch's, which is loaded already."""
    return ctypes.CDLL(str(Path(torch.__file__).with_name("lib") / name))


def thread_keys() -> tuple[int, bytes]:
    """Library and name of the variable of each thread that holds the dispatch keys it includes and excludes.

    Inference mode, autocast, functorch's transforms and dispatch modes are among them.
    """
    library, name = _library("libc10.so"), "_ZN3c104impl26raw_local_dispatch_key_setE"
    getattr(library, name)
    return library._handle, name.encode()


def _at(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def context_address() -> int:
    """Of the object in which ATen keeps its settings."""
    return ctypes.CFUNCTYPE(ctypes.c_void_p)(_at(_library("libtorch_cpu.so"), "_ZN2at13globalContextEv"))() or 0


def state_functions() -> tuple[tuple[int, int, int, int, int, bool], ...]:
    """torch's functions that say what `torch_state_checks` ask for, for C to call.

    Each is (address, first argument, two more arguments, mask of the result, whether it refers to a vector). None of
    them can raise. What becomes of float32 isn't among them.
    """
    c10, cpu = _library("libc10.so"), _library("libtorch_cpu.so")
    byte, word, context = 0xFF, 0xFFFFFFFF, context_address()
    of_context = (
        "23deterministicAlgorithms", "31deterministicAlgorithmsWarnOnly", "24allowFP16ReductionCuBLAS",
        "24allowBF16ReductionCuBLAS",
    )  # fmt: skip
    return (
        (_at(c10, "_ZN3c108GradMode10is_enabledEv"), 0, 0, 0, byte, False),
        (_at(c10, "_ZN3c1013InferenceMode10is_enabledEv"), 0, 0, 0, byte, False),
        (_at(c10, "_ZN3c1017get_default_dtypeEv"), 0, 0, 0, 0xFFFF, False),
        (_at(c10, "_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv"), 0, 0, 0, word, False),
        (_at(cpu, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv"), 0, 0, 0, word, False),
        (_at(cpu, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv"), 0, 0, 0, word, False),
        (_at(cpu, "_ZN2at9functorch20getDynamicLayerStackEv"), 0, 0, 0, 2**64 - 1, True),
        (_at(cpu, "_ZN2at15get_num_threadsEv"), 0, 0, 0, word, False),
        *((_at(cpu, f"_ZNK2at7Context{name}Ev"), context, 0, 0, byte, False) for name in of_context),
    )


def switch_functions() -> tuple[tuple[int, int, int, int, int, bool], ...]:
    """As `state_functions`, what tells of those among `SWITCHES` that have no arguments."""
    cpu, context = _library("libtorch_cpu.so"), context_address()
    names = [f"_ZNK2at7Context{len(switch.method)}{switch.method}Ev" for switch in SWITCHES if not switch.arguments]
    return tuple((_at(cpu, name), context, 0, 0, 0xFF, False) for name in names)


# --- backends -----------------------------------------------------------------------------------------------------


def graph_module(root: Any, graph: torch.fx.Graph, name: str = "GraphModule") -> torch.fx.GraphModule:
    """A module that runs `graph`, and whose source goes with its code.

    torch.fx keeps the source of every graph for tracebacks, for as long as the process lives.
    """
    module = torch.fx.GraphModule(root, graph, name)
    code = module.forward.__code__
    weakref.finalize(code, _forget_source, code.co_filename).atexit = False
    return module


def _forget_source(filename: str) -> None:
    linecache.cache.pop(filename, None)
    torch.fx.graph_module._loader.eval_cache.pop(filename, None)


def aot_eager(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> tuple[Callable[..., Any], bool]:
    """The graph through AOTAutograd, forward and backward, without code generation.

    The second value says whether it changes any of its inputs in place.
    """
    from torch._functorch.aot_autograd import aot_module_simplified, make_boxed_func

    def run_as_it_is(graph: torch.fx.GraphModule, _inputs: Sequence[Any]) -> Callable[..., Any]:
        return make_boxed_func(graph.forward)

    compiler = functools.partial(aot_module_simplified, fw_compiler=run_as_it_is, keep_inference_input_mutations=True)
    return _through_aot_autograd(compiler, gm, inputs)


def inductor(
    gm: torch.fx.GraphModule, inputs: Sequence[Any], patches: Mapping[str, Any]
) -> tuple[Callable[..., Any], bool]:
    """The graph compiled by TorchInductor with these of its settings, and whether it changes an input in place."""
    from torch._inductor.compile_fx import compile_fx

    return _through_aot_autograd(functools.partial(compile_fx, config_patches=dict(patches)), gm, inputs)


def _through_aot_autograd(
    compiler: Callable[..., Any], gm: torch.fx.GraphModule, inputs: Sequence[Any]
) -> tuple[Callable[..., Any], bool]:
    from torch._guards import TracingContext, detect_fake_mode, tracing
    from torch._subclasses.fake_tensor import FakeTensorMode

    context = TracingContext(detect_fake_mode(inputs) or FakeTensorMode(allow_non_fake_inputs=True))
    with tracing(context):
        compiled = compiler(gm, inputs)
    found = context.fw_metadata
    mutates = found is None or any(info.mutates_data or info.mutates_metadata for info in found.input_info)
    return compiled, mutates


def aot_autograd(
    gm: torch.fx.GraphModule,
    inputs: Sequence[Any],
    compile_graph: Callable[[torch.fx.GraphModule, Sequence[Any], bool], Callable[[list[Any]], Any]],
    table: dict[Any, Callable[..., Any]],
    before_partition: Callable[[torch.fx.GraphModule], None],
) -> tuple[Callable[..., Any], bool]:
    """Forward and backward graphs of ATen operations, each given to `compile_graph(graph, inputs, is_backward)`.

    Operations in `table` are decomposed as it says; `before_partition` sees the joint graph. Returns what to call, and
    whether it changes an input in place.
    """
    from torch._functorch.aot_autograd import aot_module_simplified
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    def partition(joint: torch.fx.GraphModule, joint_inputs: Any, **keywords: Any) -> Any:
        before_partition(joint)
        return min_cut_rematerialization_partition(joint, joint_inputs, **keywords)

    def boxed(is_backward: bool) -> Callable[..., Any]:
        def compiler(graph: torch.fx.GraphModule, example: Sequence[Any]) -> Any:
            run = compile_graph(graph, example, is_backward)
            run._boxed_call = True  # type: ignore[attr-defined]
            return run

        return compiler

    compiler = functools.partial(
        aot_module_simplified, fw_compiler=boxed(False), bw_compiler=boxed(True), inference_compiler=boxed(False),
        partition_fn=partition, decompositions=table, keep_inference_input_mutations=True,
    )  # fmt: skip
    return _through_aot_autograd(compiler, gm, inputs)


@contextlib.contextmanager
def inferring() -> Iterator[None]:
    """Torch infers as for its own symbols; errors of operations on tensors without data are answers, and not logged."""
    from torch._dispatch.python import enable_python_dispatcher

    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before, logger.disabled = logger.disabled, True
    try:
        with enable_python_dispatcher():
            yield
    finally:
        logger.disabled = before


class Symbols:
    """Numbers as symbols of torch's `ShapeEnv`, and tensors without data whose sizes are expressions over them.

    `leaves` has for each symbol its value now, and whether it is a size, which is 2 or more. Expressions are as in
    `specialise.Varying`.
    """

    def __init__(self, leaves: Sequence[tuple[int, bool]]) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

        self.env = ShapeEnv()
        self.mode = FakeTensorMode(shape_env=self.env, allow_non_fake_inputs=True)
        self.mode.cache_enabled = False  # it is the process's, and would keep what is known of these symbols for ever
        self.symbols = []
        for k, (value, is_size) in enumerate(leaves):
            create = self.env.create_symbol if is_size else self.env.create_unspecified_symbol
            source = _source_class()(k)
            symbol = create(value, source, dynamic_dim=DimDynamic.DYNAMIC)
            self.symbols.append(self.env.create_symintnode(symbol, hint=value, source=source))

    @property
    def names(self) -> list[str]:
        """The symbols' names. (`expr` would have an equal in the place of one that was found to have one.)"""
        return [str(symbol.node._expr) for symbol in self.symbols]

    def number(self, expression: Any) -> Any:
        """An int, or a symbolic one."""
        if type(expression) is int:
            return expression
        if expression[0] == "leaf":
            return self.symbols[expression[1]]
        return SYMBOLIC_OPERATORS[expression[0]](self.number(expression[1]), self.number(expression[2]))

    def tensor(self, like: torch.Tensor, layout: Any, device: torch.device) -> torch.Tensor:
        """A tensor without data of this dtype, with (sizes, strides) as expressions."""
        sizes, strides = (tuple(map(self.number, numbers)) for numbers in layout)
        with self.mode:
            return torch.empty_strided(sizes, strides, dtype=like.dtype, device=device)

    def dispose(self) -> None:
        """Let go of all that is known of the symbols: caches of the process may keep the environment itself."""
        self.symbols.clear()
        vars(self.env).clear()

    def assumed(self) -> list[Any]:
        """What was assumed of the symbols so far, as sympy's expressions."""
        return [guard.expr for guard in self.env.guards]

    def expression(self, number: Any) -> Any:
        """A number as sympy's expression, or an int."""
        return number.node.expr if isinstance(number, torch.SymInt) else number


def open_inputs(
    inputs: Sequence[Any], leaves: Sequence[tuple[int, bool]], varying: Sequence[Any]
) -> tuple[list[Any], Callable[[], Callable[..., bool] | None]]:
    """Tensors without data whose sizes are symbols, and symbols for ints, in the place of `inputs`.

    `leaves` and `varying` are as in `specialise.Varying`. The second result, called once the inputs were compiled
    for, gives what that relied on as a condition over the leaves; None for no condition.
    """
    symbols = Symbols(leaves)
    examples: list[Any] = []
    for value, varies in zip(inputs, varying, strict=True):
        if not isinstance(value, torch.Tensor):
            examples.append(value if varies is None else symbols.number(varies))
        elif varies is None:
            examples.append(symbols.mode.from_tensor(value, static_shapes=True))
        else:
            examples.append(symbols.tensor(value, varies, value.device).requires_grad_(value.requires_grad))
    return examples, functools.partial(_conditions, symbols)


SYMBOLIC_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip


@functools.cache
def _source_class() -> Any:
    """Where a symbol comes from, as torch wants to know it."""
    from torch._guards import GuardSource, Source

    @dataclasses.dataclass(frozen=True)
    class Leaf(Source):
        number: int

        @property
        def guard_source(self) -> Any:
            return GuardSource.LOCAL

        @property
        def name(self) -> str:
            return f"n{self.number}"

    return Leaf


def _conditions(symbols: Symbols) -> Callable[..., bool] | None:
    """What was assumed of the symbols, as a function of their values."""
    symbols.env.freeze()
    assumed = dict.fromkeys(f"({source_of(expression)})" for expression in symbols.assumed())
    if not assumed:
        return None
    text = f"lambda {', '.join(symbols.names)}: {' and '.join(assumed)}"
    made: Callable[..., bool] = eval(text, dict(size_functions()))
    return made


def inductor_mode(mode: str, dynamic: bool | None) -> dict[str, Any]:
    """The settings of TorchInductor that a mode of torch.compile stands for."""
    from torch._inductor import list_mode_options

    return list_mode_options(mode, dynamic)


INDUCTOR_OPTIONS = "torch._inductor.list_options()"
"""Where a user finds all settings of TorchInductor."""


def inductor_settings() -> dict[str, Any]:
    """Every setting of TorchInductor with its value."""
    from torch._inductor import config

    return config.get_config_copy()


# --- the GPU backend ----------------------------------------------------------------------------------------------


def decompositions() -> tuple[dict[Any, Callable[..., Any]], Mapping[Any, Callable[..., Any]]]:
    """Torch's decompositions into core ATen, and all that it has."""
    from torch import _decomp

    return dict(_decomp._core_aten_decompositions_post_autograd()), _decomp.decomposition_table


def must_recompute() -> Any:
    """The mark of a node that the backward graph computes again instead of loading."""
    from torch.utils.checkpoint import CheckpointPolicy

    return CheckpointPolicy.MUST_RECOMPUTE


def schema_of(operation: Any) -> Any:
    """The schema of an ATen operation."""
    return operation._schema


def packet_name(operation: Any) -> str:
    """`aten.add` for any overload of it."""
    schema = getattr(operation, "_schema", None)
    return schema.name.replace("::", ".") if schema is not None else str(operation)


def sympy_expression(value: Any) -> Any:
    """What a symbolic number stands for, as a sympy expression."""
    return value.node.expr


def least(value: Any, expression: Any) -> int | None:
    """The least value that an expression over the symbols of a symbolic number may have, where that is known."""
    low = value.node.shape_env.bound_sympy(expression).lower
    return int(low) if low.is_Integer else None


def source_of(expression: Any) -> str:
    """A sympy expression as Python source, which names `size_functions`."""
    from torch.utils._sympy.printers import PythonPrinter

    return str(PythonPrinter().doprint(expression))


def size_functions() -> Mapping[str, Any]:
    """What the source of an expression over sizes may call."""
    from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP

    return SYMPY_INTERP


def without_autograd() -> Any:
    """A context in which ATen operations record nothing."""
    return torch._C._AutoDispatchBelowAutograd()


def current_raw_stream(device_index: int) -> int:
    """The handle of the current CUDA stream."""
    return torch._C._cuda_getCurrentRawStream(device_index)


def storage_uses(tensor: torch.Tensor) -> int:
    """How many references there are to the memory behind a tensor."""
    return torch._C._storage_Use_Count(storage_key(tensor))


def real_tensors() -> Any:
    """A context in which new tensors are real, whatever is being traced around it."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    return unset_fake_temporarily()


def is_fake(value: Any) -> bool:
    """Whether a tensor has no data."""
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor)
