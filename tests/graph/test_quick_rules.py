"""Every quick rule against its operation, in several layouts; and that contiguous tensors need no other rule."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from graph.fake_machine import Program
from graph.recorder import Recorder, tensor
from torch import nn

IDS = torch.tensor([0, 2, 1])
MASK = torch.tensor([True, False, True])
EDGES = torch.tensor([-1.0, 0.0, 1.0])

#: each of two matrices of 3 by 4, x and y
MATRICES = """
torch.erfinv(x) torch.lgamma(x) torch.digamma(x) torch.sinc(x) torch.asinh(x) torch.deg2rad(IDS) torch.special.expit(x)
torch.special.erfcx(x) torch.logit(x.sigmoid(),eps=1e-3) torch.nan_to_num(x,nan=1.0) x.frac() x.sgn() x.signbit()
x.round(decimals=1) x.isposinf() F.hardshrink(x) F.softshrink(x) F.tanhshrink(x) F.threshold(x,0.1,20.0)
F.softmin(x,dim=1) x.nansum(0) x.prod() x.prod(1) IDS.prod() x.copysign(y) x.logaddexp(y) torch.atan2(x,y[0])
torch.hypot(x,y) torch.fmax(x,y) x.heaviside(y) torch.xlogy(x,y) torch.xlogy(x,2.0) torch.complex(x,y)
torch.polar(x.abs(),y) IDS<<1 IDS>>IDS 1<<IDS ~IDS ~MASK IDS.logical_not() x.logical_not() x.clamp_min(0) x.clamp_max(y)
x.clamp(y,y+1) x.clamp(min=y) torch.isclose(x,y) x.float_power(2) IDS.float_power(2) F.prelu(x,y[0,:1]) F.prelu(x,y[0])
2**x torch.pow(2.5,x) x**y x**3 x.div(y,rounding_mode="floor") IDS.div(2,rounding_mode="trunc")
IDS.div(2) torch.divide(x,y) torch.std_mean(x) torch.std_mean(x,dim=1) torch.var_mean(x,dim=0,keepdim=True)
x.nanmean() x.nanmean(1) x.count_nonzero() x.count_nonzero(0) IDS.count_nonzero() x.aminmax() x.aminmax(dim=1)
torch.dist(x,y) torch.dot(x[0],y[0]) x[:3,:3].trace() torch.cdist(x,y) torch.cdist(x[None],y.expand(2,3,4))
x.aminmax(dim=0,keepdim=True) F.cosine_similarity(x,y) F.cosine_similarity(x,y[:1],dim=0)
F.pairwise_distance(x,y) F.pairwise_distance(x,y,keepdim=True)
x.sort() x.sort(0,descending=True) x.sort(stable=True) x.argsort() x.argsort(stable=True,dim=0) x.topk(2) x.topk(2,0)
x.topk(3,largest=False) x.kthvalue(2) x.kthvalue(1,0,True) IDS.sort() torch.bucketize(x,EDGES)
torch.searchsorted(EDGES,x) torch.histc(x,4) torch.multinomial(x.softmax(-1),2) x.all() x.any(1) x.all(0,keepdim=True)
torch.take(x,IDS) x.scatter(1,IDS[:,None],y) x.scatter(1,IDS[:,None],1.5) x.scatter(0,IDS[None],value=2)
x.scatter_reduce(1,IDS[:,None],y,"amax") x.index_copy(0,IDS,y) x.index_fill(0,IDS[:1],1.0) x.index_put((IDS,),y)
x.index_put((IDS,IDS),y[0,:3]) x.tile(2) x.tile(2,1,3) torch.vstack([x,y]) torch.vstack([x[0],y[0]]) torch.hstack([x,y])
torch.hstack([x[0],y[1]]) torch.einsum("ij,kj->ik",x,y) torch.einsum("ij,kj->ki",x,y) torch.einsum("ij,ij->i",x,y)
torch.einsum("ij,ij->j",x,y) torch.einsum("ij,j->i",x,y[0])
torch.einsum("bij,bjk->bki",x[None].expand(2,3,4),y.t()[None].expand(2,4,3)) torch.tensordot(x,y,([1],[1]))
x.inner(y) x.inner(y[0]) x.diff() x.diff(dim=0)
torch.tensordot(x,y,2) torch.tensordot(x,y.t(),1) torch.logspace(0,1,5) torch.arange(0,1,0.1) torch.arange(5.0,0,-2)
torch.arange(3) torch.arange(1,7,2) x.detach().clone().normal_() x.detach().clone().exponential_(2.0)
F.glu(x) F.glu(x,1) F.gumbel_softmax(x) F.gumbel_softmax(x,hard=True) F.bilinear(x,y,torch.ones(2,4,4))
F.mse_loss(x,y) F.smooth_l1_loss(x,y,beta=0.5) F.huber_loss(x,y,delta=2.0,reduction="none")
F.kl_div(x,y,reduction="batchmean") F.kl_div(x,y,log_target=True,reduction="sum") F.soft_margin_loss(x,y)
F.hinge_embedding_loss(x,y,margin=0.5) F.poisson_nll_loss(x,y,log_input=True) F.gaussian_nll_loss(x,y,y*y)
F.margin_ranking_loss(x,y,y,reduction="none") F.triplet_margin_loss(x,y,y+1)
F.triplet_margin_loss(x,y,y,reduction="none") F.cosine_embedding_loss(x,y,IDS) F.multi_margin_loss(x,IDS)
F.multilabel_soft_margin_loss(x,y.sigmoid(),reduction="none") F.cross_entropy(x,IDS,label_smoothing=0.1)
F.binary_cross_entropy_with_logits(x,y.sigmoid(),pos_weight=y[0].exp())
F.binary_cross_entropy_with_logits(x,y.sigmoid(),weight=y.exp(),reduction="none")
""".split()

ATTENTION = nn.MultiheadAttention(8, 2, batch_first=True)
LAYERS = {
    "lstm": (nn.LSTM(4, 5, 2, bidirectional=True), (3, 2, 4)),
    "lstm, batch first": (nn.LSTM(4, 5, batch_first=True), (2, 3, 4)),
    "gru": (nn.GRU(4, 5), (3, 2, 4)),
    "rnn, batch first": (nn.RNN(4, 5, batch_first=True, bidirectional=True), (2, 3, 4)),
    "lstm cell": (nn.LSTMCell(4, 5), (3, 4)),
    "gru cell": (nn.GRUCell(4, 5), (3, 4)),
    "rnn cell": (nn.RNNCell(4, 5, nonlinearity="relu"), (3, 4)),
    "attention layer": (lambda x: ATTENTION(x, x, x), (2, 3, 8)),
    "attention layer, each head's weights": (lambda x: ATTENTION(x, x, x, average_attn_weights=False), (2, 3, 8)),
    "masked attention layer": (
        lambda x: ATTENTION(x, x, x, attn_mask=torch.zeros(3, 3), need_weights=False),
        (2, 3, 8),
    ),
    "attention of one head": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), (2, 3, 8)),
    "masked attention of one head": (
        lambda x: F.scaled_dot_product_attention(x, x[:, :2], x[:, :2, :4], torch.ones(3, 2).bool()),
        (2, 3, 8),
    ),
    "dropout2d": (nn.Dropout2d(), (2, 4, 6, 6)),
    "alpha dropout": (nn.AlphaDropout(), (2, 4)),
    "instance norm": (nn.InstanceNorm1d(4, affine=True), (2, 4, 6)),
    "instance norm with statistics": (nn.InstanceNorm2d(4, track_running_stats=True), (2, 4, 6, 6)),
    "local response norm": (nn.LocalResponseNorm(2), (2, 4, 6, 6)),
    "conv, same size": (nn.Conv2d(4, 6, 3, padding="same", groups=2), (2, 4, 6, 6)),
    "conv, same size, even kernel": (nn.Conv1d(4, 6, 2, padding="same"), (2, 4, 6)),
    "max pool with indices": (nn.MaxPool2d(2, return_indices=True), (2, 4, 6, 6)),
    "max pool of volumes": (nn.MaxPool3d(2), (1, 2, 4, 4, 4)),
    "average of sequences": (nn.AvgPool1d(2), (2, 4, 6)),
    "average of volumes": (nn.AvgPool3d(2, 1), (1, 2, 4, 4, 4)),
    "adaptive average of sequences": (nn.AdaptiveAvgPool1d(2), (2, 4, 6)),
    "adaptive average of volumes": (nn.AdaptiveAvgPool3d((1, 2, 2)), (1, 2, 4, 4, 4)),
    "adaptive max": (nn.AdaptiveMaxPool2d(2), (2, 4, 6, 6)),
    "upsampled sequences": (nn.Upsample(scale_factor=2, mode="linear"), (2, 4, 6)),
    "upsampled volumes": (nn.Upsample(scale_factor=2, mode="trilinear", align_corners=True), (1, 2, 4, 4, 4)),
    "pixel shuffle": (nn.PixelShuffle(2), (2, 4, 3, 3)),
    "pixel unshuffle": (nn.PixelUnshuffle(2), (2, 1, 4, 4)),
    "reflected": (nn.ReflectionPad2d((1, 2, 0, 1)), (2, 4, 6, 6)),
    "repeated": (nn.ReplicationPad1d(2), (2, 4, 6)),
    "grid sample": (lambda x: F.grid_sample(x, torch.zeros(2, 3, 5, 2), align_corners=False), (2, 4, 6, 6)),
}


def laid_out(shape, layout, grad=False):
    """A tensor of the shape: contiguous, with its dimensions reversed in memory, or a part of a larger one."""
    if layout == "sliced":
        return tensor((*shape[:-1], 2 * shape[-1]))[..., ::2].requires_grad_(grad)
    return tensor(shape, list(reversed(range(len(shape)))) if layout == "reversed" else None, grad=grad)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("layout", ["contiguous", "reversed", "sliced"])
def test_functions(layout, grad):
    for text in MATRICES:
        x, y = laid_out((3, 4), layout, grad), laid_out((3, 4), layout)
        with Recorder() as recorder:
            eval(text, globals(), {"x": x, "y": y})
        assert recorder.names, text


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("layout", ["contiguous", "reversed", "sliced"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, layout, grad):
    layer, shape = LAYERS[name]
    x = laid_out(shape, layout, grad)
    with torch.set_grad_enabled(grad), Recorder() as recorder:
        layer(x)
    assert recorder.names


def test_contiguous_tensors_need_no_other_rule():
    """torch's own rules in Python load a symbolic algebra system and torch's compiler at their first use: seconds."""
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from graph.test_quick_rules import *
for text in (*MATRICES, *LAYERS):
    with Recorder():
        if text in LAYERS:
            layer, shape = LAYERS[text]
            layer(laid_out(shape, "contiguous"))
        else:
            eval(text, globals(), {"x": laid_out((3, 4), "contiguous"), "y": laid_out((3, 4), "contiguous")})
    loaded = {"sympy", "torch._dynamo"} & sys.modules.keys()
    assert not loaded, f"{text} loads {sorted(loaded)}"
"""
    command = [sys.executable, "-c", program, str(Path(__file__).parents[1])]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_mask_as_an_index_breaks_without_a_run():
    p = Program(torch.ones(3))
    with pytest.raises(Exception, match="mask"):
        p.call("__getitem__", p.inputs[0], p.call("gt", p.inputs[0], 0))
