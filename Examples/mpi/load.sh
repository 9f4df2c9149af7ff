#!/bin/bash
# One load by all ranks of mpirun, then their books:
#   PLAN=plan.toml RESULTS=results Examples/mpi/load.sh -n 4 --hostfile hosts
# The arguments are mpirun's. RESULTS is a folder that all hosts see; LEDGER is the gateway's books, if there are any;
# HEAD_START seconds (6) are there for all ranks to start.
set -uo pipefail
mkdir -p "$RESULTS"
start=$(date --utc --date="+${HEAD_START:-6} seconds" +%Y-%m-%dT%H:%M:%SZ)
# The result of each rank has its number. mpirun ends all when one fails; sh hides that, since merge names it.
# shellcheck disable=SC2016 # for the shell of each process
mpirun "$@" -x PLAN -x RESULTS -x PATH sh -c 'apnscope load --plan "$PLAN" --segment auto --of-whole \
  --start-at "$0" --quiet --output "$RESULTS/$OMPI_COMM_WORLD_RANK.json"; true' "$start"
exec apnscope merge "$RESULTS" ${LEDGER:+--ledger "$LEDGER"} --output "$RESULTS.json"
