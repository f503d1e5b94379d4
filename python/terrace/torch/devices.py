# SPDX-License-Identifier: Apache-2.0
"""Which models this version can fit: those on one device, the computer's memory."""
import torch

from ..errors import InvalidRequest, Unsupported


def require_fittable(model):
    if not isinstance(model, torch.nn.Module):
        raise InvalidRequest(f"fit takes a torch.nn.Module and was given a {type(model).__name__}")
    devices = sorted({str(each.device) for each in [*model.parameters(), *model.buffers()]})
    if len(devices) > 1:
        raise InvalidRequest(f"the model lies on {' and '.join(devices)}, and fit works on one device: move it to one of them")
    if devices and not devices[0].startswith("cpu"):
        raise Unsupported(f"the model lies on {devices[0]}, and this version fits models in the computer's memory alone")
