# Connected devices that come and go for half an hour, with both gateways in use: read by Scripts/bench, which then calls
# `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

[[ $# -eq 0 ]] || usage
need_packages nghttp2-client curl python3
minutes=${BENCH_MINUTES:-30}
((minutes >= 4)) || give_up "memory is compared with that after a quarter of the time: at least 4 minutes, not $minutes"
devices=${BENCH_CONNECTIONS:-2000}
rate=${BENCH_RATE:-500}
identity=$work/identity
topic=com.example.app

resident_mib() { awk '/^VmRSS/ { printf "%.1f", $2 / 1024 }' "/proc/$1/status"; }
# The sum of all metrics of the gateway that begin so.
metric() { curl -s --max-time 10 "$metrics" | awk -v name="$1" 'index($1, name) == 1 { sum += $2 } END { printf "%d", sum }'; }

# The tokens of the devices, as the fleet has told them.
tokens() {
  "$release_folder/apnscope" devices --gateway "$channel" --ca "$identity/ca.pem" --seed 7 --count "$devices" --topic "$topic" \
    --connect-rate 1k/s --for 20s --received "$work/received.jsonl" > "$work/client.out" 2> "$work/client.err" &
  client=$!
  for ((attempt = 0; attempt < 100; attempt++)); do
    [[ $(metric apnscope_devices_online) != "$devices" ]] || break
    sleep 0.2
  done
  "$release_folder/apnscope" load --gateway "$gateway" --identity "$identity" --seed 7 --tokens "$devices" --count $((devices * 12)) \
    > "$work/load.out" 2> "$work/load.err" || fail "load failed"
  wait "$client" || fail "the fleet failed"
  client=
  python3 - "$work/received.jsonl" "${http2##*:}" > "$work/urls" << 'END'
import json, sys
for token in sorted({json.loads(line)["token"] for line in open(sys.argv[1])}):
    print("https://127.0.0.1:%s/3/device/%s" % (sys.argv[2], token))
END
}

# The gateway's books beside those of both fleets: the first one told the tokens.
books() {
  python3 - "$work/fleet.json" "$work/ledger.json" "$work/received.jsonl" << 'END'
import json, sys
fleet, ledger = (json.load(open(path)) for path in sys.argv[1:3])
first, mine = sum(1 for _ in open(sys.argv[3])), fleet["notifications"]["received"]
accepted, devices = ledger["gateway"]["accepted"], ledger["devices"]
channel = devices.pop("channel")
print("accepted %d = %s" % (accepted, " + ".join("%d %s" % (count, name) for name, count in sorted(devices.items()))))
print("acknowledged %d, sent and not acknowledged %d; received by the devices %d, and %d by those that told the tokens" % (
    channel["acknowledged"], channel["unacknowledged"], mine, first))
good = accepted == sum(devices.values()) and not fleet["faults"]
good = good and channel["acknowledged"] <= mine + first <= channel["acknowledged"] + channel["unacknowledged"]
raise SystemExit(0 if good else 1)
END
}

bench() {
  local minute storms=() quarter_server=0 quarter_client=0 length=$((minutes * 60))
  rm -rf "$identity" "$work"/{ready,ledger.json,fleet.json,devices.sqlite*}
  quietly "$release_folder/apnscope" identity --directory "$identity" --topic "$topic"
  "$release_folder/apnscope" simulate --gateway 127.0.0.1:0 --http2 127.0.0.1:0 --trust any --identity "$identity" --no-feedback \
    --device-channel 127.0.0.1:0 --device-store "$work/devices.sqlite" --device-window 2s --seed 7 --metrics 127.0.0.1:0 \
    --max-connections $((devices + 100)) --ready-file "$work/ready" --ledger "$work/ledger.json" \
    > "$work/server.out" 2> "$work/server.err" &
  server=$!
  await_ready "$server"
  gateway=$(listener gateway) http2=$(listener http2) channel=$(listener devices) metrics=$(listener metrics)
  tokens
  printf '{"aps":{"alert":{"title":"Gate","body":"%s"},"badge":3}}' "$(printf 'x%.0s' {1..80})" > "$work/body"
  for ((minute = 5; minute < minutes; minute += 5)); do storms+=(--storm "${minute}m:10s"); done
  "$release_folder/apnscope" devices --gateway "$channel" --ca "$identity/ca.pem" --seed 7 --count "$devices" --topic "$topic" \
    --connect-rate 1k/s --online-for 60s --offline-for 2s..20s --reset-on-leave 20% --restore 0.2% --low-power 5% \
    --acknowledge-delay 5ms "${storms[@]}" --output "$work/fleet.json" > "$work/client.out" 2> "$work/client.err" &
  client=$!
  "$release_folder/apnscope" load --gateway "$gateway" --identity "$identity" --seed 7 --tokens "$devices" --rate "$rate/s" \
    --priority 10=8,5=2 --expiration '+1h=8,+5s=2' --stamp --for "${length}s" --output "$work/load.json" > "$work/load.out" 2> "$work/load.err" &
  local load=$!
  echo "$devices devices over TLS 1.3 that are online for 60 s and away for 2 to 20 s, a storm each 5 minutes; $rate/s over the" \
    "binary gateway and $rate/s over HTTP/2, for $minutes minutes; what waits is kept in a file"
  echo
  printf '%6s %12s %12s %14s %14s\n' minute accepted online 'gateway MiB' 'devices MiB'
  for ((minute = 1; minute <= minutes; minute++)); do
    timeout 100 h2load -c 4 -m 10 -t 1 --rps $((rate / 4)) -D 58 -i "$work/urls" -d "$work/body" -H "apns-topic: $topic" \
      -H 'apns-push-type: alert' -H 'apns-collapse-id: soak' > "$work/h2load.out" 2>&1 || fail "h2load failed in minute $minute"
    { kill -0 "$server" 2> /dev/null && kill -0 "$client" 2> /dev/null; } || fail "a process has ended in minute $minute"
    printf '%6d %12d %12d %14s %14s\n' "$minute" "$(metric apnscope_gateway_accepted_total)" \
      "$(metric apnscope_devices_online)" "$(resident_mib "$server")" "$(resident_mib "$client")"
    ((minute != minutes / 4)) || quarter_server=$(resident_mib "$server") quarter_client=$(resident_mib "$client")
  done
  wait "$load" || fail "load failed: $(tail -n 3 "$work/load.err")"
  local last_server last_client
  last_server=$(resident_mib "$server") last_client=$(resident_mib "$client")
  kill -TERM "$client"
  wait "$client" || fail "the fleet failed"
  client=
  stop_server
  echo
  cat "$work/client.out"
  echo
  books || fail "the books of the gateway and of the devices disagree"
  awk -v a="$quarter_server" -v b="$last_server" -v c="$quarter_client" -v d="$last_client" 'BEGIN {
    printf "memory after a quarter of the time and at the end: gateway %.1f and %.1f MiB (%+.1f %%), devices %.1f and %.1f MiB (%+.1f %%)\n",
      a, b, 100 * (b / a - 1), c, d, 100 * (d / c - 1)
    exit b > a * 1.1 || d > c * 1.1 }' || fail "memory has grown by more than a tenth"
}
