# The load generator against the simulator, beside pairs in C that do the same: read by Scripts/bench, which then calls
# `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

# shellcheck disable=SC2034 # Scripts/bench shows it
columns="accepted a second; of errpair and load then discarded per rejection, p50 and p99; of load also send lag in us, p50
  and p99, connections opened and resumed; of open also resident KiB, early and late"
[[ $# -eq 0 ]] || usage
notifications=${BENCH_NOTIFICATIONS:-16000000}
error_seconds=5
open_seconds=10
open_rate=200k/s
many=500
identity=$work/identity
topic=com.example.app
# All differ; with an index of seven digits they have 189 bytes.
template='{"aps":{"alert":{"title":"Harbour","body":"Ferry {index} leaves in ten minutes"},"badge":1,"sound":"default"},"id":"{random:71}"}'
# Starts a server that prints "gateway HOST:PORT" when it can be connected to, and sets `address`.
start_server() {
  local attempt
  # The address in it must not be that of the server before.
  rm -f "$work/server.out" "$work/ledger.json"
  # In a folder of its own, where it may leave what it keeps.
  (cd "$work" && exec "$@") > "$work/server.out" 2> "$work/server.err" &
  server=$!
  for ((attempt = 0; attempt < 200; attempt++)); do
    address=$(sed -n 's/^gateway //p' "$work/server.out" 2> /dev/null || true)
    [[ -z $address ]] || return 0
    kill -0 "$server" 2> /dev/null || break
    sleep 0.05
  done
  fail "$1 does not listen"
}
start_simulate() {
  start_server "$root/$release_folder/apnscope" simulate --identity "$identity" --gateway 127.0.0.1:0 \
    --feedback 127.0.0.1:0 --ledger "$work/ledger.json"
}

provider=(--ca "$identity/ca.pem" --certificate "$identity/$topic.pem" --key "$identity/$topic.key")

# Frames of a payload of 189 bytes have 250, and 64 of them are a record of 16000.
run_load() {
  timeout 600 "$release_folder/apnscope" load --identity "$identity" --gateway "$address" --tls 1.2 \
    --ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256 --batch 64 --stagger 0s \
    --output "$work/result.json" "$@" > "$work/client.out" 2> "$work/client.err"
}

# Ends the simulator and sets the books of both sides against each other, to the last notification. Prints: accepted a
# second, of the time until the last answer; what the loss window and the send lag were (p50 and p99 each); and how many
# connections were opened and resumed.
close_books() {
  stop_server
  python3 - "$work/result.json" "$work/ledger.json" << 'END' || fail "the books of $1 do not agree"
import json, sys
result, gateway = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))["gateway"]
counts, sendings = result["notifications"], result["sendings"]
rejected = sum(gateway["rejected"].values())
assert all(one["holds"] for one in result["verdict"]["invariants"]), result["verdict"]["invariants"]
assert counts["unknown"] == counts["abandoned"] == 0, counts
assert gateway["received"] == gateway["accepted"] + rejected + gateway["discarded"], gateway
assert counts["accepted"] == sendings["accepted"] == gateway["accepted"], (counts, gateway)
# Each connection's life ends with a marker or with a rejection.
assert 0 <= sendings["rejected"] + sendings["markers"] - rejected <= sendings["markers"], (sendings, gateway)
assert sendings["rejected"] == counts["rejected"] == counts["generated"] - counts["accepted"], counts
assert sum(result["error_responses"].values()) == counts["rejected"], result["error_responses"]
seconds = sum(phase["seconds"] for phase in result["phases"] if phase["name"] in ("measured", "drain"))
loss, lag = result["loss_window"], result["latency"]["send_lag_us"]
connections = result["connections"]
print(int(counts["accepted"] / seconds), loss["p50"], loss["p99"], lag["p50"], lag["p99"], connections["opened"],
      connections["resumed"])
END
}

resident_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }

# What two programs in C send each other over so many connections.
measure_pair() {
  local sent seconds rest
  start_server "$work/tlssink" 0 --ca "$identity/ca.pem" --certificate "$identity/gateway.pem" \
    --key "$identity/gateway.key"
  timeout 600 "$work/tlssend" "$address" --tls 12 --batch 64 --connections "$1" --count "$notifications" \
    "${provider[@]}" > "$work/sent" 2> "$work/client.err" || fail "the sender failed"
  stop_server
  read -r sent seconds rest < "$work/sent"
  awk -v n="$sent" -v seconds="$seconds" 'BEGIN { printf "%.0f\n", n / seconds }'
}

# Adds one run's line to its measure's file: accepted a second, and what else there is to say.
measure() {
  local early late
  case $1 in
    pair) measure_pair 2 >> "$work/$1.runs" ;;
    manypair) measure_pair "$many" >> "$work/$1.runs" ;;
    load)
      start_simulate
      run_load --payload 189 --connections 2 --count "$notifications" --for 300s || fail "load failed"
      close_books "$1" >> "$work/$1.runs"
      ;;
    templateload)
      start_simulate
      run_load --payload-template "$template" --connections 2 --count "$notifications" --for 300s || fail "load failed"
      close_books "$1" >> "$work/$1.runs"
      ;;
    manyload)
      start_simulate
      # Some of them are always being made again, which a loop has to come to between the others' records.
      run_load --payload 189 --connections "$many" --faults missing-token=1e-5 --count "$notifications" --for 300s || fail "load failed"
      close_books "$1" >> "$work/$1.runs"
      ;;
    errpair)
      timeout 600 "$work/errpair" --tls 12 --secs "$error_seconds" --every 10000 "${provider[@]}" \
        --gateway-certificate "$identity/gateway.pem" --gateway-key "$identity/gateway.key" \
        >> "$work/$1.runs" 2> "$work/client.err" || fail "errpair failed"
      ;;
    errload)
      start_simulate
      run_load --payload 189 --connections 1 --resume on --faults missing-token=1e-4 --for "${error_seconds}s" || fail "load failed"
      close_books "$1" >> "$work/$1.runs"
      ;;
    open)
      start_simulate
      run_load --payload 189 --connections 2 --rate "$open_rate" --for "${open_seconds}s" &
      client=$!
      sleep 2
      # That of timeout's child, which is the generator.
      generator=$(pgrep -P "$(pgrep -P "$client" -x timeout || echo "$client")" | head -n 1)
      early=$(resident_kib "$generator") || fail "load does not run"
      sleep $((open_seconds - 3))
      late=$(resident_kib "$generator") || fail "load does not run"
      wait "$client" || fail "load failed"
      client=
      echo "$(close_books "$1") $early $late" >> "$work/$1.runs"
      ;;
  esac
}

# Prints a row with two rates in millions a second, and their ratio.
row() {
  awk -v label="$1" -v want="$4" -v pair="$(median "$2")" -v load="$(median "$3")" \
    'BEGIN { printf "%-44s %10.2f %10.2f %8.2f  %s\n", label, pair / 1e6, load / 1e6, load / pair, want }'
}
# Prints a row with a number of the yardstick, or nothing, and of load.
number_row() { printf '%-44s %10s %10s %8s  %s\n' "$1" "$2" "$3" "" "$4"; }

bench() {
  local program
  for program in tlssend tlssink errpair; do
    quietly gcc -O2 -o "$work/$program" "Benchmarks/$program.c" -lssl -lcrypto -lpthread
  done
  rm -rf "$identity"
  quietly "$release_folder/apnscope" identity --directory "$identity" --topic "$topic"
  interleave pair load templateload manypair manyload errpair errload open
  echo "OpenSSL $(pkg-config --modversion libcrypto), TLS 1.2 ECDHE AES-128-GCM, mutual authentication; notifications of" \
    "250 B, 64 a record; $rounds interleaved rounds, medians; all books agree"
  echo
  printf '%-44s %10s %10s %8s  %s\n' "" "C pair" load ratio required
  row "2 connections, M accepted/s" pair load ">= 0.5 x, aim 0.7 x"
  row "  each payload another, of one template" pair templateload ""
  row "$many connections, M accepted/s" manypair manyload ""
  row "1 rejection in 10000, M accepted/s" errpair errload ">= 0.6 x, aim 0.8 x"
  number_row "  discarded per rejection, p50" "$(median errpair 2)" "$(median errload 2)" "<= 200"
  number_row "  discarded per rejection, p99" "$(median errpair 3)" "$(median errload 3)" "<= 1000"
  number_row "open loop at $open_rate, send lag p99, us" "" "$(median open 5)" "<= 2000"
  number_row "  resident KiB after 2 s" "" "$(median open 8)" ""
  number_row "  resident KiB after $((open_seconds - 1)) s" "" "$(median open 9)" "the same"
}
