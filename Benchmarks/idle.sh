# What an idle connection costs the simulator, in TLS, and over HTTP/2 in clear too: read by Scripts/bench, which then calls `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

[[ $# -eq 0 ]] || usage
idle_connections=${BENCH_CONNECTIONS:-10000}
identity=$work/identity
topic=com.example.app
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

# Prints a row: measure PROTOCOL TLS KIB, where the protocol is gateway or http2, TLS is 12, 13 or none.
measure() {
  local port before after name server_tls=(--identity "$identity") client_tls=(--tls "$2" --ca "$identity/ca.pem" \
    --certificate "$identity/$topic.pem" --key "$identity/$topic.key")
  [[ $2 != none ]] || { server_tls=(--plain) client_tls=(); }
  name="$([[ $1 != http2 ]] || echo 'HTTP/2, ')$([[ $2 == none ]] && echo 'in clear' || echo "TLS 1.${2#1}")"
  [[ $1 != http2 ]] || client_tls+=(--http2)
  rm -f "$work"/{server,client}.{out,err} "$work/ledger.json"
  (cd "$work" && exec "$root/$release_folder/apnscope" simulate "${server_tls[@]}" "--$1" 127.0.0.1:0 \
    --no-feedback --ledger "$work/ledger.json") > "$work/server.out" 2> "$work/server.err" &
  server=$!
  port=$(wait_for "$work/server.out" "$1"' 127\.0\.0\.1:\([0-9]*\)' "$server") || fail "the simulator does not listen"
  before=$(resident_kib)
  "$work/tlsidle" 127.0.0.1 "$port" "$idle_connections" "${client_tls[@]}" \
    > "$work/client.out" 2> "$work/client.err" &
  client=$!
  wait_for "$work/client.out" '\([0-9][0-9]*\)' "$client" > /dev/null || fail "not all connections were made"
  sleep 1
  after=$(resident_kib)
  stop_processes
  python3 -c 'import json, sys; g = json.load(sys.stdin)["gateway"]; sys.exit(g["connections"] != int(sys.argv[1]))' \
    "$idle_connections" < "$work/ledger.json" || fail "the ledger does not have all connections"
  awk -v name="$name" -v most="$3" -v before="$before" -v after="$after" -v count="$idle_connections" 'BEGIN {
    printf "%-18s %12.1f %12.1f %16.1f  <= %d\n", name, before / 1024, after / 1024, (after - before) / count, most
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
  printf '%-18s %12s %12s %16s  %s\n' "" "MB before" "MB after" "KB a connection" required
  measure gateway 12 60
  measure gateway 13 60
  measure http2 none 9
  measure http2 12 32
  measure http2 13 32
}
