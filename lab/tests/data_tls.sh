# Runs in the virtual machine: a server whose data port speaks TLS, its own client, and openssl's.
# Each line that the test reads begins with a word and a colon.
set -eu
export COFFER_DATA=/tmp/data AWS_ENDPOINT_URL=https://127.0.0.1:9000
export AWS_SHARED_CREDENTIALS_FILE=/tmp/data/credentials AWS_CA_BUNDLE=/tmp/data/tls/ca.pem

coffer serve --data-tls kernel >/tmp/ready 2>/tmp/log &
server=$!
tries=0
until grep -q '^ready' /tmp/ready; do
    tries=$((tries + 1))
    [ "$tries" -lt 1000 ] || { cat /tmp/log; exit 1; }
    sleep 0.1
done
echo "log: $(grep 'data port speaks TLS' /tmp/log)"
coffer level create video --rank 0 --same-label --sealed-transfer
coffer bucket create films --level video

count() { awk -v name="$1" '$1 == name { print $2 }' /proc/net/tls_stat; }
sent=$(count TlsTxSw) received=$(count TlsRxSw)

whole=0
for bytes in 20000 262144 1000007 4194311; do
    head -c "$bytes" /dev/urandom >/tmp/in
    coffer put /tmp/in "s3://films/$bytes" --transfer sealed
    coffer get "s3://films/$bytes" /tmp/out --transfer sealed
    cmp /tmp/in /tmp/out
    whole=$((whole + 1))
    rm /tmp/out
done
echo "objects: $whole of 4 came back as they were put"

ticket=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
speak() {
    openssl s_client -connect 127.0.0.1:9002 -CAfile "$AWS_CA_BUNDLE" -verify_return_error \
        -quiet -no_ign_eof "$@" 2>/tmp/openssl
}
# The client ends its side by an alert, which is a record of another kind than data.
ask() {
    { printf 'GET /transfer/%s HTTP/1.1\r\n\r\n' "$ticket"; sleep 5; } | speak "$@" |
        head -1 | tr -d '\r'
}
echo "aes-128: $(ask -ciphersuites TLS_AES_128_GCM_SHA256)"
echo "aes-256: $(ask -ciphersuites TLS_AES_256_GCM_SHA384)"
if speak -tls1_2 </dev/null; then echo "refused: nothing"; else echo "refused: TLS 1.2"; fi

echo "TlsTxSw: $(($(count TlsTxSw) - sent))"
echo "TlsRxSw: $(($(count TlsRxSw) - received))"
echo "TlsDecryptError: $(count TlsDecryptError)"
# Waits for so many connections, so many tenths of a second.
wait_for() {
    tries=0
    until [ "$(count TlsCurrTxSw)" = "$1" ] || [ "$tries" -ge "$2" ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
}
wait_for 0 50
echo "left open: $(count TlsCurrTxSw)"

# A client stands still in the middle: what ends its transfer throws away what the kernel holds.
head -c 24000000 /dev/urandom >/tmp/in
coffer put /tmp/in s3://films/long --transfer tls
coffer get s3://films/long /tmp/out --transfer sealed --jobs 1 --retries 0 >/tmp/got 2>&1 &
client=$!
until [ "$(count TlsCurrTxSw)" -ge 1 ]; do :; done
kill -STOP "$client"
sleep 2
echo "standing still: $(count TlsCurrTxSw)"
coffer bucket erase films --yes >/dev/null
wait_for 0 10
echo "after its end: $(count TlsCurrTxSw)"
kill -CONT "$client"
if wait "$client"; then echo "the client: content"; else echo "the client: failed"; fi
[ ! -e /tmp/out ]
kill "$server"
wait "$server"
echo "all of it"
