# The simulator against tlssink: read by Scripts/bench, which then calls `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

# shellcheck disable=SC2034 # Scripts/bench shows it
columns="nanoseconds of the server's processor time a notification, notifications a second, % of them in records or verdict
  (a name is server, TLS version, notifications a write, connections)"
[[ $# -eq 0 ]] || usage
notifications=${BENCH_NOTIFICATIONS:-8000000}
identity=$work/identity
topic=com.example.app
ticks_per_second=$(getconf CLK_TCK)

# Both print "gateway HOST:PORT" when they can be connected to.
start_sink() {
  "$work/tlssink" 0 --ca "$identity/ca.pem" --certificate "$identity/gateway.pem" --key "$identity/gateway.key" \
    > "$work/server.out" 2> "$work/server.err" &
  server=$!
}
# In a folder of its own, where it may leave what it keeps.
start_simulate() {
  (cd "$work" && exec "$root/$release_folder/apnscope" simulate --identity "$identity" --gateway 127.0.0.1:0 \
    --feedback 127.0.0.1:0 --ledger "$work/ledger.json" "$@") > "$work/server.out" 2> "$work/server.err" &
  server=$!
}
# The same while it observes: records cost what decode's do, without a disk.
start_records() { start_simulate --records /dev/null; }
start_verdict() { start_simulate --verdict; }
start_control() { start_simulate --control 127.0.0.1:0; }

# Sets `address`.
wait_for_address() {
  local attempt
  for ((attempt = 0; attempt < 200; attempt++)); do
    address=$(sed -n 's/^gateway //p' "$work/server.out" 2> /dev/null || true)
    [[ -z $address ]] || return 0
    kill -0 "$server" 2> /dev/null || break
    sleep 0.05
  done
  fail "$1 does not listen"
}

# User and system time of the server so far, in clock ticks, of threads that have ended too.
ticks() { sed 's/.*) //' "/proc/$server/stat" | cut -d ' ' -f 12,13 | { read -r user system; echo $((user + system)); }; }

# The books of the server at its end: notifications, the good ones, and those in its records or its verdict; "-" without
# either.
count_sink() { tail -n 1 "$work/server.out" | { read -r got rest; echo "$got $got -"; }; }
count_simulate() {
  python3 -c '
import json, sys
ledger = json.load(sys.stdin)
gateway = ledger["gateway"]
observed = ledger.get("records", {}).get("notifications", ledger.get("verdict", {}).get("sendings", "-"))
print(gateway["received"], gateway["accepted"], observed)' < "$work/ledger.json"
}
count_records() { count_simulate; }
count_verdict() { count_simulate; }
count_control() { count_simulate; }

# Adds one run's nanoseconds of processor time and notifications a second to its measure's file. A measure is a server
# and a load: sink-12-64-1 is TLS 1.2, 64 notifications a write, 1 connection. A server is new for every run, and its
# time counts from when it listens until it has closed the last connection.
measure() {
  local kind tls batch connections count before after sent seconds rest received accepted observed
  IFS=- read -r kind tls batch connections <<< "$1"
  count=$notifications
  ((batch > 1)) || count=$((notifications / 8))
  # The address in it must not be that of the server before.
  rm -f "$work/ledger.json" "$work/server.out"
  "start_$kind"
  wait_for_address "$kind"
  before=$(ticks)
  timeout 600 "$work/tlssend" "$address" --tls "$tls" --batch "$batch" --connections "$connections" --count "$count" \
    --ca "$identity/ca.pem" --certificate "$identity/$topic.pem" --key "$identity/$topic.key" > "$work/sent" ||
    fail "the sender failed at $1"
  after=$(ticks)
  stop_server
  read -r sent seconds rest < "$work/sent"
  read -r received accepted observed < <("count_$kind") || fail "$1 says nothing of what it received"
  [[ $sent == "$received" && $sent == "$accepted" ]] ||
    fail "at $1, $sent were sent, $received were received and $accepted accepted"
  awk -v ticks=$((after - before)) -v hz="$ticks_per_second" -v n="$sent" -v seconds="$seconds" \
    -v observed="$observed" \
    'BEGIN {
      share = observed == "-" ? "-" : sprintf("%.1f", 100 * observed / n)
      printf "%.2f %.0f %s\n", ticks / hz / n * 1e9, n / seconds, share
    }' >> "$work/$1.runs"
}

# Prints a load's row: medians of both servers.
row() {
  awk -v label="$2" -v want="$3" -v sink="$(median "sink-$1")" -v simulate="$(median "simulate-$1")" \
    -v sink_rate="$(median "sink-$1" 2)" -v simulate_rate="$(median "simulate-$1" 2)" '
    BEGIN {
      printf "%-36s %10.1f %10.1f %8.2f %10.2f %10.2f  %s\n", label, sink, simulate, simulate / sink,
        sink_rate / 1e6, simulate_rate / 1e6, want
    }'
}

# Prints the row of a simulator that observes, beside one that does not.
observed_row() {
  local share=-
  grep -q -- '-$' "$work/$1-12-64-1.runs" || share="$(median "$1-12-64-1" 3) %"
  awk -v label="$2" -v plain="$(median simulate-12-64-1)" -v observed="$(median "$1-12-64-1")" \
    -v rate="$(median "$1-12-64-1" 2)" -v share="$share" '
    BEGIN { printf "%-36s %10.1f %10.1f %8.2f %10.2f %11s\n", label, plain, observed, observed / plain, rate / 1e6, share }'
}

bench() {
  local load kind measures=() loads=(12-64-1 13-64-1 12-64-2 12-1-1)
  quietly gcc -O2 -o "$work/tlssend" Benchmarks/tlssend.c -lssl -lcrypto -lpthread
  quietly gcc -O2 -o "$work/tlssink" Benchmarks/tlssink.c -lssl -lcrypto -lpthread
  rm -rf "$identity"
  quietly "$release_folder/apnscope" identity --directory "$identity" --topic "$topic"
  for load in "${loads[@]}"; do measures+=("sink-$load" "simulate-$load"); done
  for kind in records verdict control; do measures+=("$kind-12-64-1"); done
  interleave "${measures[@]}"
  echo "OpenSSL $(pkg-config --modversion libcrypto), AES-128-GCM, mutual authentication; notifications of 250 B," \
    "$notifications a run, $((notifications / 8)) one by one; $rounds interleaved rounds, medians"
  echo
  printf '%-36s %21s %8s %21s\n' "" "CPU ns/notification" "" "M notifications/s"
  printf '%-36s %10s %10s %8s %10s %10s  %s\n' "" sink simulate ratio sink simulate required
  row 12-64-1 "TLS 1.2, 64 a record, 1 connection" "<= 2.5 x, aim 1.5 x"
  row 13-64-1 "TLS 1.3, 64 a record, 1 connection" ""
  row 12-64-2 "TLS 1.2, 64 a record, 2 connections" ""
  row 12-1-1 "TLS 1.2, 1 a record, 1 connection" ""
  echo
  echo "observing, as TLS 1.2, 64 a record, 1 connection; at full rate notifications are left out, and none waits"
  printf '%-36s %10s %10s %8s %10s %11s\n' "" without with ratio "M/s" "in them"
  observed_row records "simulate --records /dev/null"
  observed_row verdict "simulate --verdict"
  observed_row control "simulate --control"
}
