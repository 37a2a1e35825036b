#!/bin/sh
# The wheel of this checkout works by itself: it fits every Python 3, and what is installed from it
# compiles a model to a program and to a library.
#   PYTHON=PYTHON-WITH-MESONPY sh tests/python/wheel.sh SOURCE-FOLDER [WHEEL]
# A wheel that is given is not built: such as one that auditwheel repaired.
set -eu
source=$(cd "$1" && pwd)
wheel=${2:+$(cd "$(dirname "$2")" && pwd)/$(basename "$2")}
python=${PYTHON:-python3}
if [ -z "$wheel" ] && ! "$python" -c 'import mesonpy' 2>/dev/null; then
    echo "skipped: $python has no meson-python (PYTHON names another)"
    exit 77
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "skipped: $python makes no virtual environments"
    exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
unset LOWERSET LOWERSET_HOME PYTHONPATH
export XDG_CONFIG_HOME=$out/config XDG_CACHE_HOME=$out/cache LOWERSET_PROBE=off
fail() { echo "FAIL $*"; tail -n 5 "$out/said"; exit 1; }

if [ -z "$wheel" ]; then
    PATH=$(dirname "$("$python" -c 'import sys; print(sys.executable)')"):$PATH
    (cd "$source" && PYTHONPATH=python/backend "$python" -c "import any_python
any_python.build_wheel('$out')") >"$out/said" 2>&1 || fail "the wheel is not built"
    wheel=$(ls "$out"/*.whl)
fi
case $wheel in
*-py3-none-*) ;;
*) : >"$out/said"; fail "$wheel is for one Python" ;;
esac
"$python" -m zipfile -l "$wheel" >"$out/said"
for name in "$source"/python/lowerset/*.py; do
    grep -q "^lowerset/$(basename "$name") " "$out/said" || fail "the wheel lacks $name"
done
! grep -q "tests/\|__pycache__" "$out/said" || fail "the wheel has too much"

"$python" -m venv "$out/venv" >"$out/said" 2>&1 || fail "no virtual environment"
"$out/venv/bin/pip" install --no-index --no-deps "$wheel" >"$out/said" 2>&1 || fail "pip"
part=$(dirname "$("$out/venv/bin/python" -c 'import lowerset; print(lowerset.__file__)')")
for folder in . $(cd "$source/runtime" && ls -d */); do
    (cd "$source/runtime/$folder" && ls | grep '\.[ch]$') >"$out/want"
    (cd "$part/lib/lowerset/runtime/$folder" && ls | grep '\.[ch]$') >"$out/said"
    cmp -s "$out/want" "$out/said" || fail "the runtime's folder $folder is not all there"
done

cd "$out"
said() { venv/bin/python -m lowerset "$@" >said 2>&1; }
said --version || fail "python -m lowerset"
version=$(sed -n "s/^project.* version: '\([^']*\)'.*/\1/p" "$source/meson.build")
grep -qx "lowerset $version" said || fail "another version than $version"
venv/bin/lowerset --version | cmp -s - said || fail "the command lowerset is another"
said model mlp --batch=4 --width=16 -o mlp.onnx || fail "model"
said compile mlp.onnx -v -O 0 -o net || fail "compile"
if grep -q -e "$source" said; then fail "compile uses the sources"; fi
./net --data synthetic --steps 2 --progress none >said 2>&1 || fail "the program does not train"
said compile mlp.onnx -O 0 --emit=lib -o two || fail "compile --emit=lib"
[ -s libtwo.so ] && [ -s libtwo.a ] && [ -s two.h ] || fail "a part of the library is missing"
code=0
said plan mlp.onnx --budget 1 || code=$?
[ $code = 4 ] || fail "exit code $code for a budget without a plan"
venv/bin/python - <<'END' || fail "lowerset.commands"
from lowerset import commands, errors
assert commands.plan("mlp.onnx", budget="min", plan_effort=1)["feasible"]
try:
    commands.plan("mlp.onnx", budget=1, plan_effort=1)
except errors.BudgetError as error:
    assert error.code == 4 and error.hint
else:
    raise SystemExit("no BudgetError")
END
venv/bin/python -c 'import time
start = time.perf_counter()
import lowerset
print(f"import lowerset takes {1e3 * (time.perf_counter() - start):.1f} ms")'
echo "the wheel is whole: $(basename "$wheel"), $(($(wc -c <"$wheel") / 1024)) KiB"
