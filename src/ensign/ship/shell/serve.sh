# await PATTERN: until the server listens, or until its output has the pattern.
await() {
    for _ in $(seq 600); do
        kill -0 "$server" || { echo "the server ended:" >&2; cat "$tmp/log" >&2; exit 1; }
        if [ -n "$1" ]; then
            ! grep -Pq -e "$1" "$tmp/log" || return 0
        elif (: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then
            return 0
        fi
        sleep 0.1
    done
    echo "the server was not ready after a minute" >&2
    exit 1
}
# start PATTERN ARGUMENT...: the server, on a port that none before it had.
start() {
    pattern=$1
    shift
    ( cd "$tmp"; serve "$@" > "$tmp/log" 2>&1 ) & server=$!
    await "$pattern"
}
# A server writes its counts when it ends, so it is asked to.
stop() { kill -TERM "$server"; wait "$server" || true; server=; }
