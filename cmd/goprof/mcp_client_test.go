package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"goprof/testdata/jvmtest"
	"goprof/testdata/sources"
)

// client is a program of the protocol's own SDK. It calls each tool as its arguments say, and prints the results.
const client = `
const sdk = process.argv[2] + '/@modelcontextprotocol/sdk/dist/cjs/client/';
const { Client } = require(sdk + 'index.js');
const { StdioClientTransport } = require(sdk + 'stdio.js');
(async () => {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StdioClientTransport({ command: process.argv[3], args: ['mcp'], stderr: 'ignore' }));
  const tools = (await client.listTools()).tools;
  const results = [];
  for (const call of JSON.parse(process.argv[4])) {
    const r = await client.callTool(call, undefined, { timeout: 120000 });
    results.push({ text: r.content[0].text, failed: r.isError });
  }
  let late = '';
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 500);
  try {
    await client.callTool({ name: 'triage', arguments: { pid: Number(process.argv[5]), seconds: 60 } }, undefined,
      { signal: abort.signal });
  } catch (e) { late = String(e); }
  const ping = await client.ping();
  await client.close();
  const server = client.getServerVersion().name;
  console.log(JSON.stringify({ server, tools: tools.map(t => t.name), results, late, ping }));
})().catch(e => { console.error(e); process.exit(1); });
`

// TestMCPClient: the protocol's reference client talks with goprof mcp. No answer has a name of the program.
func TestMCPClient(t *testing.T) {
	packages := sources.Viewers(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Shares", "--", "1", "1", "60")
		type arguments map[string]any
		type call struct {
			Name string    `json:"name"`
			Args arguments `json:"arguments"`
		}
		calls := []call{{"list", arguments{}}, {"dump", arguments{"pid": jvm.PID}}, {"locks", arguments{"pid": jvm.PID}},
			{"record", arguments{"pid": jvm.PID, "seconds": 2}}, {"record", arguments{"pid": jvm.PID, "seconds": 2}},
			{"report", arguments{"file": "recording-1.jfr", "by": "class"}},
			{"diff", arguments{"before": "recording-1.jfr", "after": "recording-2.jfr"}},
			{"heap", arguments{"pid": jvm.PID, "top": 5}}, {"triage", arguments{"pid": jvm.PID, "seconds": 4}},
			{"snap", arguments{"pid": jvm.PID, "seconds": 4}}, {"locks", arguments{"file": "snap-3.zip"}},
			{"report", arguments{"file": "/etc/passwd"}}, {"heap", arguments{"pid": -1}}, {"dump", arguments{"pit": 1}}}
		const bad = 3 // the last ones
		wanted, _ := json.Marshal(calls)
		goprof, err := exec.LookPath("goprof")
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(sources.Node(t), sources.Script(t, client), packages, goprof, string(wanted),
			strconv.Itoa(jvm.PID))
		cmd.Dir = filepath.Dir(t.TempDir())
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
		}
		var got struct {
			Server, Late string
			Tools        []string
			Results      []struct {
				Text   string
				Failed bool
			}
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got.Server != "goprof" || strings.Join(got.Tools, " ") != "list triage dump locks record report diff heap snap" ||
			!strings.Contains(got.Late, "Abort") {
			t.Errorf("%+v", got)
		}
		for i, r := range got.Results {
			if r.Failed != (i >= len(calls)-bad) || r.Text == "" || strings.Contains(r.Text, "Shares") {
				t.Errorf("%+v: %+v", calls[i], r)
			}
		}
	})
}
