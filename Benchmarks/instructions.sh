# Instructions per notification: read by Scripts/bench, which then calls `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

# shellcheck disable=SC2034 # Scripts/bench builds it
product=InstructionCount
baseline=Benchmarks/instructions.txt
rewrite=false
for argument in "$@"; do
  case $argument in
    instructions | --instructions) ;;
    --rewrite) rewrite=true ;;
    *) usage ;;
  esac
done
need_packages valgrind gcc libc6-dev libnghttp2-14 openssl python3

# What a job may cost above or below its baseline, in per cent, without a word. Two counts of one program differ by up to
# 1.5 where a thread reads ahead, and by less than 0.1 elsewhere.
tolerance=${BENCH_TOLERANCE:-3}

# Sets `instructions` and `notifications` of one run: JOB and a number of times, or of megabytes where it reads a capture.
count() {
  local output=$work/$1-$2 arguments=("$1" "$2")
  case $1 in
    decode | inspect) arguments=("$1" 1 "$work/counted-$2.pcap") ;;
    decode-http2 | inspect-http2) arguments=("${1%-http2}" 1 "$work/http2-$2/clear.pcap") ;;
    decode-tls) arguments=(decode 1 "$work/counted-tls-$2.pcap" "$work/counted-tls-$2.keys") ;;
  esac
  # Hashes that differ from run to run would make tables of other shapes.
  SWIFT_DETERMINISTIC_HASHING=1 valgrind --tool=callgrind --callgrind-out-file="$output.callgrind" \
    "$work/InstructionCount" "${arguments[@]}" > "$output.count" 2> "$output.log" ||
    give_up "callgrind: $(tail -n 1 "$output.log")"
  notifications=$(< "$output.count")
  instructions=$(awk '/^(summary|totals):/ { print $2; exit }' "$output.callgrind")
}

# Prints a job, its instructions per notification, the baseline's, and how they differ. Of a run with little to do and one
# with more the difference is counted, so that starting, and growing to its size, costs nothing.
row() {
  local name=$1 first first_notifications
  count "$name" "$2"
  first=$instructions first_notifications=$notifications
  count "$name" "$3"
  awk -v name="$name" -v cost="$((instructions - first))" -v n="$((notifications - first_notifications))" \
    -v before="$(awk -v name="$name" '$1 == name { print $2 }' "$baseline" 2> /dev/null)" -v tolerance="$tolerance" '
    BEGIN {
      now = cost / n
      printf "%-16s %12.1f", name, now
      if (before == "") { printf " %12s %9s\n", "-", "-"; exit }
      change = (now / before - 1) * 100
      if (change > tolerance) note = "  more than before"
      if (change < -tolerance) note = "  less: keep it with --rewrite"
      printf " %12.1f %+7.2f %%%s\n", before, change, note
    }'
}

bench() {
  # Symbols make callgrind slow, and it counts the same without them.
  strip -o "$work/InstructionCount" "$release_folder/InstructionCount"
  quietly gcc -O2 -o "$work/genbig" Benchmarks/genbig.c
  quietly gcc -O2 -o "$work/gentls" Benchmarks/gentls.c -lssl -lcrypto
  local size
  for size in 10 40; do
    "$work/genbig" "$work/counted-$size.pcap" "${size}000000" 16 > /dev/null
    "$work/gentls" "$work/counted-tls-$size.pcap" "$work/counted-tls-$size.keys" "${size}000000" 16 13 > /dev/null
  done
  for size in 250 1000; do
    [[ -s $work/http2-$size/clear.pcap ]] || quietly python3 Benchmarks/http2.py "$work/http2-$size" "$size"
  done
  echo "Instructions per notification, counted by $(valgrind --version); more than $tolerance % above $baseline is a failure."
  echo
  printf '%-16s %12s %12s %9s\n' "" now before change
  {
    row decode 10 40
    row decode-tls 10 40
    row inspect 10 40
    row decode-http2 250 1000
    row inspect-http2 250 1000
    row encode 10 40
    row session 10 40
    row judge 10 40
    row template 10 40
  } | tee "$work/instructions"
  if "$rewrite"; then
    awk '{ printf "%-12s %8.1f\n", $1, $2 }' "$work/instructions" > "$baseline.new"
    mv "$baseline.new" "$baseline"
  else
    ! grep -q 'more than before$' "$work/instructions" || status=1
  fi
}
