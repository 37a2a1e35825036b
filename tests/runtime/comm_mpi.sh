#!/bin/sh
# Messages by MPI: what every engine must do, and how ranks end.
#   sh tests/runtime/comm_mpi.sh COMM_MPI_RANK
set -u
RANK=$(readlink -f "$1")
command -v mpirun >/dev/null 2>&1 || { echo "skipped: no mpirun"; exit 77; }
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
cd "$DIR"
failed=0
fail() { echo "FAIL $*"; cat out; failed=1; }

# ranks N CASE EXIT-CODE [TEXT]: the text is printed once; 'any': some code that is not 0
ranks() {
    rm -f shared
    timeout 100 mpirun -n "$1" "$RANK" "$2" shared "$1" >out 2>&1
    code=$?
    case $3 in any) [ $code -ne 0 ] ;; *) [ $code -eq "$3" ] ;; esac \
        || fail "$2: exit code $code, not $3"
    [ -z "${4:-}" ] || [ "$(grep -c "$4" out)" -eq 1 ] || fail "$2: not once '$4'"
}

ranks 4 all_to_all 0
ranks 3 exchange 0
ranks 4 barrier 0
ranks 4 mismatch 6 'error: rank 1: rank 0 sends more bytes than rank 1 takes'
ranks 4 abandon 8 'error: rank 1: numbers.npy: no such file'
ranks 4 early_end 9 'error: rank 1 ended while others still wait for it'
ranks 4 death any 'rank 2 .* exited on signal 9'

# Too few processes, another program among them, one process alone.
timeout 100 mpirun -n 2 "$RANK" barrier shared 3 >out 2>&1 && fail "2 processes for 3 ranks"
[ "$(grep -c -e "^$RANK: error: --ranks 3, but MPI has 2" out)" -eq 1 ] \
    || fail "not once: 3 ranks, 2 processes"
timeout 100 mpirun -n 1 "$RANK" barrier shared 2 "plan 1" : -n 1 "$RANK" barrier shared 2 "plan 2" \
    >out 2>&1 && fail "two programs"
[ "$(grep -c "^$RANK: error: rank 1 and rank 0 do not run the same: plan 2; and plan 1" out)" \
    -eq 1 ] || fail "not once: two programs"
timeout 100 "$RANK" barrier shared 2 >out 2>&1
[ $? -eq 2 ] && grep -q 'MPI has 1: start the program with mpirun' out || fail "one process"

# A rank that is stopped: the others end, one says why.
rm -f shared
timeout 100 mpirun -n 3 "$RANK" loop shared 3 >out 2>&1 &
job=$!
for k in $(seq 500); do
    [ "$(od -An -td4 -N4 shared 2>/dev/null || echo 0)" -gt 100 ] 2>/dev/null && break
    sleep 0.05
done
stopped=
for p in /proc/[0-9]*; do
    [ "$(readlink "$p/exe")" = "$RANK" ] && [ "$(readlink "$p/cwd")" = "$DIR" ] \
        && tr '\0' '\n' <"$p/environ" | grep -q '^OMPI_COMM_WORLD_RANK=2$\|^PMI_RANK=2$' \
        && stopped=${p#/proc/}
done
kill -STOP $stopped
wait $job && fail "a stopped rank is no failure"
[ "$(grep -c 'error: rank 2 gave no sign of life for 6 s' out)" -eq 1 ] \
    || fail "not once: no sign of life"
kill -KILL $stopped 2>/dev/null

[ $failed -eq 0 ] && echo "ok"
exit $failed
