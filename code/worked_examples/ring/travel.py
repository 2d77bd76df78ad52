"""How blocks travel around a ring of ranks, and what is said when one of them is gone.

Each rank sends to the next one and receives from the one before. A hop is started, then the rank
computes, then it waits: while a block is worked on, the next is under way.
"""

import math
import time
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from worked_examples.ring.orders import place

__all__ = ["Account", "LostRankError", "Ring"]


class LostRankError(RuntimeError):
    """A neighbour on the ring is gone, or has not answered in time."""


@dataclass
class Account:
    """What a rank did on its way around, added up.

    Attributes
    ----------
    pairs : int
        Pairs of a query and a key that were scored, of one head.
    computing, waiting : float
        Seconds at work on blocks, and seconds in which the next had not arrived.
    sent_bytes : int
        What was handed on.
    buffer_bytes : int
        The most that was set aside for what arrives, at one time.
    """

    pairs: int = 0
    computing: float = 0.0
    waiting: float = 0.0
    sent_bytes: int = 0
    buffer_bytes: int = 0


class Ring:
    """One rank's place in the ring: its two neighbours, and how long it waits for them.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup, optional
        By default all ranks. Without a process group it is a ring of one.
    timeout : float, optional
        Seconds to wait for a neighbour; by default as long as the group does.
    account : Account, optional
        Is added to.

    Raises
    ------
    ValueError
        If the timeout is not above 0.
    """

    def __init__(self, group=None, timeout=None, account=None):
        if timeout is not None and not timeout > 0:
            raise ValueError(f"the timeout is in seconds, above 0; got {timeout}")
        self.group, self.timeout = group, timeout
        self.account = Account() if account is None else account
        self.rank, self.n = place(group)

    def exchange(self, facts):
        """Give every rank's facts, small Python objects, to all.

        Parameters
        ----------
        facts : object

        Returns
        -------
        list
            In the order of ranks.

        Raises
        ------
        LostRankError
            If not all of them come.
        """
        if self.n == 1:
            return [facts]
        everyone = [None] * self.n
        try:
            dist.all_gather_object(everyone, facts, group=self.group)
        except RuntimeError as error:
            raise LostRankError(
                f"rank {self.rank} of {self.n}: not all ranks came to the ring's start ({error})"
            ) from error
        return everyone

    def blocks(self, own, shapes, beside=0):
        """Yield this rank's block, then those that arrive, each while the next one is under way.

        Parameters
        ----------
        own : list of tensor
            Contiguous. They are read, not written.
        shapes : list of list of tuple of int
            For each rank, the shapes of its tensors.
        beside : int
            Bytes that the caller sets aside for what travels with them.

        Yields
        ------
        owner : int
            Whose block it is.
        tensors : list of tensor
            Valid until the next block is asked for.
        """
        sizes = [max(math.prod(shape) for shape in column) for column in zip(*shapes, strict=True)]
        spare = [[X.new_empty(size) for X, size in zip(own, sizes, strict=True)]
                 for _ in range(min(2, self.n - 1))]  # fmt: skip
        set_aside = beside + sum(X.nbytes for buffers in spare for X in buffers)
        self.account.buffer_bytes = max(self.account.buffer_bytes, set_aside)
        current = own
        for step in range(self.n):
            hop = None
            if step < self.n - 1:
                coming = shapes[(self.rank - step - 1) % self.n]
                arriving = [
                    buffer[: math.prod(shape)].view(shape)
                    for buffer, shape in zip(spare[step % 2], coming, strict=True)
                ]
                hop = self.hand_on(
                    current, arriving, f"keys and values, step {step + 1} of {self.n}"
                )
            start, waited = self._now(own[0]), self.account.waiting
            yield (self.rank - step) % self.n, current
            passed = self._now(own[0]) - start
            self.account.computing += passed - (self.account.waiting - waited)
            if hop is not None:
                hop.wait()
                current = arriving

    def hand_on(self, outgoing, arriving, what, tag=0):
        """Start to send tensors to the next rank, and to receive others from the one before.

        Parameters
        ----------
        outgoing, arriving : list of tensor
            Must not be touched before the hop has been waited for.
        what : str
            Said when it fails.
        tag : int
            Tells hops apart that are under way at the same time.

        Returns
        -------
        Hop
        """
        after, before = (self.rank + 1) % self.n, (self.rank - 1) % self.n
        plan = [(dist.isend, X, after, tag + i) for i, X in enumerate(outgoing) if X.numel()]
        plan += [(dist.irecv, X, before, tag + i) for i, X in enumerate(arriving) if X.numel()]
        self.account.sent_bytes += sum(X.nbytes for X in outgoing)
        hop = Hop(self, what, [(peer, "sending" if op is dist.isend else "receiving")
                               for op, _, peer, _ in plan])  # fmt: skip
        ops = [dist.P2POp(op, X, self._everywhere(peer), self.group, t)
               for op, X, peer, t in plan]  # fmt: skip
        hop.start(ops)
        return hop

    def _everywhere(self, rank):
        """Translate a rank of the group into one of all processes."""
        return rank if self.group is None else dist.get_global_rank(self.group, rank)

    def _now(self, X):
        if X.is_cuda:  # kernels are only queued: wait for them, or their time is nobody's
            torch.cuda.synchronize(X.device)
        return time.perf_counter()


class Hop:
    """Tensors under way: one rank's sends and receives of one step."""

    def __init__(self, ring, what, parts):
        self.ring, self.what, self.parts, self.works = ring, what, parts, []

    def start(self, ops):
        """Start all sends and receives.

        Raises
        ------
        LostRankError
            If a connection is known to be down.
        """
        if any(op.tensor.is_cuda for op in ops):  # NCCL wants them as one batch
            try:
                self.works = dist.batch_isend_irecv(ops)
            except RuntimeError as error:
                raise self._lost(error) from error
            return
        for i, op in enumerate(ops):
            try:
                self.works.append(op.op(op.tensor, op.peer, op.group, op.tag))
            except RuntimeError as error:
                raise self._lost(error, i) from error

    def wait(self):
        """Wait until all is sent and received.

        Raises
        ------
        LostRankError
            If a neighbour is gone, or the time is over. The message names both ranks.
        """
        start = time.perf_counter()
        for i, work in enumerate(self.works):
            try:
                if self.ring.timeout is None:
                    work.wait()
                else:
                    work.wait(timedelta(seconds=self.ring.timeout))
            except RuntimeError as error:
                # NCCL may have made one work of the batch: then either neighbour it may be.
                alone = len(self.works) == len(self.parts)
                raise self._lost(error, i if alone else None) from error
        self.ring.account.waiting += time.perf_counter() - start

    def _lost(self, error, part=None):
        """Make the error that says which neighbour, doing what, and what the library said."""
        parts = self.parts if part is None else [self.parts[part]]
        peers = " or ".join(f"rank {peer}" for peer in sorted({peer for peer, _ in parts}))
        verbs = " or ".join(sorted({verb for _, verb in parts}))
        return LostRankError(
            f"rank {self.ring.rank} of {self.ring.n} lost {peers} while {verbs} {self.what}: "
            f"it ended, or did not answer in time ({error})"
        )
