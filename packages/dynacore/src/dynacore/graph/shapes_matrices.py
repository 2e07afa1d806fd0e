"""Shapes where sizes vary, as in `shapes_open`: linear algebra, and tensors made of diagonals, grids and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .layouts import Declined, broadcast
from .shapes_open import Same, Shape, is_tensor, shape, without
from .shapes_views import numbers, place
from .sizes import Shaped, product


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two sizes."""
    return a if a <= b else b


def square(x: Shaped) -> tuple[Any, Any]:
    """The number of rows and columns, which are the same."""
    if x.shape[-1] != x.shape[-2]:
        raise Declined
    return x.shape[-1], x.shape[-1]


# -- matrices ---------------------------------------------------------------------------------------------------------


@shape(
    "inverse linalg_inv linalg_cholesky cholesky cholesky_inverse matrix_exp linalg_matrix_exp linalg_matrix_power "
    "matrix_power"
)
def like_a_square(x: Shaped, *args: Any, **named: Any) -> Shape:
    return (*x.shape[:-2], *square(x))


@shape("trace det logdet linalg_det linalg_slogdet slogdet linalg_matrix_rank")
def of_matrices(x: Shaped, *args: Any, **named: Any) -> Any:
    """A number for each matrix, or several."""
    if args or named or x.dim() < 2:
        raise Declined
    return Same(x.shape[:-2])


@shape("linalg_matrix_norm")
def matrix_norm(x: Shaped, ord: Any = "fro", dim: Any = (-2, -1), keepdim: Any = False) -> Shape:
    return without(x, dim, keepdim)


@shape("linalg_norm linalg_vector_norm")
def norm(x: Shaped, ord: Any = None, dim: Any = None, keepdim: Any = False, **named: Any) -> Shape:
    return without(x, dim, keepdim)


@shape("linalg_qr qr")
def qr(x: Shaped, mode: str = "reduced") -> Any:
    if mode != "reduced":
        raise Declined
    *batch, rows, columns = x.shape
    both = smaller(rows, columns)
    return [(*batch, rows, both), (*batch, both, columns)]


@shape("linalg_svdvals")
def svdvals(x: Shaped) -> Shape:
    return (*x.shape[:-2], smaller(*x.shape[-2:]))


@shape("linalg_eigvalsh")
def eigvalsh(x: Shaped, *args: Any) -> Shape:
    return (*x.shape[:-2], square(x)[0])


@shape("linalg_eigh")
def eigh(x: Shaped, *args: Any) -> Any:
    return [eigvalsh(x), (*x.shape[:-2], *square(x))]


@shape("linalg_lu_factor")
def lu_factor(x: Shaped) -> Any:
    return [tuple(x.shape), svdvals(x)]


@shape("linalg_solve linalg_solve_triangular")
def solve(a: Shaped, b: Shaped, **named: Any) -> Shape:
    """Several right sides at once."""
    if named.get("out") is not None or a.dim() != b.dim() or a.dim() < 2:
        raise Declined
    return (*broadcast([a.shape[:-2], b.shape[:-2]]), *b.shape[-2:])


@shape("linalg_pinv pinverse")
def pinv(x: Shaped) -> Shape:
    *batch, rows, columns = x.shape
    return (*batch, columns, rows)


# -- products ---------------------------------------------------------------------------------------------------------


@shape("cross linalg_cross")
def cross(a: Shaped, b: Shaped, *args: Any, **named: Any) -> Shape:
    return tuple(broadcast([a.shape, b.shape]))


@shape("linalg_multi_dot chain_matmul")
def multi_dot(*matrices: Any) -> Shape:
    """Matrices one after the other."""
    if len(matrices) == 1 and not is_tensor(matrices[0]):
        matrices = tuple(matrices[0])
    if any(x.dim() != 2 for x in matrices):
        raise Declined
    return (matrices[0].shape[0], matrices[-1].shape[1])


@shape("inner")
def inner(a: Shaped, b: Shaped) -> Shape:
    if not a.dim() or not b.dim() or a.shape[-1] != b.shape[-1]:
        raise Declined
    return (*a.shape[:-1], *b.shape[:-1])


@shape("tensordot")
def tensordot(a: Shaped, b: Shaped, dims: Any = 2, out: None = None) -> Shape:
    """Sums over pairs of dimensions: the last of one and the first of the other, or as listed."""
    if type(dims) is int:
        mine, theirs = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        mine, theirs = ([place(d, x.dim()) for d in chosen] for x, chosen in zip((a, b), dims, strict=True))
    if out is not None or any(a.shape[d] != b.shape[e] for d, e in zip(mine, theirs, strict=True)):
        raise Declined
    left = [size for d, size in enumerate(a.shape) if d not in mine]
    return (*left, *[size for d, size in enumerate(b.shape) if d not in theirs])


@shape("kron")
def kron(a: Shaped, b: Shaped) -> Shape:
    ndim = max(a.dim(), b.dim())
    rows = ((1,) * (ndim - x.dim()) + tuple(x.shape) for x in (a, b))
    return tuple([n * m for n, m in zip(*rows, strict=True)])


@shape("addmv")
def addmv(bias: Shaped, a: Shaped, b: Shaped, **named: Any) -> Shape:
    return (a.shape[0],)


@shape("ger")
def ger(a: Shaped, b: Shaped) -> Shape:
    return (*a.shape, *b.shape)


@shape("_grouped_mm")
def grouped_mm(a: Shaped, b: Shaped, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Shape:
    """Groups of rows, each with a matrix of its own."""
    if a.dim() != 2 or b.dim() != 3:
        raise Declined
    return (a.shape[0], b.shape[2])


# -- diagonals, grids and pairs ---------------------------------------------------------------------------------------


@shape("diag")
def diag(x: Shaped, diagonal: int = 0) -> Shape:
    """A matrix with this diagonal, or a matrix's."""
    if x.dim() == 1:
        size = x.shape[0] + abs(diagonal)
        return (size, size)
    if diagonal != 0:
        raise Declined
    return (smaller(*x.shape),)


@shape("diagflat")
def diagflat(x: Shaped, offset: int = 0) -> Shape:
    size = x.numel() + abs(offset)
    return (size, size)


@shape("diag_embed")
def diag_embed(x: Shaped, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Shape:
    size = x.shape[-1] + abs(offset)
    first, second = sorted(place(d, x.dim() + 1) for d in (dim1, dim2))
    rest = list(x.shape[:-1])
    rest.insert(first, size)
    rest.insert(second, size)
    return tuple(rest)


@shape("block_diag")
def block_diag(*tensors: Any) -> Shape:
    if any(x.dim() != 2 for x in tensors):
        raise Declined
    rows, columns = ([x.shape[d] for x in tensors] for d in (0, 1))
    return (sum(rows[1:], rows[0]), sum(columns[1:], columns[0]))


@shape("cartesian_prod")
def cartesian_prod(*tensors: Shaped) -> Shape:
    if len(tensors) < 2:
        raise Declined
    return (product([x.shape[0] for x in tensors]), len(tensors))


@shape("pdist")
def pdist(x: Shaped, p: Any = 2.0) -> Shape:
    return (x.shape[0] * (x.shape[0] - 1) // 2,)


@shape("linalg_vander")
def vander(x: Shaped) -> Shape:
    return (*x.shape, x.shape[-1])


def below(n: Any, offset: Any) -> Any:
    """How many places of a square matrix lie on a diagonal or below it."""
    if offset > 0:
        return n * n - below(n, -1 - offset)
    rows = n + offset
    return rows * (rows + 1) // 2 if rows > 0 else 0


@shape("tril_indices")
def tril_indices(row: Any, col: Any, offset: int = 0, **named: Any) -> Shape:
    """Places in a square matrix on one side of a diagonal, which counts."""
    if row != col:
        raise Declined
    return (2, below(row, offset))


@shape("triu_indices")
def triu_indices(row: Any, col: Any, offset: int = 0, **named: Any) -> Shape:
    """The same of the other side."""
    if row != col:
        raise Declined
    return (2, row * row - below(row, offset - 1))


# -- new tensors ------------------------------------------------------------------------------------------------------


@shape("hann_window hamming_window bartlett_window blackman_window kaiser_window fft_fftfreq")
def of_length(n: Any, *args: Any, **named: Any) -> Shape:
    return numbers((n,))


@shape("logspace")
def logspace(start: Any, end: Any, steps: Any, *args: Any, **named: Any) -> Shape:
    return numbers((steps,))


@shape("fft_rfftfreq")
def rfftfreq(n: Any, *args: Any, **named: Any) -> Shape:
    return (n // 2 + 1,)


@shape("tensor as_tensor new_tensor scalar_tensor")
def tensor(*data: Any, **named: Any) -> Shape:
    """Numbers in nested lists."""
    return lengths(data[-1])


def lengths(data: Any) -> Shape:
    """The lengths of nested lists."""
    if isinstance(data, Sequence) and not is_tensor(data) and not isinstance(data, str):
        return (len(data), *(lengths(data[0]) if data else ()))
    if is_tensor(data):
        raise Declined
    return ()


__all__: list[str] = []
