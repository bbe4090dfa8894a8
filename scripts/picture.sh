#!/usr/bin/env bash
# Makes the picture of README.md: a browser's view of the page that `make demo` draws. Needs chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh chromium
scripts/demo.sh
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
"$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,720 --virtual-time-budget=5000 \
    --screenshot=docs/demo.png "file://$PWD/build/demo/demo.html" >build/demo/browser.log 2>&1
ls -l docs/demo.png
