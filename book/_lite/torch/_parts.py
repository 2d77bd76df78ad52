"""Parts of torch: they can be named and handed on, and not used."""

import importlib.abc
import importlib.machinery
import sys
import types


class NeedsTorch(ModuleNotFoundError):
    """A part of torch was used where there is no torch."""

    def __init__(self, part):
        super().__init__(f"{part} needs torch, which the browser does not have", name="torch")


class Part:
    """Something of torch's: a function, a class, a dtype."""

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"<{self._name}, which the browser does not have>"

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return Part(f"{self._name}.{name}")

    def __mro_entries__(self, bases):
        """Let a class be derived from it: that fails when one is made of it, not before."""
        return (_Derived,)

    def __instancecheck__(self, instance):
        """Nothing is an instance of what is not there."""
        return False

    def _use(self, *args, **kwargs):
        raise NeedsTorch(self._name)

    __call__ = __bool__ = __iter__ = __len__ = __getitem__ = __enter__ = __float__ = __int__ = _use
    __add__ = __sub__ = __mul__ = __truediv__ = __matmul__ = __neg__ = __pow__ = _use
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rmatmul__ = _use
    __array__ = _use


class _Derived:
    def __new__(cls, *args, **kwargs):
        raise NeedsTorch(cls.__name__)


class _Submodules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module below torch that is no file here."""

    def find_spec(self, name, path=None, target=None):
        if name.startswith("torch."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = _attribute(spec.name)
        return module

    def exec_module(self, module):
        """Nothing is in it."""


def _attribute(module):
    def attribute(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Part(f"{module}.{name}")

    return attribute


def offer_submodules():
    """Let `from torch.nn import functional` succeed."""
    sys.meta_path.append(_Submodules())
