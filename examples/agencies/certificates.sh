#!/bin/sh
# Makes keys and certificates for TLS and seals of the three agencies, and the federation document
# that names them: all in the folder keys. Existing keys are never overwritten.
set -e
cd "$(dirname "$0")"
mkdir -p keys
for name in INPS INAIL CoC; do
    qns certificates make "$name" --folder keys --algorithm ecdsa-p256
done
cp federation.xml keys/federation.xml
qns federation endpoint keys/federation.xml -o keys/federation.xml \
    INPS=https://127.0.0.1:9701/ INAIL=https://127.0.0.1:9702/ CoC=https://127.0.0.1:9703/
for name in INPS INAIL CoC; do
    qns federation certificates keys/federation.xml "$name" -o keys/federation.xml \
        --tls "keys/$name.tls.pem" --seal "keys/$name.seal.pem"
done
