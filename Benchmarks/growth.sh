# How decoding grows: read by Scripts/bench, which then calls `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

# shellcheck disable=SC2034 # Scripts/bench shows it
columns="microseconds, KiB of memory at most, and microseconds of processor time"
need_packages time
bytes=${BENCH_BYTES:-1000000000}
quietly gcc -O2 -o "$work/genbig" Benchmarks/genbig.c
quietly gcc -O2 -o "$work/loop" Benchmarks/loop.c -lpcap

run_loop() { "$@" "$work/loop" "$capture"; }
run_inspect() { "$@" "$release_folder/apnscope" inspect --no-lint "$capture"; }
run_decode() { "$@" "$release_folder/apnscope" decode --no-lint "$capture"; }

# Adds one run's figures to its measure's file.
measure() {
  local start end
  start=${EPOCHREALTIME/[^0-9]/}
  "run_$1" /usr/bin/time -f '%M %U %S' -o "$work/usage" > /dev/null
  end=${EPOCHREALTIME/[^0-9]/}
  echo "$((end - start)) $(awk '{ printf "%d %d", $1, ($2 + $3) * 1e6 }' "$work/usage")" >> "$work/$1.runs"
}

# One row: a capture of so many bytes, connections, and whole notifications a segment (- for segments of any length).
# The capture is deleted again.
grow() {
  local size=$1 connections=$2 whole=$3 name notifications
  local make=("$work/genbig" "$work/growth.pcap" "$size" "$connections")
  [[ $whole == - ]] || make+=("$whole")
  capture=$work/growth.pcap
  read -r _ notifications _ <<< "$("${make[@]}")"
  cat "$capture" > /dev/null
  # A capture larger than the memory for files comes from the disk; the loop beside it does, too.
  interleave loop inspect decode
  for name in loop inspect decode; do sed "s/^/$size-$connections-$whole-$name /" "$work/$name.runs" >> "$work/growth.runs"; done
  awk -v size="$(stat -c %s "$capture")" -v connections="$connections" -v whole="$whole" -v n="$notifications" \
    -v loop="$(median loop)" -v inspect="$(median inspect)" -v cpu="$(median inspect 3)" -v memory="$(median inspect 2)" \
    -v decode="$(median decode)" -v decode_cpu="$(median decode 3)" -v decode_memory="$(median decode 2)" '
    BEGIN {
      gb = size / 1e9
      printf "%8.2f %11d %8s %9.2f %8.3f %9.3f %8.3f %8.1f %9.3f %8.3f %9.2f %8.1f\n", gb, connections, whole, n / 1e6,
        loop / 1e6 / gb, inspect / 1e6 / gb, cpu / 1e6 / gb, memory / 1024, decode / 1e6 / gb, decode_cpu / 1e6 / gb,
        n / decode, decode_memory / 1024
    }'
  rm -f "$capture"
}

bench() {
  local size connections whole
  rm -f "$work/growth.runs"
  echo "seconds are per GB of capture; medians of $rounds interleaved rounds; inspect and decode (JSON Lines) without rules"
  echo "about payloads, on all cores"
  echo
  printf '%8s %11s %8s %9s %8s %9s %8s %8s %9s %8s %9s %8s\n' "" "" notif. "" loop inspect "" "" decode "" "" ""
  printf '%8s %11s %8s %9s %8s %9s %8s %8s %9s %8s %9s %8s\n' GB connections /segment "M notif." s/GB s/GB "cpu s/GB" \
    "peak MiB" s/GB "cpu s/GB" "M notif/s" "peak MiB"
  for size in $((bytes / 10)) "$bytes" $((bytes * 10)); do grow "$size" 256 -; done
  for connections in 1 16 4096 60000; do grow "$bytes" "$connections" -; done
  for whole in 1 5 20 200; do grow "$bytes" 256 "$whole"; done
  interleaved=()
  echo
  echo "every run: capture and measure, $columns"
  sed 's/^/  /' "$work/growth.runs"
}
