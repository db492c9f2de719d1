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
tries=0
until [ "$(count TlsCurrTxSw)" = 0 ] || [ "$tries" -ge 50 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
echo "left open: $(count TlsCurrTxSw)"
kill "$server"
wait "$server"
echo "all of it"
