# drive FILE: ensign's load generator sends what the file says.
drive() {
    sed "s/127\.0\.0\.1:PORT/127.0.0.1:$port/" "$files/$1" | "${DRIVER:-ensign-meter}" drive \
        > "$tmp/driven" || { cat "$tmp/driven" >&2; exit 1; }
}
