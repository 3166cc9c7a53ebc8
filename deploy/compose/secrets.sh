#!/usr/bin/env bash
# Makes the secrets of compose.yaml in the folder `secrets` beside it: a certificate, a token for Prometheus, a password for people.
# Argument: the command `grouplake`, by default that of the image. Existing secrets are kept.
set -euo pipefail
[ $# -gt 0 ] || set -- docker run --rm --interactive grouplake:0.1.0
folder=$(cd "$(dirname "$0")" && pwd)/secrets
if [ -e "$folder" ]; then
  echo "$folder exists: remove it to make new secrets" >&2
  exit 1
fi
umask 077
draft=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$draft"' EXIT

openssl req -x509 -newkey rsa:3072 -nodes -days 365 -subj /CN=localhost -addext subjectAltName=DNS:localhost,DNS:dashboard \
  -keyout "$draft/tls.key" -out "$draft/tls.crt" 2> /dev/null
openssl rand -hex 16 | tr -d '\n' > "$draft/admin_password"
"$@" credential token prometheus > "$draft/users" 2> "$draft/shown"
sed -n 's/.*: //p' "$draft/shown" | tr -d '\n' > "$draft/prometheus_token"
rm "$draft/shown"
"$@" credential password admin < "$draft/admin_password" >> "$draft/users"
[ -s "$draft/prometheus_token" ]

# Compose mounts these files with their modes, and the images run as users of their own
chmod 755 "$draft"
chmod 644 "$draft"/*
mv "$draft" "$folder"
trap - EXIT
echo "secrets are in $folder" >&2
