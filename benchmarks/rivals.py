"""What jostle is compared with: scripts that people write, in plain torch, without intervals.

* ``grid``: the papers' protocol. A batch of inputs, a loop over all tokens, five draws, all inputs.
* ``fixed``: a careful researcher who knows the sample size beforehand: one random (input, token, noise) a row, batches
  of 128, texts sorted by length and cut to the longest of a batch.
* ``released``: the protocol of the code that came with paper 1. Images: five passes an image, noise in as many random
  pixels as a patch has. Texts: one by one, each token five times in one batch.

Each function makes about ``passes`` jostled passes of one network and returns how many it made. Clean passes count.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

PATCH, BATCH, DRAWS = 4, 128, 5
Rival = Callable[[nn.Module, Tensor, float, int], int]


def _moved(model: nn.Module, noise: Tensor, ids: Tensor, columns: Tensor) -> Tensor:
    """Predictions for texts whose embedding in one column is moved."""

    def add(_module: nn.Module, _given: object, output: Tensor) -> Tensor:
        output = output.clone()
        output[torch.arange(len(ids)), columns] += noise
        return output

    handle = model.embeddings.register_forward_hook(add)
    try:
        return model(ids).argmax(dim=1)
    finally:
        handle.remove()


def _lengths(ids: Tensor) -> Tensor:
    return (ids != 0).sum(dim=1)


def grid(model: nn.Module, inputs: Tensor, std: float, passes: int) -> int:
    done = flips = 0
    is_text = inputs.dim() == 2
    order = _lengths(inputs).argsort() if is_text else torch.arange(len(inputs))
    start = len(order) // 2 if is_text else 0  # about the average length
    while done < passes:
        batch = inputs[order[start : start + BATCH]]
        width = int(_lengths(batch).max()) if is_text else batch.shape[-1] // PATCH
        batch = batch[:, :width] if is_text else batch
        clean = model(batch).argmax(dim=1)
        done += len(batch)
        for token in range(width if is_text else width**2):
            for _ in range(DRAWS):
                if is_text:
                    noise = std * torch.randn(len(batch), model.embeddings.words.embedding_dim)
                    found = _moved(model, noise, batch, torch.full((len(batch),), token))
                else:
                    moved, row, column = batch.clone(), token // width * PATCH, token % width * PATCH
                    part = moved[:, :, row : row + PATCH, column : column + PATCH]
                    part += std * torch.randn(part.shape)
                    found = model(moved).argmax(dim=1)
                flips += int((found != clean).sum())
                done += len(batch)
                if done >= passes:
                    return done
        start += BATCH
    return done


def fixed(model: nn.Module, inputs: Tensor, std: float, passes: int) -> int:
    chosen = torch.randint(len(inputs), (passes,))
    clean = torch.zeros(len(inputs), dtype=torch.int64)  # of all inputs, made before; their time is added by the caller
    flips = 0
    if inputs.dim() == 2:
        lengths = _lengths(inputs)
        chosen = chosen[lengths[chosen].argsort()]
        for some in chosen.split(BATCH):
            ids, columns = inputs[some, : int(lengths[some].max())], (torch.rand(len(some)) * lengths[some]).long()
            noise = std * torch.randn(len(some), model.embeddings.words.embedding_dim)
            flips += int((_moved(model, noise, ids, columns) != clean[some]).sum())
        return passes
    side = inputs.shape[-1] // PATCH
    for some in chosen.split(BATCH):
        batch = inputs[some].clone()
        rows, columns = torch.randint(side, (2, len(some)))
        patches = batch.view(len(some), -1, side, PATCH, side, PATCH)
        noise = std * torch.randn(len(some), batch.shape[1], PATCH, PATCH)
        patches[torch.arange(len(some)), :, rows, :, columns] += noise
        flips += int((model(batch).argmax(dim=1) != clean[some]).sum())
    return passes


def released(model: nn.Module, inputs: Tensor, std: float, passes: int) -> int:
    done = flips = 0
    if inputs.dim() == 2:
        lengths = _lengths(inputs)
        for index in torch.randperm(len(inputs)).tolist():
            length = int(lengths[index])
            clean = model(inputs[index : index + 1, :length]).argmax(dim=1)
            ids = inputs[index : index + 1, :length].expand(length * DRAWS, -1)
            noise = std * torch.randn(length * DRAWS, model.embeddings.words.embedding_dim)
            found = _moved(model, noise, ids, torch.arange(length).repeat_interleave(DRAWS))
            flips += int((found != clean).sum())
            done += 1 + length * DRAWS
            if done >= passes:
                return done
        return done
    pixels = inputs.shape[-1] ** 2
    for some in torch.randperm(len(inputs)).split(BATCH):
        batch = inputs[some]
        clean = model(batch).argmax(dim=1)
        done += len(some)
        for _ in range(DRAWS):
            moved = batch.clone().view(len(some), batch.shape[1], -1)
            places = torch.rand(len(some), pixels).topk(PATCH**2).indices[:, None].expand(-1, batch.shape[1], -1)
            moved.scatter_add_(2, places, std * torch.randn(places.shape))
            flips += int((model(moved.view_as(batch)).argmax(dim=1) != clean).sum())
            done += len(some)
        if done >= passes:
            return done
    return done


def clean(model: nn.Module, inputs: Tensor, std: float, passes: int, *, by_token: bool = False) -> int:  # noqa: ARG001
    """Plain inference on ideal batches: sorted by length, batches of 128.

    ``by_token``: an input is asked about in proportion to its tokens, as in a grid.
    """
    chosen = torch.randint(len(inputs), (passes,))
    if by_token and inputs.dim() == 2:
        chosen = _lengths(inputs).double().multinomial(passes, replacement=True)
    if inputs.dim() == 2:
        lengths = _lengths(inputs)
        chosen = chosen[lengths[chosen].argsort()]
        batches = [inputs[some, : int(lengths[some].max())] for some in chosen.split(BATCH)]
    else:
        batches = [inputs[some] for some in chosen.split(BATCH)]
    for batch in batches:
        model(batch)
    return passes
