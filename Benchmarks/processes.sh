# The processes that a job starts, and how it fails: read by Scripts/bench.
# shellcheck shell=bash
# The common variables are Scripts/bench's.
# shellcheck disable=SC2154

# The processes of a job that run now, by their ids; they write to `$work/server.err` and `$work/client.err`.
server=
client=

stop_process() {
  [[ -n $1 ]] || return 0
  kill -TERM "$1" 2> /dev/null || true
  wait "$1" 2> /dev/null || true
}
stop_server() {
  stop_process "$server"
  server=
}
stop_processes() {
  stop_process "$client"
  client=
  stop_server
}

fail() {
  local file
  echo "bench: $1" >&2
  for file in "$work"/{server,client}.err; do [[ ! -s $file ]] || tail -n 5 "$file" >&2; done
  exit 1
}

# await_ready PID: waits until the simulator with this id has said where it listens, for at most 10 seconds.
await_ready() {
  local attempt
  for ((attempt = 0; attempt < 200; attempt++)); do
    [[ ! -s $work/ready ]] || return 0
    kill -0 "$1" 2> /dev/null || break
    sleep 0.05
  done
  fail "the simulator does not listen"
}

# listener NAME: where this listener of the simulator is.
listener() { sed -n "s/^$1 //p" "$work/ready"; }

trap stop_processes EXIT
