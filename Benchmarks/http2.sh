# HTTP/2: read by Scripts/bench, which then calls `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

# shellcheck disable=SC2034 # Scripts/bench shows it
columns="microseconds, KiB of memory at most, and microseconds of processor time"
[[ $# -eq 0 ]] || usage
need_packages time libnghttp2-14 openssl tshark
requests=${BENCH_REQUESTS:-20000}
quietly gcc -O2 -o "$work/inflate" Benchmarks/inflate.c -l:libnghttp2.so.14

# Makes the captures of so many requests in each of eight styles, once.
make_requests() {
  folder=$work/http2-$1
  [[ -s $folder/count ]] || python3 Benchmarks/http2.py "$folder" "$1" > "$work/count"
  [[ -s $folder/count ]] || mv "$work/count" "$folder/count"
  read -r notifications < "$folder/count"
}

# Sets what a run reads.
choose() {
  with_keys=()
  case $1 in
    clear) make_requests "$requests" ;;
    tls) make_requests "$requests"; with_keys=(--keys "$folder/tls.keys") ;;
    more) make_requests $((4 * requests)) ;;
  esac
  capture=$folder/clear.pcap
  [[ $1 != tls ]] || capture=$folder/tls.pcap
}

run_decode() { "$@" "$release_folder/apnscope" decode --no-lint --no-fates --threads 1 "${with_keys[@]}" "$capture"; }
run_fates() { "$@" "$release_folder/apnscope" decode --no-lint --threads 1 "${with_keys[@]}" "$capture"; }
run_inspect() { "$@" "$release_folder/apnscope" inspect --no-lint --threads 1 "${with_keys[@]}" "$capture"; }
run_lint() { "$@" "$release_folder/apnscope" inspect --threads 1 "${with_keys[@]}" "$capture"; }
run_follow() { "$@" "$release_folder/apnscope" follow "${with_keys[@]}" "$capture"; }
run_inflate() { "$@" "$work/inflate" "$folder/blocks.bin"; }
# Frames alone, of which it says nothing of pushes.
run_tshark() { "$@" tshark -r "$capture" -d tcp.port==443,http2 -Y http2.headers -T fields -e http2.headers.path; }

# Adds one run's microseconds, KiB and microseconds of processor time to its measure's file.
measure() {
  local start end
  choose "${1#*-}"
  start=${EPOCHREALTIME/[^0-9]/}
  "run_${1%%-*}" /usr/bin/time -f '%M %U %S' -o "$work/usage" > /dev/null 2> "$work/errors" || { cat "$work/errors" >&2; exit 1; }
  end=${EPOCHREALTIME/[^0-9]/}
  echo "$((end - start)) $(awk '{ printf "%d %d", $1, ($2 + $3) * 1e6 }' "$work/usage")" >> "$work/$1.runs"
}

# Stops when not every request, with its answer, is decoded: the times would be those of something else.
check_requests() {
  local found
  choose "$1"
  "$release_folder/apnscope" inspect --format json "${with_keys[@]}" "$capture" > "$work/inspect.json"
  found=$(jq -r '[.summary.notifications, .fates.accepted] | unique | join(" ")' "$work/inspect.json")
  [[ $found != "$notifications" ]] || return 0
  echo "bench: $capture holds $notifications requests, and $found were decoded and accepted" >&2
  exit 1
}

row() {
  choose "${1#*-}"
  awk -v label="$2" -v n="$notifications" -v want="${3-}" -v wall="$(median "$1")" -v cpu="$(median "$1" 3)" \
    -v memory="$(sort -k 2n "$work/$1.runs" | tail -n 1 | cut -d ' ' -f 2)" 'BEGIN {
      printf "%-44s %8.3f %8.3f %12d %10.1f%s\n", label, wall / 1e6, cpu / 1e6, (cpu > 0 ? n * 1e6 / cpu : 0), memory / 1024,
        (want == "" ? "" : "  " want)
    }'
}

bench() {
  local each
  for each in clear tls more; do check_requests "$each"; done
  interleave decode-clear decode-tls decode-more fates-clear inspect-clear inspect-tls inspect-more lint-clear follow-clear \
    inflate-clear tshark-clear
  make_requests "$requests"
  echo "$notifications requests, $requests in each of eight styles of coding header fields; 'more' has four times as many"
  printf '%-44s %8s %8s %12s %10s\n' 'medians of time in seconds' time cpu 'requests/s' 'MiB'
  row decode-clear 'decode to JSON Lines, one pass' '150,000/s and 64 MiB wanted'
  row decode-tls 'the same under TLS 1.3'
  row decode-more 'the same in clear, of more' 'as much memory as of fewer wanted'
  row fates-clear 'decode to JSON Lines, two passes with fates'
  row inspect-clear 'inspect' '400,000/s and 64 MiB wanted'
  row inspect-tls 'the same under TLS 1.3'
  row inspect-more 'the same in clear, of more' 'as much memory as of fewer wanted'
  row lint-clear 'inspect with rules about payloads'
  row follow-clear 'follow'
  row inflate-clear 'libnghttp2: field blocks alone'
  row tshark-clear 'tshark: paths of requests'
}
