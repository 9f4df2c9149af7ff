# Decoding: read by Scripts/bench, which then calls `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

# shellcheck disable=SC2034 # Scripts/bench shows it
columns="microseconds, KiB of memory at most, and microseconds of processor time"
tls=false
for argument in "$@"; do
  case $argument in
    decode) ;;
    --tls) tls=true ;;
    *) usage ;;
  esac
done
need_packages time
bytes=${BENCH_BYTES:-1000000000}
quietly gcc -O2 -o "$work/loop" Benchmarks/loop.c -lpcap

# Sets what the runs read and what is known of it: `big`, or `tls-12` or `tls-13` with its keys. Makes it once.
choose() {
  capture=$work/$1-$bytes.pcap
  with_keys=()
  local make=("$work/genbig" "$capture" "$bytes" 256)
  if [[ $1 == tls-* ]]; then
    with_keys=(--keys "$work/$1-$bytes.keys")
    make=("$work/gentls" "$capture" "${with_keys[1]}" "$bytes" 256 "${1#tls-}")
  fi
  [[ -s $capture.counts ]] || "${make[@]}" > "$capture.counts"
  read -r packets notifications plaintext < "$capture.counts"
}

# The file is to come from memory in every run.
warm() { cat "$capture" > /dev/null; }

run_loop() { "$@" "$work/loop" "$capture"; }
# Without rules about payloads, which are another benchmark's, on all cores and on one thread beside the one that reads.
run_inspect() { "$@" "$release_folder/apnscope" inspect --no-lint "${with_keys[@]}" "$capture"; }
run_inspect1() { "$@" "$release_folder/apnscope" inspect --no-lint --threads 1 "${with_keys[@]}" "$capture"; }
run_decode() { "$@" "$release_folder/apnscope" decode --no-lint --format jsonl "${with_keys[@]}" "$capture"; }
run_decode1() { "$@" "$release_folder/apnscope" decode --no-lint --format jsonl --threads 1 "${with_keys[@]}" "$capture"; }
run_csv() { "$@" "$release_folder/apnscope" decode --no-lint --format csv "${with_keys[@]}" "$capture"; }
# How long it takes to start.
run_version() { "$@" "$release_folder/apnscope" --version; }
run_small() { "$@" "$release_folder/apnscope" inspect Traces/any-device-sll2.pcap; }
run_tshark() { "$@" tshark -q -r "$capture" -z io,stat,0; }
# One reading, without fates; then records selected from it, and the table.
run_bare() { "$@" "$release_folder/apnscope" decode --no-fates "${with_keys[@]}" "$capture"; }
run_all() { "$@" "$release_folder/apnscope" decode --no-fates --from 0s "${with_keys[@]}" "$capture"; }
run_few() { "$@" "$release_folder/apnscope" decode --no-fates --token 00 "${with_keys[@]}" "$capture"; }
run_table() { "$@" "$release_folder/apnscope" decode --no-fates --format table "${with_keys[@]}" "$capture"; }
run_pinned() { "$@" taskset -c 0 "$release_folder/apnscope" inspect "${with_keys[@]}" "$capture"; }
# It has to encrypt before it can decrypt, so it takes the time itself.
run_libcrypto() { "$@" "$work/tlsopen" "$plaintext" > "$work/seconds"; }

# Adds one run's microseconds and KiB to its measure's file. A measure is a run, or a run and a capture: decode-tls-12.
measure() {
  local start end taken
  [[ $1 != *-* ]] || choose "${1#*-}"
  start=${EPOCHREALTIME/[^0-9]/}
  "run_${1%%-*}" /usr/bin/time -f '%M %U %S' -o "$work/usage" > /dev/null
  end=${EPOCHREALTIME/[^0-9]/}
  taken=$((end - start))
  [[ $1 != libcrypto-* ]] || taken=$(awk '{ printf "%d", $1 * 1e6 }' "$work/seconds")
  echo "$taken $(awk '{ printf "%d %d", $1, ($2 + $3) * 1e6 }' "$work/usage")" >> "$work/$1.runs"
}

# Stops when the capture is not decoded in full: the times would be those of something else.
check_notifications() {
  local decoded
  "$release_folder/apnscope" inspect --format json "${with_keys[@]}" "$capture" > "$work/inspect.json"
  decoded=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["summary"]["notifications"])' < "$work/inspect.json")
  [[ $decoded != "$notifications" ]] || return 0
  echo "bench: $capture holds $notifications notifications, and $decoded were decoded" >&2
  exit 1
}

# Prints a measure's row: times, then, for TLS only, GB of capture a second, then ratios to the yardsticks.
row() {
  awk -v name="$1" -v label="$2" -v want="$3" -v median="$(median "$1")" -v loop="$loop" -v crypto="${libcrypto:-0}" \
    -v cpu="$(median "$1" 3)" -v loop_cpu="$loop_cpu" -v n="$notifications" -v size="$(stat -c %s "$capture")" '
    BEGIN { least = 1e18 }
    { if ($1 < least) least = $1; if ($1 > most) most = $1; if ($2 > memory) memory = $2 }
    END {
      rate = name ~ /^(loop|libcrypto|tshark|version|small)/ ? "-" : sprintf("%.2f M", n / median)
      printf "%-38s %8.3f %8.3f %8.3f", label, median / 1e6, least / 1e6, most / 1e6
      if (crypto) printf " %7.2f", size / median / 1e3
      printf " %7.2f %8.3f %7.2f", median / loop, cpu / 1e6, cpu / loop_cpu
      if (crypto) printf " %11.2f", median / crypto
      printf " %12s %10.1f%s\n", rate, memory / 1024, want == "" ? "" : "  " want
    }' "$work/$1.runs"
}

# Prints where the processor time of the rows that are named after goes, in samples of a run of each on one thread.
stages() {
  echo
  echo "Processor time by stage, one run on one thread, sampled (inspect, then decode to JSON Lines):"
  python3 Benchmarks/stages.py "$release_folder/apnscope" inspect --no-lint --threads 1 "${with_keys[@]}" "$capture" || return 0
  echo
  python3 Benchmarks/stages.py "$release_folder/apnscope" decode --no-lint --threads 1 "${with_keys[@]}" "$capture"
}

bench_plain() {
  quietly gcc -O2 -o "$work/genbig" Benchmarks/genbig.c
  choose big
  warm
  local measures=(loop inspect inspect1 decode decode1 csv bare all few table version small)
  # Far slower, so that it is only there when it is installed anyway.
  ! type tshark > /dev/null 2>&1 || measures+=(tshark)
  interleave "${measures[@]}"
  loop=$(median loop)
  loop_cpu=$(median loop 3)
  echo "$bytes B, $packets packets, $notifications notifications, 256 connections; $rounds interleaved rounds"
  echo
  printf '%-38s %8s %8s %8s %7s %8s %7s %12s %10s  %s\n' "" "median s" "min s" "max s" "x loop" "cpu s" "x loop" "notif/s" \
    "peak MiB" "aim"
  row loop "libpcap loop (the yardstick)" "-"
  row inspect "apnscope inspect" "<= 1.0 x loop, <= 1.5 x its processor time, <= 64 MiB"
  row inspect1 "  with --threads 1" "-"
  row decode "apnscope decode --format jsonl" ">= 4 M notif/s, <= 64 MiB"
  row decode1 "  with --threads 1" "-"
  row csv "apnscope decode --format csv" "-"
  row bare "apnscope decode --no-fates" "<= 64 MiB"
  row all "  with --from 0s, which selects all" "<= 1.3 x --no-fates"
  row few "  with --token 00, a 256th" "<= 1.3 x --no-fates"
  row table "  with --format table" "<= 2 x --no-fates"
  row version "apnscope --version" "<= 0.030 s"
  row small "apnscope inspect of 10 kB" "<= 0.030 s"
  [[ ! -e $work/tshark.runs ]] || row tshark "tshark -z io,stat,0" "-"
  stages
}

bench_tls() {
  need_packages python3 util-linux
  quietly gcc -O2 -o "$work/gentls" Benchmarks/gentls.c -lssl -lcrypto
  quietly gcc -O2 -o "$work/tlsopen" Benchmarks/tlsopen.c -lcrypto
  local version name measures=()
  for version in 12 13; do
    choose "tls-$version"
    check_notifications
    warm
    for name in libcrypto loop inspect inspect1 decode pinned; do measures+=("$name-tls-$version"); done
  done
  interleave "${measures[@]}"
  echo "OpenSSL $(pkg-config --modversion libcrypto), AES-128-GCM in records of 1400 B, 256 connections; $rounds interleaved rounds; GB/s are of the capture"
  for version in 12 13; do
    choose "tls-$version"
    libcrypto=$(median "libcrypto-tls-$version")
    loop=$(median "loop-tls-$version")
    loop_cpu=$(median "loop-tls-$version" 3)
    echo
    echo "TLS 1.${version#1}: $(stat -c %s "$capture") B, $packets packets, $notifications notifications, $plaintext B of plaintext"
    printf '%-38s %8s %8s %8s %7s %7s %8s %7s %11s %12s %10s\n' "" "median s" "min s" "max s" "GB/s" "x loop" "cpu s" \
      "x loop" "x libcrypto" "notif/s" "peak MiB"
    row "libcrypto-tls-$version" "libcrypto alone (a yardstick)" ""
    row "loop-tls-$version" "libpcap loop (a yardstick)" ""
    row "inspect-tls-$version" "apnscope inspect --keys" ""
    row "inspect1-tls-$version" "  with --threads 1" ""
    row "decode-tls-$version" "apnscope decode --format jsonl --keys" ""
    row "pinned-tls-$version" "apnscope inspect --keys, on one core" ""
    stages
  done
}

bench() {
  if "$tls"; then bench_tls; else bench_plain; fi
}
