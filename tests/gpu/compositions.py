"""Random programs of tensor operations, as source. They are run while they are drawn: what eager refuses is left out.

Numbers start as multiples of 1/4. What jumps (comparisons, rounding, positions) is applied to tensors only whose
numbers are still exact, so that both ways of computing have to agree.
"""

import torch
from hypothesis import strategies as st

SIZES = (0, 1, 2, 3, 5, 7, 8)
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.uint8, torch.int8)
DTYPES = (*FLOATS, *INTEGERS, torch.bool)
LARGEST = 4096

SMOOTH = (
    "{x} + {y}", "{x} * {y}", "{x} - {y}.abs()", "torch.maximum({x}, {y})", "{x} * 2 + 1", "-{x}", "{x}.abs()",
    "{x}.relu()",
    "{x}.clamp(-1, 2)", "torch.where({x} == {x}, {x}, {y})", "{x} / ({y}.abs() + 1)", "{x}.sigmoid()",
    "({x} * 0.1).exp()",
    "{x}.float().softmax({d})", "{x}.float().log_softmax({d})", "F.gelu({x}.float())", "{x}.square()", "{x} ** 3",
    "{x}.double() / 3", "torch.lerp({x}.float(), {y}.float(), 0.25)", "torch.addcmul({x}, {x}, {y})",
)  # fmt: skip
JUMPING = (
    "{x} > {y}", "{x}.floor()", "{x}.sign()", "{x} == {y}", "({x} > 0).to(torch.int32)", "{x}.to(torch.int64)",
    "~({x} > 1)",
    "{x}.long() // 3", "{x}.long() % 4", "{x}.argmax({d})", "{x}.max({d})[1]", "{x}.round()",
    "torch.where({x} > 0, {y}, {x})",
    "{x}.masked_fill({x} > 1, 2)", "{x}.bool()", "{x}.long() & 6", "{x}.to(torch.int8)", "({x} > 0).sum({d})",
    "{x}.any({d})",
)  # fmt: skip
REDUCTIONS = (
    "{x}.sum()", "{x}.sum({d})", "{x}.float().mean({d}, keepdim=True)", "{x}.amax({d})",
    "{x}.float().var({d}, correction=0)",
    "{x}.sum({d}, keepdim=True)", "{x}.amin({d}, keepdim=True)", "{x}.float().mean()", "{x}.float().logsumexp({d})",
    "{x}.all()",
    "{x}.cumsum({d})", "{x}.sum((0, -1))", "{x}.max()", "F.layer_norm({x}.float(), {x}.shape[-1:])",
    "({x}.float() * 0.5).prod({d})",
)  # fmt: skip
MOVES = (
    "{x}.transpose({d}, {e})", "{x}[1:]", "{x}[::2]", "{x}[..., :-1]", "{x}.flip({d})", "{x}.unsqueeze({d})",
    "{x}.flatten()",
    "{x}.reshape(-1, {n})", "{x}.contiguous()", "torch.cat([{x}, {y}], {d})", "torch.stack([{x}, {x} + 1], {d})",
    "{x}.unsqueeze(0).expand(3, *{x}.shape)", "F.pad({x}, (1, 2), value=2)", "F.pad({x}, (-1, 1))",
    "{x}.roll(1, {d})",
    "{x}.squeeze()", "{x}.select({d}, 0)", "{x}.narrow({d}, 0, 1)", "{x}.split(2, {d})[-1]",
    "{x}.repeat(2, *[1] * {x}.ndim)",
    "{x}.index_select({d}, torch.tensor([0, 0]))", "{x}.diagonal()", "{x}.tril()", "{x}.unfold({d}, 2, 1)",
    "{x}.clone()",
    "{x}.take_along_dim({x}.argmax({d}, keepdim=True), {d})", "{x}.movedim(0, -1)",
    "torch.cat([{x}[:1], {x}, {x}[:0]])",
    "torch.slice_scatter({x}.contiguous(), {x}[:1] + 1, 0, 0, 1)", "{x}[torch.arange({x}.shape[0] - 1, -1, -1)]",
    "{x}.chunk(2, {d})[0]",
)  # fmt: skip
CASTS = tuple(f"{{x}}.to({dtype})" for dtype in FLOATS)
EXACT_ONLY = (*JUMPING, "{x}.take_along_dim({x}.argmax({d}, keepdim=True), {d})")
TEMPLATES = (SMOOTH, JUMPING, REDUCTIONS, MOVES, MOVES, CASTS)


def exact(value):
    """Whether all numbers are small multiples of 1/4, which every dtype computes alike."""
    if not value.is_floating_point():
        return True
    scaled = value.double() * 4
    return bool(((scaled == scaled.round()) & (scaled.abs() < 256)).all())


def evaluate(source, names):
    """What a line gives in eager, None where it is refused or too large."""
    try:
        value = eval(source, {"torch": torch, "F": torch.nn.functional}, dict(names))
    except (RuntimeError, IndexError, TypeError, ValueError):
        return None
    return value if isinstance(value, torch.Tensor) and value.numel() <= LARGEST else None


@st.composite
def inputs(draw):
    """A tensor: some are transposed, sliced, expanded or behind others in their memory."""
    shape = draw(st.lists(st.sampled_from(SIZES), max_size=3))
    dtype = draw(st.sampled_from(DTYPES))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    form = draw(st.sampled_from(["plain", "plain", "transposed", "strided", "expanded", "behind"]))
    wide = [2 * size for size in shape] if form == "strided" else shape
    wide = [*shape[:-1], 1] if form == "expanded" and shape else wide
    numbers = torch.randint(-8, 9, [2, *wide] if form == "behind" else wide, generator=generator)
    value = numbers.abs().to(dtype) if dtype in (torch.uint8, torch.bool) else (numbers / 4).to(dtype)
    if form == "transposed":
        return value.transpose(0, -1) if value.ndim else value
    if form == "strided":
        return value[tuple(slice(None, None, 2) for _ in shape)]
    return value.expand(shape) if form == "expanded" else value[1] if form == "behind" else value


@st.composite
def programs(draw, most=8):
    """Source of `f`, and its arguments."""
    names = {f"x{position}": value for position, value in enumerate(draw(st.lists(inputs(), min_size=1, max_size=3)))}
    count, lines = len(names), []
    for position in range(draw(st.integers(1, most))):
        template = draw(st.sampled_from(draw(st.sampled_from(TEMPLATES))))
        x, y = (draw(st.sampled_from(list(names)[-4:])) for _ in "xy")
        d, e = (draw(st.integers(-1, 2)) for _ in "de")
        source = template.format(x=x, y=y, d=d, e=e, n=draw(st.sampled_from([1, 2, 3, 4])))
        if template in EXACT_ONLY and not (exact(names[x]) and exact(names[y])):
            continue
        value = evaluate(source, names)
        if value is not None:
            names[f"t{position}"] = value
            lines.append(f"    t{position} = {source}")
    arguments = list(names)[:count]
    results = list(names)[count:][-3:] or arguments
    header = f"def f({', '.join(arguments)}):"
    return "\n".join([header, *lines, f"    return {', '.join(results)},"]), [names[name] for name in arguments]


def function_of(source):
    """The function of a program's source."""
    found = {"torch": torch, "F": torch.nn.functional}
    exec(compile(source, "<composition>", "exec"), found)
    return found["f"]
