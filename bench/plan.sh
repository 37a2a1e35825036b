#!/bin/sh
# Times of planning: the paper's DP, auto, the bounds, offsets, and growth with the graph's size,
# beside reference implementations if the shared judge is there.
#   sh bench/plan.sh BUILD-FOLDER [--long] [--only dp|auto|least|offsets|scale|live]
#     [--graph FILE ...]
build=$1
shift
exec python3 bench/plan.py "$build" ../shared "$@"
