#!/bin/sh
# After an installation or an upgrade. The agent is not started: its owner decides what it records.
[ ! -d /run/systemd/system ] || systemctl daemon-reload
