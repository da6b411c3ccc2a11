"""torch's side: run by the Python of BEDPLATE_BENCH_TORCH_PYTHON, one product a line.

Reads `kind m k n repeats` lines, answers seconds of one product on one thread
(mean of `repeats` in a row), wall clock. Weights are [N,K], as a linear layer.
"""

import sys
import time

import torch

torch.set_num_threads(1)
torch.manual_seed(0)
print(torch.__version__, flush=True)
made = {}
with torch.inference_mode():
    for line in sys.stdin:
        kind, m, k, n, repeats = line.split()
        key = (kind, int(m), int(k), int(n))
        if key not in made:
            dtype = torch.bfloat16 if kind == "bf16" else torch.float32
            made[key] = (
                torch.randn(key[1], key[2]).to(dtype),
                torch.randn(key[3], key[2]).to(dtype),
            )
        a, w = made[key]
        torch.nn.functional.linear(a, w)
        start = time.perf_counter()
        for _ in range(int(repeats)):
            torch.nn.functional.linear(a, w)
        print((time.perf_counter() - start) / int(repeats), flush=True)
