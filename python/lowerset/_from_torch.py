"""Losses and optimizers of torch in the compiler's words."""

from __future__ import annotations

from collections.abc import Callable

Options = list[str]


def _number(value) -> str:
    return repr(float(value)) if float(value) != int(value) else str(int(value))


# ---- losses ----

def _mean(loss) -> None:
    if loss.reduction != "mean":
        raise ValueError(f"{type(loss).__name__} has reduction='{loss.reduction}': training takes "
                         "the mean over the batch; give a function (output, target) -> scalar for "
                         "another loss")


def _weights(loss) -> Options:
    if loss.weight is None:
        return []
    return ["--class-weights", ",".join(_number(w) for w in loss.weight.tolist())]


def _cross_entropy(loss) -> Options:
    _mean(loss)
    options = ["--loss", "ce", "--ignore-index", str(loss.ignore_index), *_weights(loss)]
    if loss.label_smoothing:
        options += ["--label-smoothing", _number(loss.label_smoothing)]
    return options


def _likelihood(loss) -> Options:
    _mean(loss)
    return ["--loss", "nll", "--ignore-index", str(loss.ignore_index), *_weights(loss)]


def _bce(loss) -> Options:
    _mean(loss)
    if loss.weight is not None or loss.pos_weight is not None:
        raise ValueError("BCEWithLogitsLoss has weights, which bce has not; give a function "
                         "(output, target) -> scalar")
    return ["--loss", "bce"]


def _divergence(loss) -> Options:
    if loss.reduction != "batchmean" or loss.log_target:
        raise ValueError("of KLDivLoss only reduction='batchmean' with log_target=False is known; "
                         "give a function (output, target) -> scalar")
    return ["--loss", "kl"]


def _plain(spec: Callable) -> Callable:
    def map_loss(loss) -> Options:
        _mean(loss)
        return ["--loss", spec(loss)]
    return map_loss


_LOSSES = {
    "CrossEntropyLoss": _cross_entropy,
    "NLLLoss": _likelihood,
    "BCEWithLogitsLoss": _bce,
    "KLDivLoss": _divergence,
    "MSELoss": _plain(lambda _: "mse"),
    "L1Loss": _plain(lambda _: "l1"),
    "SmoothL1Loss": _plain(lambda loss: f"smooth_l1@beta={_number(loss.beta)}"),
    "HuberLoss": _plain(lambda loss: f"huber@delta={_number(loss.delta)}"),
}


def loss_options(loss) -> Options:
    """Options for a loss module of torch. Raises ValueError with a reason if there are none."""
    name = type(loss).__name__
    if name not in _LOSSES or type(loss).__module__ != "torch.nn.modules.loss":
        raise ValueError(f"{name} is none of the losses that are known ({', '.join(_LOSSES)}): "
                         "give a function (output, target) -> scalar, which is exported with the "
                         "module")
    return _LOSSES[name](loss)


# ---- optimizers ----

def _betas(group: dict) -> dict:
    return {"beta1": group["betas"][0], "beta2": group["betas"][1]}


def _adam(group: dict) -> dict:
    if group.get("amsgrad"):
        raise ValueError("amsgrad=True is not known")
    return {**_betas(group), "eps": group["eps"], "wd": group["weight_decay"]}


def _sgd(group: dict) -> dict:
    if group["dampening"]:
        raise ValueError(f"dampening={group['dampening']} is not known")
    return {"momentum": group["momentum"], "wd": group["weight_decay"],
            "nesterov": bool(group["nesterov"])}


def _rmsprop(group: dict) -> dict:
    return {"alpha": group["alpha"], "eps": group["eps"], "momentum": group["momentum"],
            "wd": group["weight_decay"], "centered": bool(group["centered"])}


def _adagrad(group: dict) -> dict:
    return {"lr_decay": group["lr_decay"], "initial": group["initial_accumulator_value"],
            "eps": group["eps"], "wd": group["weight_decay"]}


def _nadam(group: dict) -> dict:
    return {**_betas(group), "eps": group["eps"], "momentum_decay": group["momentum_decay"],
            "wd": group["weight_decay"], "decoupled": bool(group["decoupled_weight_decay"])}


def _radam(group: dict) -> dict:
    return {**_betas(group), "eps": group["eps"], "wd": group["weight_decay"],
            "decoupled": bool(group["decoupled_weight_decay"])}


_OPTIMIZERS = {"SGD": ("sgd", _sgd), "Adam": ("adam", _adam), "AdamW": ("adamw", _adam),
               "RMSprop": ("rmsprop", _rmsprop), "Adagrad": ("adagrad", _adagrad),
               "NAdam": ("nadam", _nadam), "RAdam": ("radam", _radam)}


def _one_group(optimizer) -> dict:
    """The settings of all groups of parameters. Some groups may be without weight decay."""
    groups = [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]
    common = next((g for g in groups if g["weight_decay"]), groups[0])
    for group in groups:
        for key, value in common.items():
            spared = key == "weight_decay" and not group[key]
            if group.get(key) != value and not spared:
                raise ValueError(f"the optimizer's groups of parameters differ in {key} ({value} "
                                 f"and {group.get(key)}), and the program has one setting for all, "
                                 "but for groups without weight decay; freeze='GLOB' leaves "
                                 "parameters out of training")
    return common


def optimizer_options(optimizer) -> Options:
    """Options for an optimizer of torch that has made no step yet.

    Raises ValueError with a reason for kinds, settings and states that the program cannot have.
    """
    name = type(optimizer).__name__
    if name not in _OPTIMIZERS or not type(optimizer).__module__.startswith("torch.optim."):
        raise ValueError(f"{name} is none of the optimizers that are known "
                         f"({', '.join(_OPTIMIZERS)}): give a name as --optimizer takes it")
    if any("step" in s or s.get("momentum_buffer") is not None
           for s in optimizer.state.values() if float(s.get("step", 1)) != 0):
        raise ValueError(f"{name} has made steps already, and its moments would be lost: give a "
                         "new one, or its name")
    group = _one_group(optimizer)
    if group.get("maximize"):
        raise ValueError(f"{name} has maximize=True: training minimises; negate the loss")
    kind, settings = _OPTIMIZERS[name]
    if kind == "adam" and group.get("decoupled_weight_decay"):
        kind = "adamw"
    parts = [k if v is True else f"{k}={float(v)!r}" for k, v in settings(group).items()
             if v is not False]
    options = ["--optimizer", kind + ":" + ",".join(parts)]
    if group["weight_decay"]:
        options += ["--no-decay", "none"]       # torch's decay all, biases and norms, too
    return options


def _names(module, tensors: set[int]) -> set[str]:
    return {k for k, p in module.named_parameters(remove_duplicate=False) if id(p) in tensors}


def untrained(module, optimizer) -> set[str]:
    """Names of the module's parameters that the optimizer does not have."""
    own = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return _names(module, {id(p) for p in module.parameters()} - own)


def undecayed(module, optimizer) -> set[str]:
    """Names of the module's parameters that are in a group without weight decay, beside groups that
    have some."""
    groups = optimizer.param_groups
    if not any(g["weight_decay"] for g in groups):
        return set()
    return _names(module, {id(p) for g in groups if not g["weight_decay"] for p in g["params"]})
