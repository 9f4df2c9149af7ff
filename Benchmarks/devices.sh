# What a connected device costs both ends, and how long it takes until all have their notifications: read by Scripts/bench,
# which then calls `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's; `status` is what it ends with.
# shellcheck disable=SC2154,SC2034

[[ $# -eq 0 ]] || usage
need_packages curl
devices=${BENCH_CONNECTIONS:-18000}
rate=${BENCH_RATE:-10000}
seconds=10
identity=$work/identity
topic=com.example.app

resident_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }
cpu_seconds() { sed 's/.*) //' "/proc/$1/stat" | awk -v hz="$(getconf CLK_TCK)" '{ printf "%.1f", ($12 + $13) / hz }'; }
metric() { curl -s --max-time 10 "$metrics" | awk -v name="$1" '$1 == name { print $2 }'; }

# Waits until a metric of the gateway has a value, for at most 5 minutes.
wait_for_metric() {
  local attempt
  for ((attempt = 0; attempt < 600; attempt++)); do
    [[ $(metric "$1") != "$2" ]] || return 0
    sleep 0.5
  done
  fail "$1 is $(metric "$1"), not $2"
}

# start_gateway OPTION …: sets `gateway`, `channel` and `metrics`.
start_gateway() {
  rm -f "$work/ready" "$work/ledger.json"
  "$release_folder/apnscope" simulate "$@" --seed 7 --no-feedback --gateway 127.0.0.1:0 --device-channel 127.0.0.1:0 \
    --metrics 127.0.0.1:0 --max-connections $((devices + 100)) --ready-file "$work/ready" --ledger "$work/ledger.json" \
    > "$work/server.out" 2> "$work/server.err" &
  server=$!
  await_ready "$server"
  gateway=$(listener gateway) channel=$(listener devices) metrics=$(listener metrics)
}

# bare NAME OPTION …: connections of a program in C that say nothing.
bare() {
  local name=$1 before after mine attempt
  shift
  before=$(resident_kib "$server")
  "$work/tlsidle" "${channel%:*}" "${channel##*:}" "$devices" "$@" > "$work/client.out" 2> "$work/client.err" &
  client=$!
  for ((attempt = 0; attempt < 2400; attempt++)); do
    ! grep -q '^[0-9]' "$work/client.out" || break
    kill -0 "$client" 2> /dev/null || break
    sleep 0.1
  done
  grep -q '^[0-9]' "$work/client.out" || fail "not all connections were made"
  sleep 1
  after=$(resident_kib "$server") mine=$(resident_kib "$client")
  stop_processes
  awk -v name="$name" -v count="$devices" -v gateway=$((after - before)) -v mine="$mine" 'BEGIN {
    printf "%-28s %12.1f %12.1f\n", name, gateway / count, mine / count }'
}

# start_fleet COUNT OPTION …
start_fleet() {
  local count=$1
  shift
  rm -f "$work/fleet.json"
  "$release_folder/apnscope" devices --gateway "$channel" --seed 7 --count "$count" --connect-rate 2k/s --topic "$topic" \
    --output "$work/fleet.json" "$@" > "$work/client.out" 2> "$work/client.err" &
  client=$!
}

# memory NAME MOST METRIC OPTION …: starts the devices, and shows what each takes at both ends; the metric counts those
# that are connected.
memory() {
  local name=$1 most=$2 online=$3 before after alone mine
  shift 3
  # Both ends with one device, above which the others are.
  start_fleet 1 "$@"
  wait_for_metric "$online" 1
  sleep 1
  alone=$(resident_kib "$client") before=$(resident_kib "$server")
  stop_process "$client"
  wait_for_metric "$online" 0
  start_fleet "$devices" "$@"
  wait_for_metric "$online" "$devices"
  sleep 2
  after=$(resident_kib "$server") mine=$(resident_kib "$client")
  awk -v name="$name" -v count="$devices" -v gateway=$((after - before)) -v mine=$((mine - alone)) -v most="$most" 'BEGIN {
    printf "%-28s %12.1f %12.1f  <= %d\n", name, gateway / count, mine / count, most
    exit gateway / count > most || mine / count > most }' || status=1
}

# fleet NAME MOST GATEWAY_OPTION OPTION …: devices, and a load of notifications to them.
fleet() {
  local name=$1 most=$2 tls=$3 load_options=(--plain)
  shift 3
  [[ $tls == plain ]] || load_options=(--identity "$identity")
  memory "$name" "$most" apnscope_devices_online "$@"
  local gateway_cpu fleet_cpu
  gateway_cpu=$(cpu_seconds "$server") fleet_cpu=$(cpu_seconds "$client")
  "$release_folder/apnscope" load --gateway "$gateway" "${load_options[@]}" --seed 7 --tokens "$devices" \
    --rate "$rate/s" --count $((rate * seconds)) --for 5m > "$work/load.out" 2> "$work/load.err" || fail "load failed"
  wait_for_metric apnscope_devices_unacknowledged 0
  gateway_cpu=$(awk -v a="$gateway_cpu" -v b="$(cpu_seconds "$server")" 'BEGIN { print b - a }')
  fleet_cpu=$(awk -v a="$fleet_cpu" -v b="$(cpu_seconds "$client")" 'BEGIN { print b - a }')
  kill -TERM "$client"
  wait "$client" || fail "the fleet failed"
  client=
  stop_server
  python3 - "$work/fleet.json" "$work/ledger.json" $((rate * seconds)) "$gateway_cpu" "$fleet_cpu" "$name" \
    >> "$work/deliveries.txt" << 'END' || fail "the books of $name do not agree"
import json, sys
fleet, ledger = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
count, gateway, mine, name = int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]), sys.argv[6]
received, devices = fleet["notifications"], ledger["devices"]
good = ledger["gateway"]["accepted"] == count == devices["delivered"] == received["received"] and not fleet["faults"]
online = fleet["latency"]["online_us"]
print("%-28s %10.1f %10.1f %10.1f %12.1f %12.1f" % (
    name, online["p50"] / 1000, online["p99"] / 1000, online["max"] / 1000, gateway / count * 1e6, mine / count * 1e6))
if not good:
    print(json.dumps({"gateway": ledger["gateway"], "devices": devices, "received": received}), file=sys.stderr)
raise SystemExit(0 if good else 1)
END
}

# local_push NAME MOST OPTION …: extensions that are connected and say nothing, and a server that sends texts and heartbeats;
# the options are those of the gateway and of the fleet, apart from each other by `--`.
local_push() {
  local name=$1 most=$2 gateway_options=()
  shift 2
  while [[ $1 != -- ]]; do
    gateway_options+=("$1")
    shift
  done
  shift
  start_gateway "${gateway_options[@]}" --local-push 127.0.0.1:0
  memory "$name" "$most" apnscope_local_push_here --local-push "$(listener local-push)" "$@"
  stop_processes
  # Texts are for those who are here, so some come while devices connect: the processor is looked at after that.
  start_gateway "${gateway_options[@]}" --local-push 127.0.0.1:0 --local-push-rate "$rate/s"
  start_fleet "$devices" --local-push "$(listener local-push)" "$@"
  wait_for_metric apnscope_local_push_here "$devices"
  sleep 2
  local gateway_cpu fleet_cpu count texts='apnscope_local_push_requests_total{kind="text",outcome="acknowledged"}'
  gateway_cpu=$(cpu_seconds "$server") fleet_cpu=$(cpu_seconds "$client") count=$(metric "$texts")
  sleep "$seconds"
  gateway_cpu=$(awk -v a="$gateway_cpu" -v b="$(cpu_seconds "$server")" 'BEGIN { print b - a }')
  fleet_cpu=$(awk -v a="$fleet_cpu" -v b="$(cpu_seconds "$client")" 'BEGIN { print b - a }')
  count=$(($(metric "$texts") - count))
  # The server ends first: what it has sent before is with the devices, and acknowledged.
  stop_server
  stop_process "$client"
  client=
  python3 - "$work/fleet.json" "$work/ledger.json" "$count" "$gateway_cpu" "$fleet_cpu" "$name" \
    >> "$work/deliveries.txt" << 'END' || fail "the books of $name do not agree"
import json, sys
fleet, ledger = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))["local_push"]
count, gateway, mine, name = int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]), sys.argv[6]
texts, received = ledger["texts"], fleet["local_push"]["texts"]
good = texts["acknowledged"] == texts["sent"] == received and texts["timed_out"] == texts["lost"] == 0 and not fleet["faults"]
online = fleet["latency"]["online_us"]
print("%-28s %10.1f %10.1f %10.1f %12.1f %12.1f" % (
    name, online["p50"] / 1000, online["p99"] / 1000, online["max"] / 1000, gateway / count * 1e6, mine / count * 1e6))
if not good:
    print(json.dumps({"local_push": ledger, "received": received, "faults": fleet["faults"]}), file=sys.stderr)
raise SystemExit(0 if good else 1)
END
}

# A campaign of a million notifications to a million devices, of which some are connected: the others have never been.
campaign() {
  local count=1000000
  start_gateway --plain --devices-offline 30%
  start_fleet "$devices" --plain
  wait_for_metric apnscope_devices_online "$devices"
  "$release_folder/apnscope" load --gateway "$gateway" --plain --seed 7 --tokens "$count" --stamp --rate "$((2 * rate))/s" \
    --count "$count" --for 10m > "$work/load.out" 2> "$work/load.err" || fail "load failed"
  wait_for_metric apnscope_devices_unacknowledged 0
  kill -TERM "$client"
  wait "$client" || fail "the fleet failed"
  client=
  stop_server
  quietly "$release_folder/apnscope" report "$work/fleet.json" --ledger "$work/ledger.json" --output "$work/report"
  echo "a campaign of $count notifications at $((2 * rate))/s to a population of $count devices, $devices of them connected and 30 % of" \
    "the others away; the books of gateway and devices agree; time until a device had it:"
  grep -E '^(  +p50|campaign|due, |write, |online )' "$work/client.out"
}

bench() {
  (($(ulimit -Hn) > devices + 100)) ||
    fail "$devices devices need as many file descriptors and 100 more; 'ulimit -Hn' says $(ulimit -Hn)"
  quietly gcc -O2 -o "$work/tlsidle" Benchmarks/tlsidle.c -lssl -lcrypto
  rm -rf "$identity" "$work/deliveries.txt"
  quietly "$release_folder/apnscope" identity --directory "$identity" --topic "$topic"
  local ca=(--ca "$identity/ca.pem") pair=(--certificate "$identity/$topic.pem" --key "$identity/$topic.key")
  echo "$devices connections to the device channel, OpenSSL $(pkg-config --modversion libcrypto): KB of memory for each; the bare ones are of a program" \
    "in C that says nothing"
  echo
  printf '%-28s %12s %12s  %s\n' "" "at gateway" "at device" required
  start_gateway --identity "$identity"
  bare "bare, TLS 1.3" --tls 13 "${ca[@]}" "${pair[@]}"
  start_gateway --identity "$identity"
  fleet "devices, TLS 1.3" 32 tls "${ca[@]}"
  start_gateway --plain
  fleet "devices, in clear" 8 plain --plain
  local_push "local push, TLS 1.3" 32 --identity "$identity" -- "${ca[@]}"
  local_push "local push, in clear" 8 --plain -- --plain
  echo
  echo "$((rate * seconds)) notifications to them at $rate/s, each acknowledged, in the ledger and with its device: milliseconds from the" \
    "gateway's read to the device, microseconds of processor time a notification; of local push $rate texts/s, with heartbeats, and times from when the first device connects on"
  echo
  printf '%-28s %10s %10s %10s %12s %12s\n' "" p50 p99 max "CPU gateway" "CPU devices"
  cat "$work/deliveries.txt"
  echo
  campaign
}
