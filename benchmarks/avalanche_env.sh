#!/bin/sh
# The environment in which benchmarks/with_avalanche.py runs: sh benchmarks/avalanche_env.sh [FOLDER]
# torch comes first, so that its pin decides which build is taken; torchvision without its dependencies, because it would
# pull another build; quadprog is the solver of Avalanche's GEM, which its own list of dependencies lacks.
set -eu
folder=${1:-.venv-avalanche}
${PYTHON:-python3} -m venv "$folder"
pip="$folder/bin/python -m pip --disable-pip-version-check -qq"
$pip install torch==2.13.0
$pip install --no-deps torchvision==0.28.0
$pip install torch==2.13.0 torchvision==0.28.0 avalanche-lib==0.6.0 quadprog
echo "Avalanche is in $folder; another place than .venv-avalanche is named by AVALANCHE_PYTHON=$folder/bin/python"
