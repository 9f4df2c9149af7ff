#!/bin/bash
# A trial of a search, on all tasks of an allocation:
#   salloc --ntasks=4 apnscope capacity --trial-command Examples/slurm/trial.sh --connections 16 --output capacity
# The plan that apnscope has written is of the whole; what it does not know is added here.
# HEAD_START seconds (4) are there for all tasks to start.
set -uo pipefail
parts=${APNSCOPE_TRIAL_OUTPUT%.json}
rm -rf "$parts"
mkdir -p "$parts"
start=$(date --utc --date="+${HEAD_START:-4} seconds" +%Y-%m-%dT%H:%M:%SZ)
# shellcheck disable=SC2016 # for the shell of each process
srun --kill-on-bad-exit=0 sh -c 'exec apnscope load --plan "$APNSCOPE_TRIAL_PLAN" --segment auto --start-at "$0" \
  $LOAD_OPTIONS --quiet --output "$1/$SLURM_PROCID.json"' "$start" "$parts" > /dev/null
apnscope merge "$parts" --output "$APNSCOPE_TRIAL_OUTPUT" > /dev/null
