# What load says of its runs beside what captures of them say: read by Scripts/bench, which then calls `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

[[ $EUID -eq 0 ]] || give_up "truth makes a network namespace and captures in it, which takes root: sudo Scripts/bench truth"
need_packages tcpdump iproute2 util-linux
unshare --net true 2> /dev/null || give_up "the system lets nobody make a network namespace here, which truth needs"
program=truth
if [[ ${1:-} == aa ]]; then
  program=repeats
  shift
fi
options=("$@")

# shellcheck disable=SC2034 # Scripts/bench ends with the status
bench() {
  # The namespace ends with its last process.
  # shellcheck disable=SC2016 # for the shell inside
  unshare --net bash -c 'ip link set lo up && exec "$@"' in-namespace \
    python3 "Scripts/bench.d/$program.py" --apnscope .build/release/apnscope --folder ".build/bench/$program" \
    "${options[@]}" || status=$?
}
