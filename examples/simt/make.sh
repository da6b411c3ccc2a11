#!/bin/sh
# Renew the PTX from the sources beside it; needs nvcc 13.0. It is tracked because the labs
# need no compiler. Paths that -lineinfo writes are cut to the files' names.
set -eu
cd "$(dirname "$0")"
for source in */*.cu; do
    target="${source%.cu}.ptx"
    nvcc -ptx -lineinfo -arch=sm_90a "$source" -o "$target"
    sed -i 's|\(\.file[^"]*"\)[^"]*/\([^"/]*"\)|\1\2|' "$target"
    ptxas -arch=sm_90a "$target" -o /dev/null
done
