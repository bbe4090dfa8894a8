#!/bin/sh
# Runs before the program is removed. An upgrade keeps the agent running (deb says "upgrade", rpm says 1).
case ${1:-} in
    upgrade | 1) exit 0 ;;
esac
[ ! -d /run/systemd/system ] || systemctl disable --now goprof-agent.service || true
