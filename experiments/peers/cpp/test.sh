#!/usr/bin/env bash
# Tries the greeter that is built in a folder: ./test.sh FOLDER. Exits with 1 where anything is not as it must be.
set -euo pipefail
folder=$1

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

coproc SERVER { exec "$folder/greeter_server" --port 0; }
server=$SERVER_PID
trap 'kill -9 "$server" 2>/dev/null || true' EXIT
exec {said}<&"${SERVER[0]}"
read -r -t 10 word address <&"$said" || fail "no ready line"
[ "$word" = ready ] || fail "the first line begins with $word"

for options in "--mode sync" "--mode async" "--mode async --in-flight 10"; do
    for clients in 1 2; do
        # shellcheck disable=SC2086  # several words
        lines=$("$folder/greeter_client" --address "$address" --clients $clients --count 50 $options)
        for wanted in "connect $clients" "first call $clients" "call $((49 * clients))" "client $clients" "total 1"; do
            found=$(grep -c "\"what\":\"${wanted% *}\"" <<<"$lines")
            [ "$found" = "${wanted##* }" ] || fail "$options, $clients clients: $found lines of ${wanted% *}"
        done
        grep -q "\"what\":\"total\",\"calls\":$((49 * clients))," <<<"$lines" || fail "$options: not all calls in total"
        awk -F'[:,}]' '/"what":"(client|total)"/ && !($(NF - 1) > 0 && $(NF - 3) > 0) { exit 1 }' <<<"$lines" ||
            fail "$options: a wall clock or a processor time of nothing"
    done
done

kill -TERM "$server"
wait "$server" || fail "the server's exit code is not 0"
if "$folder/greeter_client" --address "$address" --count 1 >/dev/null 2>&1; then fail "no server, and no error"; fi
echo "greeter: as it must be"
