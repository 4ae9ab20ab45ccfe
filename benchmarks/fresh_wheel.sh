#!/usr/bin/env bash
# The wheel alone in a new environment, used as a newcomer would: demo, doctor, a model taught the two halves of a CSV in
# two processes, what it still knows, and advice.
#
#     benchmarks/fresh_wheel.sh                  of what is committed; some minutes, most of them pip's
#     ADVICE=2m benchmarks/fresh_wheel.sh        how long advise may take; none: it is left out
set -euo pipefail

repo=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH
export HOLDFAST_DATA="$work/data" OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE OPENBLAS_NUM_THREADS=1

step() {  # what is done, and how long it takes
    local began=$SECONDS
    echo "== $*"
    "$@" || { echo "== failed with $?: $*"; exit 1; }
    echo "   ($((SECONDS - began)) s)"
}

mkdir "$work/source" "$work/here"
git -C "$repo" archive HEAD | tar -x -C "$work/source"
step "${PYTHON:-python3}" -m venv "$work/venv"
bin="$work/venv/bin"
pip() { "$bin/python" -m pip --disable-pip-version-check -qq --retries 5 "$@"; }
step pip install -c "$repo/constraints.txt" torch setuptools
step pip wheel --no-deps --no-build-isolation -w "$work/dist" "$work/source"
wheel=$(echo "$work"/dist/holdfast-*.whl)
held=$("$bin/python" -m zipfile -l "$wheel" | awk '{print $1}')
for kind in css js json typed py; do
    count=$(grep -c "\.$kind$" <<< "$held" || true)
    echo "   $count .$kind files in $(basename "$wheel")"
    [ "$count" -gt 0 ] || { echo "== the wheel has no .$kind file"; exit 1; }
done
step pip install -c "$repo/constraints.txt" "$wheel"
"$bin/python" -m pip list --disable-pip-version-check | awk 'END {print "   " NR - 2 " packages"}'

cd "$work/here"
"$bin/python" - <<'PYTHON'
import pandas as pd
from sklearn.datasets import load_digits

table = load_digits(as_frame=True).frame
for name, part in (("all", table), ("old", table[table.target < 5]), ("new", table[table.target > 4])):
    part.iloc[: len(part) // 2].to_csv(f"{name}.csv", index=False)
    part.iloc[len(part) // 2 :].to_csv(f"{name}_test.csv", index=False)
table.drop(columns="target").iloc[:5].to_csv("rows.csv", index=False)
PYTHON
hold="$bin/holdfast"
step "$hold" demo --quiet --out demo
[ -s demo/report.html ]
step "$hold" doctor
step "$hold" learn old.csv --model model --set memories=200
step "$hold" learn new.csv --model model --test 0.2
step "$hold" predict rows.csv --model model
step "$hold" score old_test.csv --model model
step "$hold" score new_test.csv --model model
advice=${ADVICE-2m}
if [ -n "$advice" ]; then
    step "$hold" advise all.csv --old 0,1,2,3,4 --new 5,6,7,8,9 --memory 5MB --keep-data no --time "$advice"
fi
echo "== all of it went well"
