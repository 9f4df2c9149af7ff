# What an idle TLS connection costs the simulator: read by Scripts/bench, which then calls `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

[[ $# -eq 0 ]] || usage
idle_connections=${BENCH_CONNECTIONS:-10000}
identity=$work/identity
topic=com.example.app
server=
client=

stop_processes() {
  local process
  for process in $client $server; do kill -TERM "$process" 2> /dev/null || true; done
  for process in $client $server; do wait "$process" 2> /dev/null || true; done
  client=
  server=
}
trap stop_processes EXIT

fail() {
  echo "bench: $1" >&2
  tail -n 5 "$work/server.err" "$work/client.err" >&2 || true
  exit 1
}

# Waits until a file has a line that matches, and prints what the pattern's group holds.
wait_for() {
  local attempt found
  for ((attempt = 0; attempt < 2400; attempt++)); do
    found=$(sed -n "s/^$2\$/\\1/p" "$1" 2> /dev/null || true)
    [[ -z $found ]] || { echo "$found"; return 0; }
    kill -0 "$3" 2> /dev/null || break
    sleep 0.05
  done
  return 1
}

resident_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$server/status"; }

# Prints a TLS version's row.
measure() {
  local port before after
  rm -f "$work"/{server,client}.{out,err} "$work/ledger.json"
  (cd "$work" && exec "$root/$release_folder/apnscope" simulate --identity "$identity" --gateway 127.0.0.1:0 \
    --feedback 127.0.0.1:0 --ledger "$work/ledger.json") > "$work/server.out" 2> "$work/server.err" &
  server=$!
  port=$(wait_for "$work/server.out" 'gateway 127\.0\.0\.1:\([0-9]*\)' "$server") || fail "the simulator does not listen"
  before=$(resident_kib)
  "$work/tlsidle" 127.0.0.1 "$port" "$idle_connections" --tls "$1" --ca "$identity/ca.pem" \
    --certificate "$identity/$topic.pem" --key "$identity/$topic.key" \
    > "$work/client.out" 2> "$work/client.err" &
  client=$!
  wait_for "$work/client.out" '\([0-9][0-9]*\)' "$client" > /dev/null || fail "not all connections were made"
  sleep 1
  after=$(resident_kib)
  stop_processes
  python3 -c 'import json, sys; g = json.load(sys.stdin)["gateway"]; sys.exit(g["handshakes"] != int(sys.argv[1]))' \
    "$idle_connections" < "$work/ledger.json" || fail "the ledger does not have all connections"
  awk -v tls="1.${1#1}" -v before="$before" -v after="$after" -v count="$idle_connections" 'BEGIN {
    printf "TLS %-8s %12.1f %12.1f %16.1f  <= 60\n", tls, before / 1024, after / 1024, (after - before) / count
  }'
}

bench() {
  (($(ulimit -Hn) > idle_connections + 100)) ||
    fail "$idle_connections connections need as many file descriptors and 100 more; 'ulimit -Hn' says $(ulimit -Hn)"
  quietly gcc -O2 -o "$work/tlsidle" Benchmarks/tlsidle.c -lssl -lcrypto
  rm -rf "$identity"
  quietly "$release_folder/apnscope" identity --directory "$identity" --topic "$topic"
  echo "OpenSSL $(pkg-config --modversion libcrypto), mutual authentication, $idle_connections idle connections"
  echo
  printf '%-12s %12s %12s %16s  %s\n' "" "MB before" "MB after" "KB a connection" required
  measure 12
  measure 13
}
