"""Start a ring of processes on this machine, as torchrun does, and read what it says."""

import json
import os
import subprocess
import sys
from pathlib import Path

__all__ = ["launch"]


def launch(processes, *flags, timeout=300):
    """Run ``torchrun --nproc-per-node PROCESSES -m worked_examples.ring FLAGS`` and wait for it.

    It takes some seconds: each process imports torch for itself.

    Parameters
    ----------
    processes : int
        How many ranks.
    *flags : str
        For ``worked_examples.ring``, as "--causal".
    timeout : float
        Seconds after which it is ended.

    Returns
    -------
    dict
        What the command says with ``--json``: its settings, `ranks` (one dict a rank: pairs,
        seconds, bytes) and `total`.

    Raises
    ------
    RuntimeError
        If the command fails; the message ends with what it said.
    subprocess.TimeoutExpired
        If it takes too long.
    """
    root = str(Path(__file__).resolve().parents[2])  # the folder of the package
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    # All ranks are here: whatever name this machine has elsewhere, they meet on its loopback.
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone",
         "--nproc-per-node", str(processes), "-m", "worked_examples.ring", *flags, "--json"],
        env={**os.environ, "PYTHONPATH": path, "GLOO_SOCKET_IFNAME": loopback},
        capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the ring of {processes} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)
