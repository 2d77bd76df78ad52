"""Start rings of processes on this machine and write down what each rank saw.

``python tests/ring_processes.py FOLDER SCENARIO:RANKS ...`` imports torch once, and forks the ranks
of each scenario; a process of its own, since a forked test runner would take its threads along.
Rank r of a scenario leaves FOLDER/SCENARIO-RANKS-r.json. Nothing is judged here: the tests do.
"""

import itertools
import json
import os
import signal
import sys
import time
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from worked_examples.ring import (
    ORDERS,
    Account,
    deal,
    gather_sequence,
    held_positions,
    local,
    pairs_of_ranks,
    ring_attention,
)
from worked_examples.ring.travel import Hop, Ring

LATE = 120  # seconds after which a rank counts as hanging
PATIENCE = 4.0  # seconds that a ring waits for a rank that stands still


def inputs(L, lead=(), d_k=5, d_v=3, dtype=torch.float64, size=1.0, seed=0):
    """Draw the same whole sequences on every rank."""
    draw = torch.Generator().manual_seed(seed)
    shapes = ((*lead, L, d_k), (*lead, L, d_k), (*lead, L, d_v))
    return [size * torch.randn(s, generator=draw, dtype=torch.float64).to(dtype) for s in shapes]


def leaves(tensors):
    return [X.detach().clone().requires_grad_() for X in tensors]


def differences(whole, weight, exact, held, **options):
    """Run the ring on this rank's rows; give how far output and gradients are from `exact`."""
    mine = leaves(X[..., held, :] for X in whole)
    output = ring_attention(*mine, **options)
    output.backward(weight[..., held, :].to(output.dtype))
    came = [output.detach(), *(X.grad for X in mine)]
    return [
        float((X.double() - Y[..., held, :]).abs().max() / max(1, Y.abs().max()))
        for X, Y in zip(came, exact, strict=True)
    ]


def reference(whole, weight, mask=None):
    """Compute output and gradients of the whole sequence by the library, in float64."""
    exact = leaves(X.double() for X in whole)
    output = functional.scaled_dot_product_attention(*exact, attn_mask=mask)
    output.backward(weight)
    return [output.detach(), *(X.grad for X in exact)]


def weights_for(whole):
    draw = torch.Generator().manual_seed(99)
    Q, _, V = whole
    return torch.randn((*Q.shape[:-1], V.shape[-1]), generator=draw, dtype=torch.float64)


def equal(rank, n):
    """Meet the library over masks, orders, lengths, leading axes and types."""
    rows = []
    kinds = [  # leading axes, type, size of a tile
        ((), torch.float64, (3, 4)), ((2, 3), torch.float64, (256, 1024)),
        ((), torch.float32, (256, 1024)), ((2, 3), torch.float32, (3, 4)),
    ]  # fmt: skip
    for causal, order, L, (lead, dtype, tile) in itertools.product(
        (False, True), ORDERS, (n, 23), kinds
    ):
        whole = inputs(L, lead, dtype=dtype)
        weight = weights_for(whole)
        mask = torch.ones(L, L, dtype=torch.bool).tril() if causal else None
        exact = reference(whole, weight, mask)
        held = held_positions(L, rank, n, order)
        apart = differences(
            whole, weight, exact, held, causal=causal, order=order, rows=tile[0], columns=tile[1]
        )
        rows.append({"causal": causal, "order": order, "L": L, "dtype": str(dtype), "apart": apart})
    return rows


def odd(rank, n):
    """Uneven cuts, fewer keys than queries, padding, large scores, bfloat16, a part of all."""
    found = {}
    # Contiguous rows may be cut anywhere; the last rank may hold none at all.
    L = 19
    whole = inputs(L, (2,))
    weight = weights_for(whole)
    lower = torch.ones(L, L, dtype=torch.bool).tril()
    cuts = [0, 1, *([12] if n > 2 else []), *([19] if n > 3 else []), L]
    rows = torch.arange(cuts[rank], cuts[rank + 1])
    if len(rows):
        found["any cut"] = differences(whole, weight, reference(whole, weight, lower), rows,
                                       causal=True, order="contiguous")  # fmt: skip
    else:
        mine = leaves(X[..., rows, :] for X in whole)
        output = ring_attention(*mine, causal=True, order="contiguous")
        output.sum().backward()
        found["any cut"] = [float(X.numel()) for X in (output, *(X.grad for X in mine))]

    # Queries of another length than keys.
    Q, K, V = inputs(8 * n)[0], *inputs(5 * n, seed=1)[1:]
    output = ring_attention(*(deal(X) for X in (Q, K, V)))
    exact = functional.scaled_dot_product_attention(Q, K, V)
    found["L_q != L_k"] = float((gather_sequence(output) - exact).abs().max())

    # Padding: what stands there is never seen, and a sequence that is all padding gives zeros.
    L = 16
    Q, K, V = inputs(L, (3,))
    real = torch.arange(L) < torch.tensor([[L], [9], [0]])
    K, V = (X.masked_fill(~real[..., None], torch.nan) for X in (K, V))
    rows = held_positions(L, rank, n)
    for causal in (False, True):
        mine = leaves(X[..., rows, :] for X in (Q, K, V))
        output = ring_attention(*mine, real=real[..., rows], causal=causal, rows=3, columns=2)
        output.sum().backward()
        seen = real[:, None, :] & (torch.ones(L, L).tril() > 0 if causal else True)
        clean = leaves((Q, K.nan_to_num(0), V.nan_to_num(0)))
        exact = functional.scaled_dot_product_attention(*(X[:2] for X in clean), attn_mask=seen[:2])
        exact.sum().backward()
        grads = [X.grad - Y.grad[:, rows] for X, Y in zip(mine, clean, strict=True)]
        apart = [output[:2] - exact[:, rows], *grads]
        found[f"padding, causal {causal}"] = [float(X.detach().abs().max()) for X in apart]
        found[f"nothing to see, causal {causal}"] = float(output[2].detach().abs().max())

    # Scores near 1e3 and 1e6: no overflow, on the way back neither.
    for dtype, size in ((torch.float32, 20.0), (torch.float64, 600.0)):
        whole = inputs(12, dtype=dtype, size=size)
        weight = weights_for(whole)
        lower = torch.ones(12, 12, dtype=torch.bool).tril()
        for order in ORDERS:
            found[f"large scores {size:.0f} {order}"] = differences(
                whole, weight, reference(whole, weight, lower), held_positions(12, rank, n, order),
                causal=True, order=order, columns=2,
            )  # fmt: skip

    whole = inputs(32, (2,), dtype=torch.bfloat16)
    weight = weights_for(whole)
    found["bfloat16"] = differences(whole, weight, reference(whole, weight),
                                    held_positions(32, rank, n))  # fmt: skip

    # A ring of some of the ranks: the last two.
    some = dist.new_group([n - 2, n - 1])
    if rank >= n - 2:
        whole = inputs(10)
        mine = [deal(X, order="zigzag", group=some) for X in whole]
        output = ring_attention(*mine, causal=True, order="zigzag", group=some)
        exact = functional.scaled_dot_product_attention(*whole, is_causal=True)
        found["some ranks"] = float(
            (gather_sequence(output, order="zigzag", group=some) - exact).abs().max()
        )

    # Dealt out and gathered, it is what it was.
    X = torch.arange(2 * 11 * 2.0).reshape(2, 11, 2)
    found["gathered"] = [
        bool(torch.equal(gather_sequence(deal(X, order=o), order=o), X)) for o in ORDERS
    ]
    found["refused"] = refusals(rank, n)
    return found


def refusals(rank, n):
    """Give one rank what cannot be: all must say so, none may be left waiting."""
    X = torch.ones(2, 4, 3)
    last = rank == n - 1
    cases = {
        "widths": ((X, X[..., :2] if last else X, X), {}),
        "dtype": ([X.double() if last else X] * 3, {}),
        "leading": ([X[:1] if last else X] * 3, {}),
        "numbers": ([X.long() if last else X] * 3, {}),
        "causal": ([X] * 3, {"causal": last}),
        "order": ([X] * 3, {"causal": True, "order": "mixed" if last else "striped"}),
        "lengths": ([X[:, :1] if last else X] * 3, {"causal": True}),
        "mask": ([X] * 3, {"real": torch.ones(4, dtype=torch.bool)} if last else {}),
        "mask type": ([X] * 3, {"real": torch.ones(4)}),
        "rows": ([X] * 3, {"rows": 0}),
        "no keys": ((X, X[:, :0], X[:, :0]), {}),
    }
    said = {}
    for name, (tensors, options) in cases.items():
        try:
            ring_attention(*tensors, **options)
            said[name] = "nothing"
        except ValueError as error:
            said[name] = str(error)
    return said


class Peak(TorchDispatchMode):
    """Count the bytes of the tensors that are made and still alive, and the most there were."""

    def __init__(self):
        super().__init__()
        self.alive, self.most, self.known = 0, 0, {}

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        result = function(*arguments, **(named or {}))
        for X in tree_flatten(result)[0]:
            if isinstance(X, torch.Tensor):
                self.watch(X.untyped_storage())
        return result

    def watch(self, storage):
        self.forget()
        key = storage._cdata
        if key not in self.known:
            self.known[key] = (torch.multiprocessing.reductions.StorageWeakRef(storage),
                               storage.nbytes())  # fmt: skip
            self.alive += storage.nbytes()
            self.most = max(self.most, self.alive)

    def forget(self):
        for key, (reference_, size) in list(self.known.items()):
            if reference_.expired():
                self.alive -= size
                del self.known[key]


def memory(rank, n):
    """Count the bytes over this rank's inputs that a trip takes, there and back."""
    found = {}
    for L in (256, 512):
        whole = inputs(L, d_k=16, d_v=16, dtype=torch.float32)
        mine = leaves(X[held_positions(L, rank, n)] for X in whole)
        del whole
        account = Account()
        with Peak() as peak:
            output = ring_attention(*mine, causal=True, rows=32, columns=32, account=account)
            forward = peak.most
            output.sum().backward()
        found[L] = {"forward": forward, "both": peak.most, "account": vars(account),
                    "pairs": pairs_of_ranks(L, n)[rank]}  # fmt: skip
    return found


def travel(rank, n):
    """Work on each block until the next one is there, and write down who had waited for it."""
    coming, waits, arrived = [], [], []
    hand_on, wait, absorb = Ring.hand_on, Hop.wait, local.absorb

    def watched(self, outgoing, arriving, *rest, **named):
        for X in arriving:
            X.fill_(torch.nan)
        coming.append(arriving)
        return hand_on(self, outgoing, arriving, *rest, **named)

    def counted(self):
        waits.append(1)
        wait(self)

    def slow(*arguments, **named):
        if len(arrived) < len(coming):  # not behind the last block
            end = time.monotonic() + LATE / 4
            while (missing := any(X.isnan().any() for X in coming[-1])) and time.monotonic() < end:
                time.sleep(0.01)
            arrived.append({"there": not missing, "waits": len(waits)})
        return absorb(*arguments, **named)

    Ring.hand_on, Hop.wait, local.absorb = watched, counted, slow
    ring_attention(*(deal(X) for X in inputs(8 * n)))
    return arrived


def lost(rank, n, *, ends, at_step, backward=False):
    """Let the last rank end at a step, or stand still, and hear what the others say."""
    hops, hand_on = itertools.count(), Ring.hand_on

    def stumbling(self, *arguments, **named):
        if rank == n - 1 and next(hops) == at_step:
            if ends:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(2 * LATE)
        return hand_on(self, *arguments, **named)

    Ring.hand_on = stumbling
    X = leaves(deal(X) for X in inputs(8 * n))
    start = time.perf_counter()
    try:
        output = ring_attention(*X, timeout=PATIENCE)
        if backward:
            output.sum().backward()
        return {"said": "nothing"}
    except RuntimeError as error:
        return {"said": str(error), "kind": type(error).__name__,
                "seconds": time.perf_counter() - start}  # fmt: skip


SCENARIOS = {
    "equal": equal,
    "odd": odd,
    "memory": memory,
    "travel": travel,
    "killed": lambda rank, n: lost(rank, n, ends=True, at_step=n // 2 - 1),
    "killed-backward": lambda rank, n: lost(rank, n, ends=True, at_step=n + 1, backward=True),
    "still": lambda rank, n: lost(rank, n, ends=False, at_step=0),
}


def child(folder, name, rank, n):
    """Be one rank of one scenario."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{name}-{n}.store", rank=rank, world_size=n,
        timeout=timedelta(seconds=LATE),
    )  # fmt: skip
    result = SCENARIOS[name](rank, n)
    (folder / f"{name}-{n}-{rank}.json").write_text(json.dumps(result))
    if name in ("equal", "odd", "memory", "travel"):
        dist.barrier()
        dist.destroy_process_group()
        return
    # Who has given up stays until all have: else the others might lose this one first.
    others = [folder / f"{name}-{n}-{other}.json" for other in range(n - 1)]
    end = time.monotonic() + LATE / 2
    while time.monotonic() < end and not all(file.is_file() for file in others):
        time.sleep(0.02)


def play(folder, name, n):
    """Fork the ranks of a scenario and wait for them; give their exit statuses, None if late."""
    children = []
    for rank in range(n):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                child(folder, name, rank, n)
                status = 0
            except BaseException:
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(status)
        children.append(pid)
    statuses, end = [None] * n, time.monotonic() + LATE
    # A rank that is to stand still would not end: once the others have, it is told to.
    patient = n - 1 if name == "still" else n
    while time.monotonic() < end and None in statuses[:patient]:
        for rank, pid in enumerate(children):
            if statuses[rank] is None:
                done, status = os.waitpid(pid, os.WNOHANG)
                statuses[rank] = os.waitstatus_to_exitcode(status) if done else None
        time.sleep(0.02)
    for pid, status in zip(children, statuses, strict=True):
        if status is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return statuses


def main(folder, scenarios):
    folder = Path(folder)
    statuses = {}
    for scenario in scenarios:
        name, n = scenario.split(":")
        statuses[scenario] = play(folder, name, int(n))
    (folder / "statuses.json").write_text(json.dumps(statuses))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
