#!/bin/bash
# build.sh FOLDER [flags...]: the fake libcuda.so.1, the fake libcublasLt.so.13 (in FOLDER/blas, so
# that a test can do without) and the contract's program, into FOLDER.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
hal=$here/../../../../native/hal
out=$1
shift
options=(-std=gnu11 -O1 -g -fvisibility=hidden -Wall -Wextra -Werror "$@" -I"$hal/include" -I"$hal/cuda")
gcc "${options[@]}" -fPIC -shared "$here"/fake_*.c -o "$out/libcuda.so.1" -lpthread
mkdir -p "$out/blas"
gcc "${options[@]}" -fPIC -shared "$here"/blas.c -o "$out/blas/libcublasLt.so.13" -L"$out" -l:libcuda.so.1
gcc "${options[@]}" "$here"/contract*.c "$hal/cuda/driver.c" "$hal/error.c" -o "$out/contract" -ldl -lpthread
