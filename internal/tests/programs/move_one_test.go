package programs

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// apart has c1 at both routers and parts its flows: one of them goes over to the other uplink while the rest
// stays; when the first uplink is lost and comes back, the old flows stay where they went to, and a new one
// takes the first again.
func (j *journey) apart(riders []*rider, one *rider, config string) *rider {
	j.t.Helper()
	aboard := slices.DeleteFunc(slices.Clone(riders), func(r *rider) bool { return r.ended() || r.links != 1 })
	others := slices.DeleteFunc(slices.Clone(aboard), func(r *rider) bool { return r == one })
	j.do("heal c1 rb")
	j.attached("to-rb")
	j.command("flow", "move", one.stable[0], "--to", "to-rb")
	j.leavesBy("to-rb", one)
	j.leavesBy("to-ra", others...)
	j.goOn("one flow has moved", aboard)
	j.leavesBy("to-ra", others...)
	j.do("unplug c1 ra")
	j.leavesBy("to-rb", aboard...)
	j.goOn("the others had to follow", aboard)
	j.hops++
	j.do("heal c1 ra")
	j.attached("to-ra")
	late := j.late(config)
	j.goOn("new flows go by the first uplink again", append(aboard, late))
	j.leavesBy("to-rb", aboard...)
	j.leavesBy("to-ra", late)
	return late
}

// late opens an ssh session when new flows go by the first uplink again.
func (j *journey) late(config string) (r *rider) {
	j.t.Helper()
	nstest.Wait(j.t, j.net.lab.LogPath("c1", "hostd"), func() error {
		out := j.client("ip", "-6", "route", "get", j.addr.String())
		if !strings.Contains(out, " dev to-ra ") {
			return fmt.Errorf("new flows go: %s", out)
		}
		return nil
	})
	r = j.login("ssh, opened later", config)
	r.stable, r.since = j.stable(r), j.hops
	return r
}

// attached waits until c1 has an address at an uplink.
func (j *journey) attached(uplink string) {
	j.t.Helper()
	nstest.Wait(j.t, j.net.lab.LogPath("c1", "hostd"), func() error {
		all := j.uplinks()
		for _, u := range all {
			if u.Interface == uplink && u.Up && u.Locator != "" {
				return nil
			}
		}
		return fmt.Errorf("c1 has no address at %s: %v", uplink, all)
	})
}

// leavesBy waits until the flows of these riders, and no others of theirs, leave by the uplink.
func (j *journey) leavesBy(uplink string, riders ...*rider) {
	j.t.Helper()
	for _, r := range riders {
		nstest.Wait(j.t, j.net.lab.LogPath("c1", "hostd"), func() error {
			for _, f := range j.flows(r.pid) {
				if f.Uplink != uplink {
					return fmt.Errorf("%s: its flow leaves by %s, want %s: %v", r.name, f.Uplink, uplink, f)
				}
			}
			return nil
		})
	}
}

// ridersOfTheTable are those that docs/programs.md lists.
func ridersOfTheTable(t *testing.T) (names []string) {
	t.Helper()
	doc, err := os.ReadFile("../../../docs/programs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)\\| `TestProgramsGoOnWhileHostsMove/([^`]+)` \\|$").FindAllStringSubmatch(string(doc), -1) {
		names = append(names, m[1])
	}
	return names
}
