#!/bin/sh
# How long planning takes: the paper's DP, auto, the bounds, offsets, and how it grows, beside reference
# implementations where the shared judge is there.
#   sh bench/plan.sh BUILD-FOLDER [--long] [--only dp|auto|least|offsets|scale|live] [--graph FILE ...]
build=$1
shift
exec python3 bench/plan.py "$build" ../shared "$@"
