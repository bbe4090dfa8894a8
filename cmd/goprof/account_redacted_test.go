//go:build linux

package main

import (
	"bytes"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/product"
	"goprof/output/jfr"
	"goprof/output/redaction"
	"goprof/process"
	"goprof/profile"
	"goprof/profile/redact"
)

// TestAccountIsRedacted: a recording without names prints no names on standard error either. Nor do messages about a
// core file, or about events that were left out.
func TestAccountIsRedacted(t *testing.T) {
	by := redact.New(redact.Default(), []byte("the key of this test"))
	var said bytes.Buffer
	r := &recorder{part: part{flags: &recordFlags{verbose: true}},
		out: &outputs{names: product.NewNames(by, new(sync.Mutex))}}
	sum := &profile.Summary{Samples: 3, Meta: profile.Meta{Duration: time.Second},
		Hottest: []profile.Part{{Name: "com.qxzz.Shop.qxzzPay", Share: 0.5}, {Name: "java.lang.Thread.run", Share: 0.5}},
		Events:  []profile.EventCount{{Name: "libqxzz.so:qxzz_hash", Hits: 7}},
		Notes:   []profile.Note{{Name: "note", Text: "/opt/qxzz/libqxzz.so is gone"}},
		Allocated: &profile.Allocated{Bytes: 9, Threads: []profile.ThreadBytes{
			{Thread: "[qxzz-worker-3 tid=7]", Bytes: 9}}}}
	r.tellAccount(&said, sum)
	cmd := &cobra.Command{}
	cmd.SetErr(&said)
	new(redactCommand).tell(cmd, &redaction.Account{JFR: &jfr.Redacted{
		Dropped: map[string]int64{"com.qxzz.PaidEvent": 2, "jdk.SystemProcess": 1}}}, by)
	tellNotes(&said, by.Notes([]profile.Note{{Name: "mapping", Text: "/opt/qxzz/libqxzz.so: no names"}}))
	core := coreFile{by: by}
	refused := []process.MissingFile{{Path: "/opt/qxzz/libqxzz.so", Err: fs.ErrPermission}}
	said.WriteString(core.missingText(refused) + core.remedyOfRefused(refused) + core.path("/opt/qxzz.so"))
	text := said.String()
	if at := strings.Index(strings.ToLower(text), "qxzz"); at >= 0 {
		t.Errorf("it is told: %s", text[at:])
	}
	for _, has := range []string{"Thread.run", "-worker-3", "jdk.SystemProcess (1)", "permission denied"} {
		if !strings.Contains(text, has) {
			t.Errorf("%q is not told:\n%s", has, text)
		}
	}
}
