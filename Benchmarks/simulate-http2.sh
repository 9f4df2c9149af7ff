# The simulated provider API against nghttpd, under h2load: read by Scripts/bench, which then calls `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

# shellcheck disable=SC2034 # Scripts/bench shows it
columns="microseconds of the server's processor time a request, requests a second
  (a name is server, transport, observer or fault)"
[[ $# -eq 0 ]] || usage
need_packages nghttp2-client nghttp2-server
requests=${BENCH_REQUESTS:-600000}
token=0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f
path=/3/device/$token
identity=$work/identity
topic=com.example.app
ticks_per_second=$(getconf CLK_TCK)

# User and system time of the server so far, in clock ticks, of threads that have ended too.
ticks() { sed 's/.*) //' "/proc/$server/stat" | cut -d ' ' -f 12,13 | { read -r user system; echo $((user + system)); }; }

# An empty file at the path: a header alone answers, as the gateway's does. It logs nothing, and counts nothing.
start_nghttpd() {
  local options=(--no-tls)
  [[ $1 == clear ]] || options=()
  port=$((20000 + RANDOM % 10000))
  nghttpd -n 2 -d "$work/htdocs" -a 127.0.0.1 "${options[@]}" "$port" "$identity/gateway.key" "$identity/gateway.pem" \
    > "$work/server.out" 2> "$work/server.err" &
  server=$!
  local attempt
  for ((attempt = 0; attempt < 200; attempt++)); do
    ! (: > "/dev/tcp/127.0.0.1/$port") 2> /dev/null || return 0
    kill -0 "$server" 2> /dev/null || break
    sleep 0.05
  done
  fail "nghttpd does not listen"
}

# start_simulate clear|tls [OPTION …]
start_simulate() {
  local transport=(--identity "$identity")
  [[ $1 != clear ]] || transport=(--plain)
  rm -f "$work/ready" "$work/ledger.json"
  "$release_folder/apnscope" simulate --http2 127.0.0.1:0 --trust any "${transport[@]}" --ready-file "$work/ready" \
    --ledger "$work/ledger.json" "${@:2}" > "$work/server.out" 2> "$work/server.err" &
  server=$!
  await_ready "$server"
  port=$(listener http2)
  port=${port##*:}
}

# Adds one run's microseconds and requests a second to its measure's file. A server is new for every run.
measure() {
  local kind transport way before after scheme=http options=()
  IFS=- read -r kind transport way <<< "$1"
  [[ $transport == clear ]] || scheme=https
  case $way in
    fault) options=(--http2-fault 'refuse,token=00') ;;
    nolint) options=(--no-lint) ;;
    verdict) options=(--verdict) ;;
    records) options=(--records /dev/null) ;;
  esac
  "start_$kind" "$transport" "${options[@]}"
  before=$(ticks)
  timeout 300 h2load -c 4 -m 100 -t 1 -n "$requests" -d "$work/body" -H "apns-topic: $topic" -H 'apns-push-type: alert' \
    "$scheme://127.0.0.1:$port$path" > "$work/h2load.out" 2>&1 || fail "h2load failed at $1"
  after=$(ticks)
  stop_server
  grep -q "status codes: $requests 2xx" "$work/h2load.out" || fail "at $1 not every request got 200"
  [[ $kind == nghttpd ]] || python3 - "$work/ledger.json" "$requests" << 'END' || fail "the ledger of $1 has other counts"
import json, sys
ledger = json.load(open(sys.argv[1]))
sent = int(sys.argv[2])
raise SystemExit(0 if ledger["gateway"]["accepted"] == ledger["http2"]["received"] == sent else 1)
END
  awk -v ticks=$((after - before)) -v hz="$ticks_per_second" -v n="$requests" \
    -v rate="$(sed -n 's/^finished in .*, \([0-9.]*\) req\/s.*/\1/p' "$work/h2load.out")" \
    'BEGIN { printf "%.2f %.0f\n", ticks / hz / n * 1e6, rate }' >> "$work/$1.runs"
}

# Prints a row: row MEASURE LABEL
row() { printf '%-44s %12.2f %14.0f\n' "$2" "$(median "$1")" "$(median "$1" 2)"; }

bench() {
  rm -rf "$identity" "$work/htdocs"
  quietly "$release_folder/apnscope" identity --directory "$identity" --topic "$topic"
  mkdir -p "$work/htdocs/3/device"
  : > "$work/htdocs$path"
  printf '{"aps":{"alert":{"title":"Gate","body":"%s"},"badge":3,"sound":"default"},"id":"0123456789"}' \
    "$(printf 'x%.0s' {1..80})" > "$work/body"
  interleave nghttpd-clear simulate-clear nghttpd-tls simulate-tls simulate-clear-fault simulate-clear-nolint \
    simulate-clear-records simulate-clear-verdict
  echo "h2load -c 4 -m 100 -t 1, $requests POSTs of $(wc -c < "$work/body") B a run with topic and push type, on the same" \
    "cores; nghttpd with two workers, an empty file and no log; $rounds interleaved rounds, medians."
  echo "Each request got 200, and is in the simulator's ledger. Required: 150,000 requests/s."
  echo
  printf '%-44s %12s %14s\n' "" "CPU us" "requests/s"
  row nghttpd-clear "nghttpd, in clear"
  row simulate-clear "simulate --http2, in clear"
  row nghttpd-tls "nghttpd, TLS 1.3"
  row simulate-tls "simulate --http2, TLS 1.3"
  row simulate-clear-fault "in clear, with a fault that hits nothing"
  row simulate-clear-nolint "in clear, --no-lint"
  row simulate-clear-records "in clear, --records /dev/null"
  row simulate-clear-verdict "in clear, --verdict"
}
