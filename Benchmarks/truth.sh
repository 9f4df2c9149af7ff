# What load and capacity say of runs beside what captures and settings say: read by Scripts/bench, which then calls
# `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

# Only the namespace, and the capture in it, take root.
as_root=()
if [[ $EUID -ne 0 ]]; then
  command -v sudo > /dev/null || give_up "truth makes a network namespace and captures in it, which takes root"
  as_root=(sudo)
fi
need_packages tcpdump iproute2 util-linux
"${as_root[@]}" unshare --net true 2> /dev/null || give_up "the system lets nobody make a network namespace here, which truth needs"
case ${1:-} in
  aa) program=repeats; shift ;;
  ceilings) program=ceilings; shift ;;
  *) program=truth ;;
esac
options=("$@")

# shellcheck disable=SC2034 # Scripts/bench ends with the status
bench() {
  # The namespace ends with its last process.
  # shellcheck disable=SC2016 # for the shell inside
  "${as_root[@]}" unshare --net bash -c 'ip link set lo up && exec "$@"' in-namespace \
    python3 "Benchmarks/$program.py" --apnscope "$release_folder/apnscope" --folder ".build/bench/$program" \
    "${options[@]}" || status=$?
  [[ $EUID -eq 0 ]] || sudo chown -R "$EUID" ".build/bench/$program"
}
