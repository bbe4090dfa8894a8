//go:build linux

package vmstructs

import (
	"compress/gzip"
	"fmt"
	"os"
	"slices"
	"testing"

	"goprof/testdata/fuzzseed"
)

// TestAddTables adds the tables of the installed JVMs to testdata/tables.txt.gz, if it has none of their release:
//
//	GOPROF_SEEDS=1 GOPROF_JDKS=$(scripts/jdks.sh 28) go test ./vmstructs -run AddTables
func TestAddTables(t *testing.T) {
	fuzzseed.Making(t)
	elfNames := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
	eachLive(t, nil, func(t *testing.T, v *live) {
		name := fmt.Sprintf("%s-%d", elfNames[v.p.CPU().Name], v.vm.Version().Major)
		if slices.ContainsFunc(loadTables(t), func(j jdkTables) bool { return j.name == name }) {
			return
		}
		tab, err := readTables(v.p, func(symbol string) (uint64, error) { return v.p.Global(libjvm, symbol) })
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile("testdata/tables.txt.gz", os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z := gzip.NewWriter(f) // this adds one more member to the file
		writeTables(z, jdkTables{name, tab})
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
