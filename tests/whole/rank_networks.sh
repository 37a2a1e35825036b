#!/bin/sh
# Four ranks in four network namespaces, which stand for machines, and a bridge between them. One is
# cut off in the middle of the run: all others end, and one of them says why. With sockets, and with
# MPI over TCP.
#   sh tests/whole/rank_networks.sh BUILD-FOLDER
set -u
BUILT=$(cd "$1" && pwd)
LOWERSET=$BUILT/lowerset
id=lsn$$
ip netns add $id-0 2>/dev/null || {
    echo "skipped: no network namespaces here (root and iproute2)"
    exit 77
}
DIR=$(mktemp -d)
clean() {
    for k in 0 1 2 3; do
        ip netns pids $id-$k 2>/dev/null | xargs -r kill -KILL
        ip netns del $id-$k 2>/dev/null
    done
    ip link del $id 2>/dev/null
    rm -rf "$DIR"
}
trap clean EXIT
[ -z "${LS_SANITIZED:-}" ] || export ASAN_OPTIONS=detect_leaks=0       # those of MPI
cd "$DIR"
export XDG_CONFIG_HOME=$DIR/config
failed=0
fail() { echo "FAIL $*"; cat out* 2>/dev/null; failed=1; }

ip link add $id type bridge && ip link set $id up || { echo "skipped: no bridge here"; exit 77; }
for k in 0 1 2 3; do
    [ $k -eq 0 ] || ip netns add $id-$k
    ip link add $id-v$k type veth peer name eth0 netns $id-$k || {
        echo "skipped: no veth here"
        exit 77
    }
    ip link set $id-v$k master $id up
    ip -n $id-$k addr add 10.77.9.$((k + 1))/24 dev eth0
    ip -n $id-$k link set eth0 up
    ip -n $id-$k link set lo up
done
# `ip netns exec` mounts, which needs / to be a mount point: it is none in a folder that chroot made
# a root of.
ip netns exec $id-0 unshare --uts true 2>/dev/null || {
    echo "skipped: no network can be entered here (is / a mount point?)"
    exit 77
}
cut_off() { ip link set $id-v3 down; }
# A machine: a network, and a name of its own.
on() {
    machine=$1
    shift
    ip netns exec $id-$machine unshare --uts sh -c 'hostname machine'$machine'; exec "$@"' sh "$@"
}
# Ranks of programs in `net` whose machine is not cut off.
ranks_left() {
    for k in 0 1 2; do
        for p in $(ip netns pids $id-$k); do
            [ "$(readlink /proc/$p/exe)" = "$DIR/net" ] \
                && grep -q '^State:.[^Z]' /proc/$p/status 2>/dev/null && echo $p
        done
    done
}
await_file() { for i in $(seq 400); do [ -z "$(ls $1 2>/dev/null)" ] \
    || return 0; sleep 0.05; done; fail "no $1"; }
# The end of all ranks but the one that is cut off: within 10 s, and the test has patience for
# slow machines.
await_end() { for i in $(seq 400); do [ -n "$(ranks_left)" ] \
    || return 0; sleep 0.1; done; fail "$1: ranks are left"; }
LOST='error: rank 3 gave no sign of life for 6 s'

"$LOWERSET" model unet --depth=1 --size=4 --width=2 -o net.onnx
COMPILE="$LOWERSET compile -q -O0 --plan-effort=2 net.onnx --batch=8 --microbatches=4 --ranks=4
    --optimizer=adam -o net"
LONG="--data synthetic:19 --progress none --seed 3 --epochs 100000000 --keep-last 2"
peers=10.77.9.1:4000,10.77.9.2:4000,10.77.9.3:4000,10.77.9.4:4000

$COMPILE || exit 1
for k in 0 1 2 3; do
    on $k ./net $LONG --peers $peers --rank $k --save sockets >out.$k 2>&1 &
    eval "rank$k=$!"
done
await_file sockets
cut_off
for k in 0 1 2; do
    eval "wait \$rank$k"
    [ $? -eq 9 ] || fail "sockets: rank $k"
done
[ "$(cat out.0 out.1 out.2 | grep -c "$LOST")" -eq 1 ] \
    && [ "$(cat out.0 out.1 out.2 | grep -c error:)" -eq 1 ] || fail "sockets: not once '$LOST'"
wait $rank3
[ $? -eq 9 ] && grep -q 'error: rank 3 is cut off' out.3 || fail "sockets: the rank that is cut off"
ip link set $id-v3 up
rm -f out*

if ! command -v mpirun >/dev/null 2>&1 || ! $COMPILE --comm=mpi 2>/dev/null; then
    echo "note: without MPI"
    exit $failed
fi
# What mpirun calls in place of ssh: HOST COMMAND...
cat >agent <<END
#!/bin/sh
k=\$((\${1##*.} - 1))
shift
exec ip netns exec $id-\$k unshare --uts sh -c 'hostname machine'\$k'; exec sh -c "\$0"' "\$*"
END
chmod +x agent
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
on 0 mpirun -n 4 --host 10.77.9.1,10.77.9.2,10.77.9.3,10.77.9.4 --mca plm_rsh_agent "$DIR/agent" \
    --mca pml ob1 \
    --mca btl tcp,self --mca oob_tcp_keepalive_time 20 ./net $LONG --save mpi >out 2>&1 &
job=$!
await_file mpi
cut_off
await_end mpi
kill -KILL $job 2>/dev/null     # it may wait for the machine that is cut off
wait $job 2>/dev/null
[ "$(grep -c "$LOST" out)" -eq 1 ] || fail "mpi: not once '$LOST'"
[ $failed -eq 0 ] && echo "ok"
exit $failed
