# SPDX-License-Identifier: Apache-2.0
"""What differs between versions of PyTorch, and nothing else. Tested with 1.13, tried with 2.6 and 2.14 (scripts/suite-check)."""
import contextlib
import inspect

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

try:
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
except ImportError:  # a version that raises something else for both

    class DataDependentOutputException(RuntimeError):
        pass

    class DynamicOutputShapeException(RuntimeError):
        pass


__all__ = [
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "TorchDispatchMode",
    "bytes_of_storage",
    "draws_random_numbers",
    "fake_mode",
    "mode_of_gradients",
    "result_without_running",
    "storage_key",
    "sums_in_any_order",
]


def fake_mode():
    """Tensors with shapes and no memory; a result that depends on their numbers raises."""
    options = inspect.signature(FakeTensorMode.__init__).parameters
    if "throw_on_data_dependent_ops" in options:
        return FakeTensorMode(throw_on_data_dependent_ops=True)
    return FakeTensorMode()


def result_without_running(operation, args):
    """What PyTorch 1.13 could only find out by running the operation on real memory, and what later versions predict
    wrongly; None for all others."""
    rules = _RESULTS if torch.__version__.startswith("1.") else _LATER_RESULTS
    rule = rules.get(operation._schema.name)
    return rule(*args) if rule else None


def mode_of_gradients(operation):
    """Makes the operation do what it does in training: oneDNN's recurrent layers keep their gates for the backward pass
    only where gradients are enabled."""
    return torch.enable_grad() if operation._schema.name == "aten::mkldnn_rnn_layer" else contextlib.nullcontext()


def _convolution_backward(gradient, image, weight, bias_sizes, *rest):
    wanted, layout = rest[-1], torch.contiguous_format
    for operand in (image, weight):
        if operand.dim() == 4 and not operand.is_contiguous() and operand.is_contiguous(memory_format=torch.channels_last):
            layout = torch.channels_last
    return (
        torch.empty_like(image, memory_format=layout) if wanted[0] else None,
        torch.empty_like(weight, memory_format=layout) if wanted[1] else None,
        gradient.new_empty(bias_sizes) if wanted[2] else None,
    )


def _batch_norm_backward(gradient, image, weight, *rest):
    wanted, channels = rest[-1], [image.shape[1]]
    learned = image if weight is None else weight  # mixed types: statistics have the weight's
    return (
        torch.empty_like(image) if wanted[0] else None,
        learned.new_empty(channels) if wanted[1] else None,
        learned.new_empty(channels) if wanted[2] else None,
    )


def _adaptive_pool_backward(gradient, image):
    return torch.empty_like(image)


_workspaces = {}  # bytes that a recurrent layer of oneDNN keeps, by shapes and options


def _mkldnn_rnn_layer(image, *rest):
    """PyTorch predicts no bytes for the workspace. Only oneDNN knows how many there are, so a layer of zeros is run."""
    operation, given = torch.ops.aten.mkldnn_rnn_layer.default, (image, *rest)
    key = tuple((each.shape, each.stride(), each.dtype) if isinstance(each, torch.Tensor) else repr(each) for each in given)
    if key not in _workspaces:
        with _without_modes(), torch.enable_grad():
            real = [_zeros_like(each) if isinstance(each, torch.Tensor) else each for each in given]
            _workspaces[key] = operation(*real)[-1].numel()
    output, hidden, cells, _ = operation(*given)
    return output, hidden, cells, image.new_empty([_workspaces[key]], dtype=torch.uint8)


def _zeros_like(fake):
    return torch.empty_strided(tuple(fake.shape), tuple(fake.stride()), dtype=fake.dtype).zero_()


def _without_modes():
    from torch.utils._python_dispatch import _disable_current_modes

    return _disable_current_modes()


def _batch_norm(image, weight, *rest):
    """With an image of another type than the weight's, PyTorch predicts statistics of the image's type and makes such of the
    weight's."""
    output, *statistics = torch.ops.aten.native_batch_norm.default(image, weight, *rest)
    if weight is not None and weight.dtype != image.dtype:
        statistics = [each.new_empty(each.shape, dtype=weight.dtype) for each in statistics]
    return (output, *statistics)


_LATER_RESULTS = {"aten::mkldnn_rnn_layer": _mkldnn_rnn_layer, "aten::native_batch_norm": _batch_norm}
_RESULTS = {
    "aten::convolution_backward": _convolution_backward,
    "aten::native_batch_norm_backward": _batch_norm_backward,
    "aten::_adaptive_avg_pool2d_backward": _adaptive_pool_backward,
}


def _storage(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()


def storage_key(tensor):
    """The same for all tensors of one storage, as long as one of them is alive."""
    return _storage(tensor)._cdata


def bytes_of_storage(tensor):
    return _storage(tensor).nbytes()


# Operations that draw from a generator; newer versions tag them.
_RANDOM = {
    "_fused_dropout", "bernoulli", "bernoulli_", "binomial", "cauchy_", "exponential_", "geometric_", "log_normal_",
    "multinomial", "native_dropout", "normal", "normal_", "poisson", "rand", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "random", "random_", "randperm", "rrelu_with_noise", "rrelu_with_noise_", "uniform",
    "uniform_",
}  # fmt: skip


def draws_random_numbers(operation):
    tag = getattr(torch.Tag, "nondeterministic_seeded", None)
    if tag is not None and tag in getattr(operation, "tags", ()):
        return True
    return operation._schema.name.split("::")[1] in _RANDOM


# Add to the same element from several threads, unless PyTorch was told to use deterministic algorithms: the lists of
# torch.use_deterministic_algorithms. On a processor that are only those that accumulate by index.
_ACCUMULATING = {"_index_put_impl_", "_unsafe_index_put", "index_put", "index_put_", "put", "put_"}
_UNORDERED_ON_GPUS = {
    "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward", "_ctc_loss_backward", "_embedding_bag_dense_backward",
    "adaptive_max_pool2d_backward", "avg_pool3d_backward", "bincount", "convolution_backward", "cumsum",
    "embedding_dense_backward", "fractional_max_pool2d_backward", "fractional_max_pool3d_backward", "grid_sampler_2d_backward",
    "grid_sampler_3d_backward", "histc", "index_add", "index_add_", "index_reduce", "max_pool3d_with_indices_backward",
    "max_unpool2d", "max_unpool3d", "nll_loss2d_forward", "reflection_pad1d_backward", "reflection_pad2d_backward",
    "reflection_pad3d_backward", "replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward",
    "scatter_add", "scatter_add_", "scatter_reduce", "upsample_bicubic2d_backward", "upsample_bilinear2d_backward",
    "upsample_linear1d_backward", "upsample_trilinear3d_backward",
}  # fmt: skip


def sums_in_any_order(operation, args, kwargs):
    """Whether PyTorch leaves open in which order the operation adds, so that the same operands may give other bits."""
    if torch.are_deterministic_algorithms_enabled():
        return False
    name = operation._schema.name.split("::")[1]
    if name in _ACCUMULATING:
        return bool(_argument(operation, args, kwargs, "accumulate"))
    if name not in _UNORDERED_ON_GPUS or args[0].device.type == "cpu":
        return False
    return name != "convolution_backward" or not torch.backends.cudnn.deterministic


def _argument(operation, args, kwargs, wanted):
    for place, argument in enumerate(operation._schema.arguments):
        if argument.name == wanted:
            return kwargs.get(wanted, args[place] if place < len(args) else argument.default_value)
    return None
