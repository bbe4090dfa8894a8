package vmstructs

import "testing"

func TestOutdated(t *testing.T) {
	const of = ", the newest that goprof's table of " + updatesOf + " has"
	for _, c := range []struct {
		version Version
		want    string
	}{
		{Version{Release: "17.0.9+9", Major: 17}, "JDK 17.0.9 is 11 updates behind 17.0.20" + of},
		{Version{Release: "17.0.19+10-Debian-1deb12u2", Major: 17}, "JDK 17.0.19 is 1 update behind 17.0.20" + of},
		{Version{Release: "17.0.20+1", Major: 17}, ""},
		{Version{Release: "17.0.21.0.3+1-1-Debian", Major: 17}, ""}, // newer than the list
		{Version{Release: "11.0.33-ea+8-post-1-Debian", Major: 11}, ""},
		{Version{Release: "25+36-LTS", Major: 25}, "JDK 25.0.0 is 4 updates behind 25.0.4" + of},
		{Version{Release: "25.0.3.1+9", Major: 25}, "JDK 25.0.3 is 1 update behind 25.0.4" + of},
		{Version{Release: "23.0.2+7", Major: 23}, "JDK 23 gets no updates since March 2025"},
		{Version{Release: "25.392-b08", Info: "VM (25.392-b08) for linux-amd64 JRE (1.8.0_392-b08), built on", Major: 8},
			"JDK 8u392 is older than 8u502" + of},
		{Version{Release: "25.501-b01", Info: "VM (25.501-b01) for linux-amd64 JRE (1.8.0_501-b01)", Major: 8}, ""},
		{Version{Release: "25.392-b08", Major: 8}, ""},
		{Version{Release: "28-ea+3", Major: 28}, ""},
		{Version{Release: "15.0.2+7", Major: 15}, ""},
		{Version{Release: "17.x.y", Major: 17}, ""},
	} {
		if got := c.version.Outdated(); got != c.want {
			t.Errorf("%s: %q, want %q", c.version.Release, got, c.want)
		}
	}
}
