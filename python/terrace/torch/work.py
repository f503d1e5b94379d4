# SPDX-License-Identifier: Apache-2.0
"""Floating-point operations of a call, for estimates on machines where it was not timed."""


def flops_of(call):
    name = call.name().split("::")[1]
    if name in _COUNTED:
        return int(_COUNTED[name](call))
    return sum(view.elements() for view in [*call.outputs, *call.written] if view is not None)


def _product(call):
    left, right = [view for view in call.operands() if len(view.size) >= 2][-2:]
    return 2 * left.elements() * right.size[-1]


def _convolution(call):
    weight, output = call.args[1], call.outputs[0]
    if call.args[6]:  # transposed: every input element meets the window
        return 2 * call.args[0].elements() * weight.elements() // max(weight.size[0], 1)
    return 2 * output.elements() * weight.elements() // max(weight.size[0], 1)


def _convolution_backward(call):
    gradient, image, weight = call.args[:3]
    wanted = sum(bool(flag) for flag in call.args[10][:2])
    swept = image if call.args[7] else gradient
    return wanted * 2 * swept.elements() * weight.elements() // max(weight.size[0], 1)


_COUNTED = {
    "mm": _product,
    "addmm": _product,
    "bmm": _product,
    "baddbmm": _product,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
}
