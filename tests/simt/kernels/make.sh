#!/bin/sh
# Renew the PTX texts from the sources beside them; needs nvcc 13.0.
#
# The texts are tracked because tests must not need a compiler. The path that -lineinfo
# writes is that of one machine, so it is cut to the file's name.
set -eu
cd "$(dirname "$0")"
for source in *.cu; do
    architectures="sm_90a"
    case "$source" in
        first.cu) architectures="sm_75 sm_90a" ;;
        print.cu | second.cu) architectures="sm_75 sm_90a sm_100a" ;;
    esac
    for arch in $architectures; do
        target="${source%.cu}.$arch.ptx"
        nvcc -ptx -lineinfo -arch=$arch "$source" -o "$target"
        sed -i "s|\"[^\"]*/$source\"|\"$source\"|; s|\"[^\"]*/include/|\"|" "$target"
        ptxas -arch=$arch "$target" -o /dev/null
    done
done
