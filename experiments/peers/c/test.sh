#!/usr/bin/env bash
# Tries every socket API that is built in a folder: ./test.sh FOLDER. Exits with 1 where anything is not as it must be.
set -euo pipefail
folder=$1
tried=0

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# Starts the server of $1 with the options that follow, and waits for its address.
start() {
    local program=$folder/$1_server
    shift
    coproc SERVER { exec "$program" --port 0 "$@"; }
    server=$SERVER_PID
    exec {said}<&"${SERVER[0]}" # Bash forgets the descriptor when the server ends
    trap 'kill -9 "$server" 2>/dev/null || true' EXIT
    read -r -t 10 word address <&"$said" || fail "$program: no ready line"
    [ "$word" = ready ] || fail "$program: its first line begins with $word"
}

# Stops it; what it printed after its ready line is in $report.
stop() {
    kill -TERM "$server"
    report=$(cat <&"$said")
    wait "$server" || fail "the server's exit code is not 0"
    exec {said}<&-
}

lines() { grep -c "\"what\":\"$1\"" || true; }

# What each library has beside the two patterns that are measured, and what a run of each prints.
declare -A patterns=([berkeley]="" [zeromq]="pub-sub pipeline" [nanomsg]="pub-sub pipeline bus survey")
patterns[nng]=${patterns[nanomsg]}
declare -A wanted=(
    [pub-sub]=$'subscriber 1 got: news\nsubscriber 2 got: news'
    [pipeline]=$'worker got: task\nsink got: result'
    [bus]=$'b got: from a\nc got: from a\nc got: from b\na got: from c'
    [survey]=$'respondent 1 got: who is there?\nsurveyor got: one\nrespondent 2 got: who is there?\nsurveyor got: two'
)

for api in berkeley zeromq nanomsg nng; do
    [ -x "$folder/${api}_server" ] || continue
    tried=$((tried + 1))
    for pattern in request-reply pair; do
        for size in 8 10000 1000000; do
            start "$api" --pattern "$pattern" --report 1000
            times=$("$folder/${api}_client" --address "$address" --pattern "$pattern" --size "$size" --count 30)
            stop
            [ "$(lines call <<<"$times")" = 29 ] || fail "$api $pattern $size: not 30 calls"
            [ "$(lines "first call" <<<"$times")" = 1 ] || fail "$api $pattern $size: no first call"
            [ "$(lines message <<<"$report")" = 30 ] || fail "$api $pattern $size: the receiver saw not 30 messages"
            bytes=$(awk -F'[:}]' '/"second"/ { sum += $(NF - 1) } END { print sum }' <<<"$report")
            [ "$bytes" = $((30 * size)) ] || fail "$api $pattern $size: the receiver counted $bytes bytes"
        done
    done

    # A rate is kept: twenty messages at 100 a second take 190 ms and more, however fast they come back.
    start "$api"
    began=$(date +%s%N)
    "$folder/${api}_client" --address "$address" --rate 100 --count 20 >/dev/null
    [ $((($(date +%s%N) - began) / 1000000)) -ge 190 ] || fail "$api: faster than its rate"
    stop

    # One way: the receiver counts what comes, and sends nothing back.
    start "$api" --pattern one-way --report 10
    "$folder/${api}_client" --address "$address" --pattern one-way --size 1000 --count 2000 >/dev/null
    stop
    [ "$(lines message <<<"$report")" = 10 ] || fail "$api: one way, the receiver kept not 10 messages"
    for pattern in ${patterns[$api]}; do
        got=$("$folder/${api}_patterns" "$pattern") || fail "$api $pattern"
        [ "$got" = "${wanted[$pattern]}" ] || fail "$api $pattern: $got"
    done
    echo "$api: as it must be"
done
[ "$tried" -gt 0 ] || fail "nothing is built in $folder"
