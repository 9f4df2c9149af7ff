# The simulated provider API for half an hour, with faults on: read by Scripts/bench, which then calls `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

[[ $# -eq 0 ]] || usage
need_packages nghttp2-client
minutes=${BENCH_MINUTES:-30}
((minutes >= 4)) || give_up "memory is compared with that after a quarter of the time: at least 4 minutes, not $minutes"
rate=20000
connections=16
devices=50000
identity=$work/identity
topic=com.example.app

resident_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$server/status"; }
# By its names and labels, as `simulate --metrics` serves it: the sum of all that begin so.
metric() { curl -s --max-time 10 "$metrics" | awk -v name="$1" 'index($1, name) == 1 { sum += $2 } END { printf "%d", sum }'; }

# Faults of every kind that leave a client something to do, one after the other by count or by chance.
faults=('refuse,probability=1%' 'reset,probability=0.1%' 'delay,exponential=20ms,probability=5%'
  'disorder,depth=8,within=50ms,every=50' 'answer,status=500,probability=1%' 'answer,status=503,content=html,every=1000'
  'frame,wrong=unknown-type,probability=1%' 'streams,limit=100,every=90000' 'goaway,every=300000,last=notice')

bench() {
  local fault options=() port minute sent=0 answered=0 quarter=0 kib cpu got
  rm -rf "$identity"
  quietly "$release_folder/apnscope" identity --directory "$identity" --topic "$topic"
  for fault in "${faults[@]}"; do options+=(--http2-fault "$fault"); done
  rm -f "$work/ready" "$work/ledger.json"
  "$release_folder/apnscope" simulate --http2 127.0.0.1:0 --trust any --identity "$identity" --metrics 127.0.0.1:0 \
    --ready-file "$work/ready" --ledger "$work/ledger.json" --reject every=700,reason=TooManyRequests --devices-offline 20% \
    --devices-uninstalled 1% --devices-online-after 5s "${options[@]}" > "$work/server.out" 2> "$work/server.err" &
  server=$!
  await_ready "$server"
  port=$(listener http2) metrics=$(listener metrics)
  port=${port##*:}
  awk -v port="$port" -v devices="$devices" \
    'BEGIN { for (i = 0; i < devices; i++) printf "https://127.0.0.1:%d/3/device/%064x\n", port, i }' > "$work/urls"
  printf '{"aps":{"alert":{"title":"Gate","body":"%s"},"badge":3}}' "$(printf 'x%.0s' {1..80})" > "$work/body"
  echo "simulate --http2, TLS 1.3, $rate requests/s over $connections connections that are new each minute, $devices device" \
    "tokens, a fifth of the devices offline for 5 s; for $minutes minutes"
  echo "faults: ${faults[*]}"
  echo
  printf '%6s %12s %12s %10s %10s\n' minute received answered MiB 'CPU s'
  for ((minute = 1; minute <= minutes; minute++)); do
    # A client whose connection the gateway ends makes no other, and the others do not go on with its share: GOAWAY ends
    # four of them in a minute, one after the other.
    timeout 100 h2load -c "$connections" -m 100 -t 1 --rps $((rate / (connections - 2))) -D 60 -i "$work/urls" -d "$work/body" \
      -H "apns-topic: $topic" -H 'apns-push-type: alert' -H 'apns-collapse-id: soak' > "$work/h2load.out" 2>&1 ||
      fail "h2load failed in minute $minute"
    got=$(sed -n 's/^status codes: \([0-9]*\) 2xx, \([0-9]*\) 3xx, \([0-9]*\) 4xx, \([0-9]*\) 5xx.*/\1 \2 \3 \4/p' \
      "$work/h2load.out" | awk '{ print $1 + $2 + $3 + $4 }')
    answered=$((answered + got))
    kib=$(resident_kib) || fail "the simulator has ended in minute $minute"
    cpu=$(sed 's/.*) //' "/proc/$server/stat" | awk -v hz="$(getconf CLK_TCK)" '{ printf "%.1f", ($12 + $13) / hz }')
    sent=$(metric apnscope_http2_received_total)
    printf '%6d %12d %12d %10.1f %10s\n' "$minute" "$sent" "$answered" "$(awk -v k="$kib" 'BEGIN { print k / 1024 }')" "$cpu"
    ((minute != minutes / 4)) || quarter=$kib
  done
  stop_server
  python3 - "$work/ledger.json" "$answered" << 'END' || fail "the ledger's counts do not add up"
import json, sys
ledger, answered = json.load(open(sys.argv[1])), int(sys.argv[2])
gateway, http2 = ledger["gateway"], ledger["http2"]
rejected = sum(gateway["rejected"].values())
print()
print("received %d = accepted %d + rejected %d + discarded %d; answered %d, of which h2load counts %d" % (
    gateway["received"], gateway["accepted"], rejected, gateway["discarded"], sum(http2["answers"].values()), answered))
print("faults:", ", ".join("%s %d" % item for item in sorted(http2["faults"].items())))
devices = ledger["devices"]
print("devices:", ", ".join("%s %d" % item for item in sorted(devices.items()) if isinstance(item[1], int)))
good = gateway["received"] == gateway["accepted"] + rejected + gateway["discarded"]
raise SystemExit(0 if good and answered <= sum(http2["answers"].values()) else 1)
END
  awk -v first="$quarter" -v last="$kib" 'BEGIN {
    printf "memory after a quarter of the time %.1f MiB, at the end %.1f MiB: %+.1f %%\n", first / 1024, last / 1024,
      100 * (last / first - 1)
    exit last > first * 1.1
  }' || fail "memory has grown by more than a tenth"
}
