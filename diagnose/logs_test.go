//go:build linux

package diagnose

import (
	"slices"
	"testing"
)

func TestGCLogNames(t *testing.T) {
	for _, c := range []struct {
		arg  string
		want []string
	}{
		{"-Xloggc:/var/log/app/gc.log", []string{"gc.log"}},
		{"-Xloggc:gc-%p-%t.log", []string{"gc-*-*.log"}},
		{"-Xlog:gc*:file=/var/log/gc.log:time,uptime:filecount=5,filesize=10M", []string{"gc.log"}},
		{`-Xlog:gc*,safepoint:file="/var/log/a:b/gc%t.log":time`, []string{"gc*.log"}},
		{"-Xlog:gc:gc.txt", []string{"gc.txt"}},
		{"-Xlog:all=info:file=%p.log", []string{"*.log"}},
		{"-Xloggc:g[c]*.log", []string{`g\[c]\*.log`}},
		{"-Xlog:gc:stdout", nil},
		{"-Xlog:gc", nil},
		{"-Xlog:class+load:file=classes.log", nil},
		{"-Xmx1g", nil},
	} {
		if got := gcLogNames([]string{c.arg}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.arg, got, c.want)
		}
	}
	for name, want := range map[string]bool{"gc-71.log": true, "gc-71.log.0.current": true, "gc.log": false,
		"gc-": false} {
		if fitsLog([]string{"gc-*.log"}, name) != want {
			t.Errorf("%s: not %v", name, want)
		}
	}
}
