# Memory that hostile recordings take: read by Scripts/bench, which then calls `bench`.
# shellcheck shell=bash
# The common functions and variables are Scripts/bench's.
# shellcheck disable=SC2154

[[ $# -eq 0 ]] || usage
need_packages time
bytes=${BENCH_BYTES:-1000000000}
quietly gcc -O2 -o "$work/hostile" Benchmarks/hostile.c
capture=$work/hostile.pcap
# In MiB: what a command may hold of unfinished business; of commands that keep notifications half as much beside it; and
# what 65,536 connections, the tallies and the program itself take at most.
limit=64
own=384

allowed() {
  case $1 in
    follow | report | redact) echo $((limit + limit / 2 + own)) ;;
    *) echo $((limit + own)) ;;
  esac
}

run() {
  case $1 in
    inspect) set -- inspect ;;
    decode) set -- decode --no-fates --output /dev/null ;;
    follow) set -- follow --output /dev/null ;;
    report) set -- report --output "$work/hostile-report" ;;
    redact) set -- redact --output /dev/null ;;
  esac
  /usr/bin/time -f '%M %e' -o "$work/usage" timeout 900 "$release_folder/apnscope" "$@" --max-memory "${limit}MiB" "$capture" \
    > "$work/hostile.out" 2> "$work/hostile.err"
}

# A row: the kind and its connections.
row() {
  local kind=$1 connections=$2 command code size packets peak seconds
  read -r size packets <<< "$("$work/hostile" "$kind" "$connections" "$bytes" "$capture")"
  printf '%-12s %11d %8.2f %10d' "$kind" "$connections" "$(awk -v b="$size" 'BEGIN { print b / 1e9 }')" "$packets"
  for command in inspect decode follow report redact; do
    code=0
    run "$command" || code=$?
    read -r peak seconds <<< "$(tail -n 1 "$work/usage")"
    peak=$((peak / 1024))
    # 65: nothing in it can be used, which is right for most.
    if ((peak > $(allowed "$command") || code != 0 && code != 65)); then
      # shellcheck disable=SC2034 # Scripts/bench ends with it
      status=1
      printf ' %5d!%6.1f' "$peak" "$seconds"
      ((code == 0 || code == 65)) || tail -n 2 "$work/hostile.err" >&2
    else
      printf ' %5d %6.1f' "$peak" "$seconds"
    fi
  done
  echo
  rm -f "$capture"
}

bench() {
  echo "--max-memory ${limit}MiB; allowed are $(allowed inspect) MiB, of follow, report and redact $(allowed follow) MiB; ! is above that, or a failure"
  echo
  printf '%-12s %11s %8s %10s %12s %12s %12s %12s %12s\n' "" "" "" "" inspect decode follow report redact
  printf '%-12s %11s %8s %10s' kind connections GB packets
  printf '%12s' " MiB      s" " MiB      s" " MiB      s" " MiB      s" " MiB      s"
  echo
  row frames 8000
  row records 60000
  row hellos 400000
  row undecided 60000
  row reordered 2000
  row identifiers 60000
  row responses 10000
  row handshakes 1000000
  row tokens 1
  row damage 8000
}
