package vmstructs

import (
	"fmt"
	"strconv"
	"strings"
)

// updatesOf is the date of the list of updates in this file. The source is endoflife.date. Its pages on
// eclipse-temurin, oracle-jdk and openjdk-builds-from-oracle agree, except for Oracle's own numbers of JDK 8.
const updatesOf = "2026-08-22"

// newestUpdates are the newest updates of the releases that were maintained at that date: 17.0.20, 8u502.
var newestUpdates = map[int]int{8: 502, 11: 32, 17: 20, 21: 12, 25: 4, 26: 2}

// updatesEnded is when the updates of a release ended, which is at the next release. JDK 13 and 15 are not in the list,
// because some vendors continued them.
var updatesEnded = map[int]string{9: "March 2018", 10: "September 2018", 12: "September 2019", 14: "September 2020",
	16: "September 2021", 18: "September 2022", 19: "March 2023", 20: "September 2023", 22: "September 2024",
	23: "March 2025", 24: "September 2025"}

// Outdated says in one sentence how old the JDK's update is. It is empty if goprof knows of nothing newer.
func (v Version) Outdated() string {
	if when := updatesEnded[v.Major]; when != "" {
		return fmt.Sprintf("JDK %d gets no updates since %s", v.Major, when)
	}
	newest, update := newestUpdates[v.Major], v.update()
	switch {
	case newest == 0 || update < 0:
		return ""
	case v.Major == 8 && update+1 < newest: // Oracle has 8u501 where others have 8u502; most numbers do not exist
		return fmt.Sprintf("JDK 8u%d is older than 8u%d, the newest that goprof's table of %s has", update, newest, updatesOf)
	case v.Major > 8 && update < newest:
		behind := fmt.Sprintf("%d updates", newest-update)
		if newest-update == 1 {
			behind = "1 update"
		}
		return fmt.Sprintf("JDK %d.0.%d is %s behind %[1]d.0.%[4]d, the newest that goprof's table of %[5]s has", v.Major,
			update, behind, newest, updatesOf)
	}
	return ""
}

// update returns the number of the update: 15 of "17.0.15+6", 0 of "25+36", 504 of "1.8.0_504-b01". It is -1 if not
// known.
func (v Version) update() int {
	text, separator := v.JDK(), "."
	if v.Major == 8 {
		separator = "_"
	}
	end := strings.IndexFunc(text, func(r rune) bool { return r == '+' || r == '-' })
	if end >= 0 {
		text = text[:end]
	}
	parts, at := strings.Split(text, separator), 2
	if v.Major == 8 {
		at = 1
	}
	if len(parts) <= at {
		if v.Major > 8 && text == strconv.Itoa(v.Major) {
			return 0
		}
		return -1
	}
	n, err := strconv.Atoi(parts[at])
	if err != nil || n < 0 {
		return -1
	}
	return n
}
