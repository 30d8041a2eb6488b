"""Where torch is absent, modules that need it are not imported for their examples; their tests skip themselves."""

from importlib.util import find_spec

NEED_TORCH = [
    "src/rankwise/torch/*",
    "src/rankwise/benchmarks/torch_*",
    "src/rankwise/benchmarks/finetune*",
    "src/rankwise/benchmarks/layerwise.py",
    "src/rankwise/detection/cnn.py",
    "src/rankwise/reproduce/cifar.py",
]
collect_ignore_glob = [] if find_spec("torch") else NEED_TORCH
