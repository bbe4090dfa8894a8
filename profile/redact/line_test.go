package redact

import (
	"strings"
	"testing"
)

// TestLineStays: facts about the JVM and the time of a line stay.
func TestLineStays(t *testing.T) {
	r := redactor()
	for _, line := range []string{
		"2026-11-28 21:45:33,123 ERROR [main] timeout",
		"2026-11-28T21:45:33.123Z WARN  [http-nio-8080-exec-12] connection refused",
		"[0.123s][info][gc] GC(0) Pause Young",
		"#  SIGSEGV (0xb) at pc=0x00007fdcedc8bf14 (sent by kill), pid=31417, tid=31417",
		"C  [libc.so.6+0x85f14]",
		"Time: elapsed time: 1.501219 seconds (0d 0h 0m 1s)",
		"Stack: [0x00007ffecff95000,0x00007ffed0794000],  sp=0x00007ffed078f590,  free space=8169k",
		"\tat java.lang.Thread.run(Thread.java:1583)",
		"[86400.123s][info][gc] GC(7) Pause Young",
		"Event: 86400.123 Thread",
		" garbage-first heap   total reserved 6172672K, committed 393216K, used 2149K",
	} {
		if got := r.Line(line); got != line {
			t.Errorf("%q becomes %q", line, got)
		}
	}
}

// TestLineSecrets: names of an application, its data, and possible secrets do not stay.
func TestLineSecrets(t *testing.T) {
	r := redactor()
	for line, secrets := range map[string]string{
		"2026-11-28 21:45:33 INFO Acme order 12345678 of Jane Doe paid": "Acme 12345678 Jane Doe paid",
		"\tat com.acme.shop.Cart.total(Cart.java:12)":                   "acme shop Cart",
		"DB_PASSWORD=1234":                                 "1234",
		"DB_PASSWORD=ab,1234":                              "ab 1234",
		"  export PIN=0123,heap":                           "0123 heap",
		"spring.datasource.pin=1234,5":                     "1234",
		"java_command: shop.jar --pin 1234 --hosts a,heap": "shop 1234 heap",
		"jvm_args: -Dpin=1234 -Xlog:gc*,safepoint=info":    "1234 safepoint",
		"lat=48.858370, lon=2.294481":                      "858370 294481",
		"position 48.858370 2.294481":                      "858370 294481",
		"patient pid=1004532187":                           "1004532187",
		"balance 918273645.12":                             "918273645",
		"order 10045321B of 2.294481 EUR":                  "10045321 294481",
		"order 10045321M, 10045321K, 100453ms, 86400s":     "10045321 100453 86400",
		"order 10045321,RAX=0x7261777373617012":            "10045321 7261777373617012",
		"java_command: shop.jar --token 1234":              "shop token 1234",
		"jvm_args: -Dkey=1234 -Xmx1g":                      "1234",
		"  0x00007fdcedc8be14:   83 f8 01 7e f0 48 83 ec":  "83 f8 7e",
		"RAX=0x6472617773736170, RBX=0x0000000000000000":   "6472617773736170",
		"user jane@acme.com from 10.1.2.3":                 "jane acme 10.1.2.3",
		"card 4111 1111 1111 1111 refused":                 "4111 1111",
		"[main] com.acme.Billing - opened /home/jane/x.db": "acme Billing jane",
	} {
		got := r.Line(line)
		for _, word := range strings.Fields(secrets) {
			if strings.Contains(got, word) {
				t.Errorf("%q is left of %q: %q", word, line, got)
			}
		}
	}
}
