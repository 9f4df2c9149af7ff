#!/bin/bash
# A test of a provider in the shell: your program sends to a simulated gateway, and curl asks what arrived.
#
#     provider_test.sh        # needs apnscope on the PATH, curl, jq and openssl
set -euo pipefail
apnscope=${apnscope:-apnscope}
folder=$(mktemp -d)
simulator=
trap 'kill $simulator 2> /dev/null; wait; rm -rf "$folder"' EXIT

"$apnscope" identity --directory "$folder/ids" --topic com.example.app > /dev/null
"$apnscope" simulate --identity "$folder/ids" --gateway 127.0.0.1:0 --no-feedback --control 127.0.0.1:0 \
  --ready-file "$folder/ready" > /dev/null & simulator=$!
# It appears when the gateway accepts connections.
until [[ -e $folder/ready ]]; do kill -0 "$simulator"; sleep 0.05; done
gateway=$(sed -n 's/^gateway //p' "$folder/ready")
control=$(sed -n 's/^control //p' "$folder/ready")

# Your program: this one writes a notification for each token.
frames() {
  local identifier=0 token
  for token; do
    identifier=$((identifier + 1))
    printf '01%08x7fffffff0020%s0019' $identifier "$token" | xxd -r -p
    printf '{"aps":{"alert":"Hello"}}'
  done > "$folder/frames"
}
session() {
  openssl s_client -quiet "$@" -connect "$gateway" -CAfile "$folder/ids/ca.pem" \
    -cert "$folder/ids/com.example.app.pem" -key "$folder/ids/com.example.app.key" 2> /dev/null
}
# A gateway that accepts everything answers nothing: the connection is left after a second.
push() { frames "$@"; (cat "$folder/frames"; sleep 1) | session -no_ign_eof; }
# It closes the connection after an answer, which this one waits for and shows.
push_rejected() { frames "$@"; session -ign_eof < "$folder/frames" | xxd -p; }
# Fails for problems: 408, it did not come in time.
ask() { curl --silent --show-error --fail-with-body "$@"; }
expect() {
  if [[ $2 != "$3" ]]; then echo "not ok: $1: $2, not $3"; exit 1; fi
  echo "ok: $1"
}

one=$(printf 'aa%.0s' {1..32}) two=$(printf 'bb%.0s' {1..32}) three=$(printf 'cc%.0s' {1..32})

push "$one" > /dev/null
ask "$control/notifications/wait?token=$one&within_s=10" > "$folder/arrived.json"
expect "the alert arrives" "$(jq -r '.notifications[0].payload.aps.alert' "$folder/arrived.json")" Hello

ask -X POST "$control/reset"
ask --json "{\"token\": \"$two\", \"status\": 8, \"times\": 1}" "$control/faults/rejections" > /dev/null
expect "the gateway answers invalid token" "$(push_rejected "$one" "$two" "$three")" 080800000002
ask "$control/notifications/wait?count=3&within_s=10" > "$folder/arrived.json"
expect "what follows is discarded" "$(jq -r '[.notifications[].fate] | join(" ")' "$folder/arrived.json")" \
  "accepted rejected discarded"
expect "the verdict knows of it" "$(ask "$control/verdict" | jq .discarded)" 1
