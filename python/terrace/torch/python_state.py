# SPDX-License-Identifier: Apache-2.0
"""What Python code may change beside tensors: a step that is traced once and repeated must leave it alone."""
import contextlib
import inspect
import random

from .recording import NotCapturable


def plain_state(model):
    """Attributes of all modules that are no tensors and may steer the forward pass, such as `training`."""
    return tuple(
        (name, value)
        for module in model.modules()
        for name, value in vars(module).items()
        if isinstance(value, (bool, int, float, str, type(None)))
    )


@contextlib.contextmanager
def unchanged(model, loss=None):
    """Raises NotCapturable where the model or the loss changes such state meanwhile. Then, and where something else is
    raised, the model's attributes and Python's generator are as they were."""
    modules = list(model.modules())
    state, attributes, generator = plain_state(model), [dict(vars(module)) for module in modules], random.getstate()
    around = _around(loss)
    try:
        yield
        if (plain_state(model), random.getstate()) != (state, generator):
            raise NotCapturable("the forward pass changes attributes of modules or draws random numbers of Python's")
        changed = [name for name, value in _around(loss).items() if around.get(name, value) != value]
        if changed:
            raise NotCapturable(f"the loss changes {' and '.join(changed)}, which a captured step would not do again")
    except BaseException:
        for module, before in zip(modules, attributes):
            vars(module).clear()
            vars(module).update(before)
        random.setstate(generator)
        raise


def _around(function):
    """Variables around a function that it names: numbers and texts by value, containers by their length."""
    try:
        found = inspect.getclosurevars(function)
    except TypeError:  # no function of Python's
        return {}
    named = {**found.globals, **found.nonlocals}
    plain = {name: value for name, value in named.items() if isinstance(value, (bool, int, float, str, type(None)))}
    return {**plain, **{name: len(value) for name, value in named.items() if isinstance(value, (list, dict, set))}}
