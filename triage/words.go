package triage

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"goprof/profile"
)

// percent formats a part of one.
func percent(part float64) string {
	if part < 0.1 {
		return fmt.Sprintf("%.1f %%", 100*part)
	}
	return fmt.Sprintf("%.0f %%", 100*part)
}

func seconds(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

func size(n uint64) string {
	amount, unit := profile.InUnits(float64(n))
	return fmt.Sprintf("%.3g %s", amount, cmp.Or(unit, "bytes"))
}

// counted returns "1 thread" or "7 threads".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// few joins up to most names.
func few(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
