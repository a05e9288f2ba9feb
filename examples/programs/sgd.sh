#!/bin/sh
# A shell script as a trainable: gradient descent on a parabola, whose best step size changes on the way.
#
#     cadre tune tune.toml -- ./sgd.sh {lr}
#
# It has a checkpoint, which is the number of steps and x, so it takes part in Population Based Training.
set -eu
lr=$1
step=0
x=1.0
if [ -n "${CADRE_CHECKPOINT_IN:-}" ]; then
  read -r step x < "$CADRE_CHECKPOINT_IN/state"
fi

while [ "$step" -lt 40 ]; do
  step=$((step + 1))
  x=$(awk -v x="$x" -v lr="$lr" -v step="$step" 'BEGIN { print x - lr * x * (step < 20 ? 1 : 4) }')
  loss=$(awk -v x="$x" 'BEGIN { print x * x }')
  answer=$(cadre-report --offer loss="$loss" x="$x") || exit 0 # it is to stop
  if [ "$answer" = checkpoint ]; then
    echo "$step $x" > "$CADRE_CHECKPOINT_OUT/state"
    cadre-report --saved > /dev/null || exit 0
  fi
done
