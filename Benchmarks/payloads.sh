# What judging payloads costs inspect and decode: read by Scripts/bench, which then calls `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

# shellcheck disable=SC2034 # Scripts/bench shows it
columns="microseconds"
[[ $# -le 1 ]] || usage
bytes=${BENCH_BYTES:-1000000000}

# `same`: 4,680 different payloads; `differ`: as many as notifications.
choose() {
  capture=$work/payloads-$1-$bytes.pcap
  local make=("$work/genbig" "$capture" "$bytes" 256)
  [[ $1 != differ ]] || make+=(differ)
  [[ -s $capture.counts ]] || "${make[@]}" > "$capture.counts"
}

# A measure is the command, whether it judges, and the capture: inspect-lint-same.
measure() {
  local start end command judging population
  IFS=- read -r command judging population <<< "$1"
  choose "$population"
  local arguments=("$command")
  [[ $judging == lint ]] || arguments+=(--no-lint)
  start=${EPOCHREALTIME/[^0-9]/}
  "$release_folder/apnscope" "${arguments[@]}" "$capture" > /dev/null
  end=${EPOCHREALTIME/[^0-9]/}
  echo "$((end - start))" >> "$work/$1.runs"
}

row() {
  awk -v name="$1" -v want="$4" -v lint="$(median "$2")" -v plain="$(median "$3")" \
    'BEGIN { printf "%-34s %9.3f %9.3f %7.2f  %s\n", name, lint / 1e6, plain / 1e6, lint / plain, want }'
}

bench() {
  quietly gcc -O2 -o "$work/genbig" Benchmarks/genbig.c
  local population measures=()
  for population in same differ; do
    choose "$population"
    cat "$capture" > /dev/null
    measures+=("inspect-lint-$population" "inspect-plain-$population" "decode-lint-$population" "decode-plain-$population")
  done
  interleave "${measures[@]}"
  echo "$bytes B, 256 connections; $rounds interleaved rounds; medians in seconds"
  echo
  printf '%-34s %9s %9s %7s  %s\n' "" "judged" "not" "ratio" "required"
  row "inspect, 4,680 payloads" inspect-lint-same inspect-plain-same "<= 1.3"
  row "inspect, every payload differs" inspect-lint-differ inspect-plain-differ "<= 2.0"
  row "decode, 4,680 payloads" decode-lint-same decode-plain-same ""
  row "decode, every payload differs" decode-lint-differ decode-plain-differ ""
}
