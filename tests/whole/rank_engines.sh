#!/bin/sh
# Ranks of a trained program, which is told their number when it starts: by whatever engine their
# messages go, the result is the same, bit for bit; signals, and ranks that cannot be, through the
# command line.
#   sh tests/whole/rank_engines.sh BUILD-FOLDER
set -u
BUILT=$(cd "$1" && pwd)
LOWERSET=$BUILT/lowerset
DIR=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$DIR"' EXIT
export XDG_CONFIG_HOME=$DIR/config OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
[ -z "${LS_SANITIZED:-}" ] || export ASAN_OPTIONS=detect_leaks=0       # those of MPI
cd "$DIR"
failed=0
fail() { echo "FAIL $*"; cat out errors 2>/dev/null; failed=1; }
same() { "$BUILT/tests/npz_near" "$1" "$2" 0 param/ >/dev/null || fail "$1 and $2 differ"; }
# refused TEXT COMMAND...: exit code 2, and the text
refused() {
    text=$1
    shift
    "$@" >out 2>errors
    [ $? -eq 2 ] && grep -q -e "$text" errors || fail "not refused with '$text': $*"
}

# The port is in nobody's range, the address this test's own.
host=127.$(($$ / 254 % 100 + 20)).$(($$ % 254)).1
peers=$host:20101,$host:20102,$host:20103
FEW="--data synthetic:19 --progress none --seed 3 --epochs 1000 --steps 12"
"$LOWERSET" model unet --depth=1 --size=4 --width=2 -o net.onnx
COMPILE="$LOWERSET compile -q -O0 --plan-effort=2 net.onnx --batch=6 --microbatches=3
    --ranks=any --optimizer=adam"
$COMPILE -o local || exit 1
mpi=
if $COMPILE --comm=mpi -o mpi 2>errors; then
    command -v mpirun >/dev/null 2>&1 && mpi=yes
else
    grep -q 'built without MPI' errors || fail "--comm=mpi"
fi

# on_peers NAME OPTIONS...: three processes that meet
on_peers() {
    name=$1
    shift
    for k in 0 1 2; do
        ./local $FEW --peers $peers --rank $k "$@" >"$name.$k" 2>&1 &
        eval "rank$k=$!"
    done
    for k in 0 1 2; do
        eval "wait \$rank$k" || { cat "$name".?; fail "$name: rank $k"; }
    done
}

./local $FEW --dump local.npz >out 2>errors || fail "one rank"
./local $FEW --ranks 3 --dump given.npz >out 2>errors || fail "--ranks 3"
same local.npz given.npz
./local $FEW --ranks 3 --comm local --dump given.npz >out 2>errors || fail "--ranks 3 --comm local"
same local.npz given.npz
on_peers sockets --dump sockets.npz
same local.npz sockets.npz
[ -s sockets.0 ] && [ ! -s sockets.1 ] && [ ! -s sockets.2 ] \
    || fail "one rank prints, not: $(wc -c sockets.?)"
if [ -n "$mpi" ]; then
    mpirun -n 3 ./mpi $FEW --dump mpi.npz >out 2>errors || fail "mpi"
    same local.npz mpi.npz
    ./mpi $FEW --dump alone.npz >out 2>errors \
        || fail "a program with MPI that starts its ranks itself"
    same local.npz alone.npz
    refused 'MPI has 1: start the program with mpirun' ./mpi $FEW --comm mpi --ranks 3
    grep -q '^./mpi: error: --ranks 3' errors || fail "MPI refuses without the program's name"
    mpirun -n 3 ./local $FEW >out 2>errors && fail "mpirun starts a program without MPI"
    [ "$(grep -c 'mpirun started 3 processes .* nothing joins them' errors)" -eq 1 ] \
        || fail "not once: nothing joins them"
    mpirun -n 2 ./mpi $FEW --save none >out 2>errors && fail "2 processes for 3 ranks"
    [ "$(grep -c '^./mpi: error: mpirun asks for 2 ranks, but this program is for 1 or 3 ranks' \
        errors)" -eq 1 ] || fail "not once: 2"
    mpirun -n 2 ./mpi $FEW --save none --ranks 3 >out 2>errors && fail "2 processes for 3 ranks"
    [ "$(grep -c 'this program is for 3 ranks, but mpirun started 2' errors)" -eq 1 ] \
        || fail "not once: 3 ranks, 2 processes"
    [ ! -e none ] || fail "a refused run makes a folder"
else
    echo "note: without MPI"
fi

# Processes that srun started and --peers joins take their rank from it.
for k in 0 1 2; do
    SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=$k ./local $FEW --peers $peers --dump srun.npz \
        >"srun.$k" 2>&1 &
    eval "rank$k=$!"
done
for k in 0 1 2; do eval "wait \$rank$k" || { cat srun.?; fail "srun: rank $k"; }; done
same local.npz srun.npz

refused 'this program is for 1 or 3 ranks' ./local $FEW --ranks 2
refused 'this program has no MPI' ./local $FEW --comm mpi
refused '--rank is for --peers' ./local $FEW --rank 1
refused '--ranks 3, but --peers names 2' ./local $FEW --ranks 3 --peers a:1,b:1 --rank 0
refused '--peers asks for 2 ranks' ./local $FEW --peers a:1,b:1 --rank 0
refused '--comm is for --ranks' "$LOWERSET" compile net.onnx --batch=6 --comm=mpi -o x
refused "is not one of sockets mpi" "$LOWERSET" compile net.onnx --batch=6 --ranks=2 \
    --comm=pigeons -o x

# Another learning rate on one rank: it ends, and the others wait for the right one.
for k in 0 1; do
    ./local $FEW --peers $peers --rank $k --dump lr.npz >"lr.$k" 2>&1 &
    eval "rank$k=$!"
done
./local $FEW --peers $peers --rank 2 --lr 0.2 >lr.2 2>&1
[ $? -eq 9 ] && grep -q 'error: rank [02] and rank [02] do not run the same: .*lr 0\.2, ' lr.2 \
    || { cat lr.?; fail "another learning rate"; }
./local $FEW --peers $peers --rank 2 >right.2 2>&1 || {
    cat right.2
    fail "the right learning rate: rank 2"
}
for k in 0 1; do
    eval "wait \$rank$k" || { cat lr.?
    fail "the right learning rate: rank $k"
    }
done
grep -q 'note: rank 2 was turned away' lr.0 || { cat lr.?; fail "no note of the wrong rank"; }
same local.npz lr.npz

# SIGTERM for one rank: all end with it, the checkpoint is there and can be continued.
LONG="--data synthetic:19 --progress none --seed 3 --epochs 100000000"
for k in 0 1 2; do
    ./local $LONG --peers $peers --rank $k --save ck --keep-last 2 >"term.$k" 2>&1 &
    eval "rank$k=$!"
done
while [ -z "$(ls ck 2>/dev/null)" ] && kill -0 $rank0; do sleep 0.05; done
kill -TERM $rank1
for k in 0 1 2; do
    eval "wait \$rank$k"
    [ $? -eq 143 ] || { cat term.?; fail "SIGTERM: rank $k"; }
done
last=$(ls ck | tail -n 1)
grep -q "continue with --resume=ck/$last" term.0 || {
    cat term.?
    fail "SIGTERM: no word of $last"
}

# kill -9 of one: the others end, one says why.
for k in 0 1 2; do
    ./local $LONG --peers $peers --rank $k --resume "ck/$last" --save ck2 --keep-last 2 \
        >"kill.$k" 2>&1 &
    eval "rank$k=$!"
done
while [ -z "$(ls ck2 2>/dev/null)" ] && kill -0 $rank0; do sleep 0.05; done
kill -KILL $rank0
for k in 1 2; do
    eval "wait \$rank$k"
    [ $? -eq 9 ] || { cat kill.?; fail "kill -9: rank $k"; }
done
[ "$(cat kill.1 kill.2 | grep -c 'error: rank 0 died')" -eq 1 ] || {
    cat kill.?
    fail "not once: rank 0 died"
}
[ $failed -eq 0 ] && echo "ok"
exit $failed
