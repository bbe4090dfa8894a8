//go:build linux

package process

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// FuzzStat writes a line as the kernel does, with any name, and reads it.
func FuzzStat(f *testing.F) {
	f.Add([]byte("java"), byte('S'), uint64(31415), []byte(""))
	f.Add([]byte("a) R 1 (b"), byte('R'), uint64(1), []byte("7 (x) Z"))
	f.Add([]byte("\xff\n) "), byte('Z'), ^uint64(0), []byte("7 (x"))
	f.Fuzz(func(t *testing.T, comm []byte, state byte, start uint64, other []byte) {
		parseStat(other)
		if state <= ' ' || state >= 0x7f || state == ')' {
			state = 'S'
		}
		line := fmt.Appendf(nil, "7 (%s) %c 1 7 7 0 -1 4194560 1 2 3 4 55 66 0 0 20 0 9 0 %d 1 2 3\n", comm, state, start)
		got, err := parseStat(line)
		if err != nil || got.state != state || got.start != start || got.comm != strings.ToValidUTF8(string(comm), "\uFFFD") {
			t.Fatalf("%q: %+v %v", line, got, err)
		}
	})
}

// FuzzStatus reads hostile text, and then finds what is put before it.
func FuzzStatus(f *testing.F) {
	f.Add([]byte("Name:\tjava\nState:\tS (sleeping)\nTgid:\t7\nNgid:\t0\nPid:\t7\nPPid:\t1\nTracerPid:\t0\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t7\t3\n"))
	f.Add([]byte("Name:\tTgid:\\n\nNSpid:\nUid:\tx\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		parseStatus(text, 7)
		for _, key := range []string{"Tgid", "TracerPid", "NSpid"} {
			if bytes.Contains(text, []byte(key)) {
				return
			}
		}
		if len(text) > 0 && text[len(text)-1] != '\n' {
			text = append(text[:len(text):len(text)], '\n')
		}
		got := parseStatus(append(text[:len(text):len(text)], "Tgid:\t11\nTracerPid:\t12\nNSpid:\t17\t18\n"...), 7)
		if want := (taskStatus{tgid: 11, tracer: 12, nstid: 18, nested: true}); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}
