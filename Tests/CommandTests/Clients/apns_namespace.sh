#!/bin/bash
# Runs a provider that others wrote where the names of Apple's hosts lead to `apnscope simulate --http2`, as its only
# difference: in a network and a mount namespace of its own, with the gateway at port 443.
#   apns_namespace.sh CLIENT COUNT [OPTION of simulate …]      (inside: unshare --net --mount)
#     CLIENT  aioapns, kalyke, pyapns_client, apns2, node, java
# Leaves in the current folder said.json (by token, in the client's words), ledger.json, run.pcapng, keys.log.
# Environment: apnscope (the program), venvs (the folder where Scripts/test has installed packages from PyPI), patience
# (seconds for an answer, of clients that can be told; default 20).
set -euo pipefail
apnscope=${apnscope:?} venvs=${venvs:?}
export patience=${patience:-20}
clients=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
client=$1 count=$2
shift 2
key=ABCDE12345 team=TEAM567890

"$apnscope" identity --directory ids --topic com.example.app --server-name api.push.apple.com > /dev/null
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "AuthKey_$key.p8" 2> /dev/null

# A provider token as a shell makes one, for clients that make none.
base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
head=$(printf '{"alg":"ES256","kid":"%s"}' $key | base64url)
claims=$(printf '{"iss":"%s","iat":%d}' $team "$(date +%s)" | base64url)
printf '%s.%s' "$head" "$claims" | openssl dgst -sha256 -sign "AuthKey_$key.p8" -out signature
printf 'bearer %s.%s.%s' "$head" "$claims" "$(base64url < signature)" > authorization

ip link set lo up
printf '127.0.0.1 localhost api.push.apple.com\n' > hosts
mount --bind hosts /etc/hosts

trust=(--provider-key "AuthKey_$key.p8,,$team")
[[ $client != apns2 ]] || trust=(--trust certificate)
"$apnscope" simulate --http2 127.0.0.1:443 --identity ids "${trust[@]}" --keylog keys.log --ledger ledger.json \
  --ready-file ready "$@" > simulate.log 2>&1 &
gateway=$!
dumpcap -q -i lo -f 'tcp port 443 or udp port 9' -w run.pcapng 2> dumpcap.log &
capture=$!
trap 'kill $gateway $capture 2> /dev/null || true' EXIT
for ((tenths = 0; ; tenths++)); do
  [[ -s ready && -s run.pcapng ]] && break
  kill -0 $gateway && kill -0 $capture
  if ((tenths == 1200)); then
    echo "gateway or capture is not ready: $(cat simulate.log dumpcap.log)" >&2
    exit 1
  fi
  sleep 0.1
done

export SSL_CERT_FILE=$PWD/ids/ca.pem
python=("$clients/apns_providers.py" "$client" --count "$count" --patience "$patience" --ca ids/ca.pem)
token=(--key "AuthKey_$key.p8" --key-id "$key" --team-id "$team")
run() { timeout 220 "$@" > said.json 2> client.log; }
case $client in
  node) run node "$clients/apns_node.mjs" "$count" ids/ca.pem authorization ;;
  java) run java "$clients/ApnsJava.java" "$count" ids/ca.pem authorization ;;
  apns2) run "$venvs/old-clients/bin/python" "${python[@]}" --certificate ids/com.example.app.combined.pem ;;
  *) run "$venvs/clients/bin/python" "${python[@]}" "${token[@]}" ;;
esac

kill -TERM $gateway
wait $gateway
# Packets are written in blocks: the last one is known by its words.
for ((tenths = 0; tenths < 1200; tenths++)); do
  printf 'the recording ends here' > /dev/udp/127.0.0.1/9
  ! grep -qa 'the recording ends here' run.pcapng || break
  sleep 0.1
done
kill -INT $capture
wait $capture
trap - EXIT
