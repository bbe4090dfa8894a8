//go:build linux

package main

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output/jfr"
	"goprof/output/redaction"
	"goprof/process"
	"goprof/profile"
	"goprof/profile/redact"
)

// TestMessagesAreRedacted: messages about a core file, and about events that were left out, have no names if these must
// not be shown.
func TestMessagesAreRedacted(t *testing.T) {
	by := redact.New(redact.Default(), []byte("the key of this test"))
	var said bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetErr(&said)
	new(redactCommand).tell(cmd, &redaction.Account{JFR: &jfr.Redacted{
		Dropped: map[string]int64{"com.qxzz.PaidEvent": 2, "jdk.SystemProcess": 1}}}, by)
	exit.TellNotes(&said, by.Notes([]profile.Note{{Name: "mapping", Text: "/opt/qxzz/libqxzz.so: no names"}}))
	core := coreFile{by: by}
	refused := []process.MissingFile{{Path: "/opt/qxzz/libqxzz.so", Err: fs.ErrPermission}}
	said.WriteString(core.missingText(refused) + core.remedyOfRefused(refused) + core.path("/opt/qxzz.so"))
	text := said.String()
	if at := strings.Index(strings.ToLower(text), "qxzz"); at >= 0 {
		t.Errorf("it is told: %s", text[at:])
	}
	for _, has := range []string{"jdk.SystemProcess (1)", "permission denied"} {
		if !strings.Contains(text, has) {
			t.Errorf("%q is not told:\n%s", has, text)
		}
	}
}
