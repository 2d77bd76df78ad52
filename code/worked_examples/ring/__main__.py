"""Run attention over a ring of ranks and say what each held, scored, waited for and took.

``torchrun --nproc-per-node 4 -m worked_examples.ring --length 65536 --causal`` starts four ranks;
``python -m worked_examples.ring`` is a ring of one. Where there are GPUs enough, each rank takes
one, with NCCL; else ranks compute on the CPU, with gloo.
"""

import argparse
import json
import os
import resource
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn import functional

from worked_examples.ring import ORDERS, Account, held_positions, ring_attention
from worked_examples.ring.orders import place

__all__ = ["main"]

_CHUNK = 4096  # positions drawn at a time, so that no rank holds the whole sequence
_DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m worked_examples.ring",
        description="Exact attention over a sequence that several ranks hold together.",
        epilog="More than one rank: torchrun --nproc-per-node 4 -m worked_examples.ring ...",
    )
    add = parser.add_argument
    add("--length", type=_at_least_one, default=4096, help="positions of the whole sequence")
    add("--heads", type=_at_least_one, default=1)
    add("--width", type=_at_least_one, default=64, help="d_k and d_v of a head")
    add("--causal", action="store_true", help="hide what comes later")
    add("--order", choices=ORDERS, default="striped", help="how positions are dealt to ranks")
    add("--dtype", choices=_DTYPES, default="float32")
    add("--backward", action="store_true", help="compute gradients as well: a second trip")
    add("--check", action="store_true", help="compare with the library's kernel, in float64")
    add("--seed", type=int, default=0, help="of the random inputs, the same for any ranks")
    add("--timeout", type=_seconds, default=300.0, help="seconds to wait for a rank at each step")
    add("--device", choices=("auto", "cpu"), default="auto", help="cpu: leave GPUs alone")
    add("--json", action="store_true", help="print JSON, numbers unrounded")
    return parser


def _at_least_one(text):
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1; got {text}")
    return number


def _seconds(text):
    if not 0 < (number := float(text)) < 1e6:
        raise argparse.ArgumentTypeError(f"must be above 0; got {text}")
    return number


def _device(choice):
    """Choose this rank's device and the library that sends between them."""
    local, ranks = (int(os.environ.get(name, default)) for name, default in
                    (("LOCAL_RANK", 0), ("LOCAL_WORLD_SIZE", 1)))  # fmt: skip
    enough = torch.cuda.is_available() and torch.cuda.device_count() >= ranks
    if choice == "auto" and enough and (ranks == 1 or dist.is_nccl_available()):
        torch.cuda.set_device(local)
        return torch.device("cuda", local), "nccl"
    return torch.device("cpu"), "gloo"


def _inputs(options, rows, device):
    """Draw the rows of Q, K and V at the given positions, whatever the number of ranks."""
    shape = (3, options.heads, len(rows), options.width)
    held = torch.empty(shape, dtype=_DTYPES[options.dtype], device=device)
    for start in range(0, options.length, _CHUNK):
        draw = torch.Generator().manual_seed(options.seed * 1_000_003 + start)
        length = min(_CHUNK, options.length - start)
        chunk = torch.randn((3, options.heads, length, options.width), generator=draw)
        here = (rows >= start) & (rows < start + length)
        held[:, :, here.to(device)] = chunk[:, :, rows[here] - start].to(held)
    return held.unbind(0)


def _peak_bytes(device, start=False):
    """Set the high-water mark of this process's memory to what it has now, or read it."""
    if device.type == "cuda":
        if start:
            torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.max_memory_allocated(device)
    try:  # Linux: the mark can be lowered
        if start:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
        with open("/proc/self/status") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _run(options, device):
    """Be one rank: make its rows, go around, and give what it has to tell."""
    rank, n = place()
    rows = held_positions(options.length, rank, n, options.order)
    _once(options, device)
    before = _peak_bytes(device, start=True)
    Q, K, V = (X.requires_grad_(options.backward) for X in _inputs(options, rows, device))
    account = Account()
    output = ring_attention(
        Q, K, V, causal=options.causal, order=options.order, timeout=options.timeout,
        account=account,
    )  # fmt: skip
    if options.backward:
        output.backward(torch.ones_like(output))
    # Linux adds up roughly what each processor counted: a peak may read as below the start.
    peak = max(_peak_bytes(device) - before, 0)
    told = {
        "rank": rank,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "positions": len(rows),
        "pairs": account.pairs,
        "computing_seconds": account.computing,
        "waiting_seconds": account.waiting,
        "sent_bytes": account.sent_bytes,
        "peak_bytes": peak,
    }
    if options.check:
        mine = [output, *(X.grad for X in (Q, K, V) if options.backward)]
        told["apart"] = _apart(options, rows, mine)
    return told


def _once(options, device):
    """Go around with one tile's rows: what libraries set up at first is not the ring's."""
    shape = (options.heads, min(1024, options.length), options.width)
    few = [
        torch.ones(shape, device=device, dtype=_DTYPES[options.dtype],
                   requires_grad=options.backward)
        for _ in range(3)
    ]  # fmt: skip
    output = ring_attention(*few, causal=options.causal, timeout=options.timeout)
    if options.backward:
        output.backward(torch.ones_like(output))


def _apart(options, rows, mine):
    """Compare with the library: the largest difference of output and gradients on this rank.

    Each rank computes its own queries against all keys, in float64, some rows at a time; what
    they give to the gradients of keys and values is added up over ranks.
    """
    everything = torch.arange(options.length)
    whole = [X.double().requires_grad_(options.backward)
             for X in _inputs(options, everything, torch.device("cpu"))]  # fmt: skip
    Q, K, V = whole
    outputs = []
    for part in rows.split(256):
        mask = everything <= part[:, None] if options.causal else None
        output = functional.scaled_dot_product_attention(Q[:, part], K, V, attn_mask=mask)
        if options.backward:
            output.sum().backward()
        outputs.append(output.detach())
    right = [torch.cat(outputs, dim=-2)]
    if options.backward:
        for X in (K, V):
            _sum_over_ranks(X.grad, mine[0].device)
        right += [X.grad[:, rows] for X in whole]
    return max(
        float((X.detach().cpu().double() - Y).abs().max()) for X, Y in zip(mine, right, strict=True)
    )


def _sum_over_ranks(X, device):
    if place()[1] > 1:
        there = X.to(device)
        dist.all_reduce(there)
        X.copy_(there)


def _report(options, ranks):
    """Put together what all ranks told: the command's answer."""
    names = ("length", "heads", "width", "causal", "order", "dtype", "backward")
    total = {
        "pairs": sum(row["pairs"] for row in ranks),
        "seconds": max(row["computing_seconds"] + row["waiting_seconds"] for row in ranks),
        "peak_bytes": max(row["peak_bytes"] for row in ranks),
    }
    if options.check:
        total["apart"] = max(row["apart"] for row in ranks)
    return {**{name: getattr(options, name) for name in names}, "ranks": ranks, "total": total}


def _text(report):
    yield (
        f"{report['length']} positions, {report['heads']} heads of width {report['width']}, "
        f"{report['dtype']}, {'causal, ' if report['causal'] else ''}{report['order']}"
        f"{', with gradients' if report['backward'] else ''}"
    )
    yield "rank  positions        pairs  computing s  waiting s  peak MiB  device"
    for row in report["ranks"]:
        yield (
            f"{row['rank']:4}  {row['positions']:9}  {row['pairs']:11}  "
            f"{row['computing_seconds']:11.2f}  {row['waiting_seconds']:9.2f}  "
            f"{row['peak_bytes'] / 2**20:8.1f}  {row['device']}"
        )
    total = report["total"]
    yield (
        f"all   {report['length']:9}  {total['pairs']:11}  {total['seconds']:.2f} s for the "
        f"slowest, {total['peak_bytes'] / 2**20:.1f} MiB at most"
    )
    if "apart" in total:
        yield f"apart from one process by {total['apart']:.1e}"


def main(arguments=None):
    """Run one rank of the command; the first rank prints.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default the process's own.

    Returns
    -------
    int
        Exit status: 0; argparse ends the process with 2 if the arguments cannot be.
    """
    parser = _parser()
    several = "RANK" in os.environ and "WORLD_SIZE" in os.environ
    rank, n = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE")) if several else (0, 1)
    if rank > 0:  # what is wrong is said once
        parser.print_usage = parser.print_help = lambda file=None: None
        parser.error = lambda message: sys.exit(2)
    options = parser.parse_args(arguments)
    if n > options.length:
        parser.error(f"each rank needs a position; got {n} ranks for --length {options.length}")
    device, backend = _device(options.device)
    if several:
        dist.init_process_group(backend, timeout=timedelta(seconds=options.timeout))
    told = _run(options, device)
    ranks = [told]
    if several:
        ranks = [None] * n
        dist.all_gather_object(ranks, told)
        dist.destroy_process_group()
    if rank == 0:
        report = _report(options, ranks)
        print(json.dumps(report) if options.json else "\n".join(_text(report)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(record(main)())  # torchrun shows what the first rank to fail has said
