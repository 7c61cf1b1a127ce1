package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// What machines of one network should have in common: the version of the program, and the time.

// skew is how far clocks may be apart. Keys refuse five minutes (docs/protocol.md §6.6), and events of two machines
// cannot be put in order long before.
const skew = 30 * time.Second

// versions tells of those that differ from that of the controller that judges. Those who say none are too old to.
func versions(s Snapshot) []Problem {
	other := map[string][]string{}
	note := func(what, name, version string) {
		if version != "" && version != s.Version {
			other[version] = append(other[version], what+" "+name)
		}
	}
	for _, c := range s.Cluster.Controllers {
		if !c.Away {
			note("controller", c.Name, c.Version)
		}
	}
	for _, r := range s.Routers {
		if !r.Away {
			note("router", r.Name, r.Version)
		}
	}
	for _, h := range s.Hosts {
		if !h.Alone {
			note("host", h.Name, h.Version)
		}
	}
	for _, a := range s.Agents {
		if !a.Away {
			note("agent", a.Name, a.Version)
		}
	}
	if len(other) == 0 || s.Version == "" {
		return nil
	}
	p := Problem{Kind: VersionDiffers, Severity: Warning, Next: s.ask("upgrade --check")}
	var parts, where []string
	for _, v := range slices.Sorted(maps.Keys(other)) {
		parts = append(parts, list(other[v])+" "+runs(len(other[v]))+" "+v)
		for _, name := range other[v] {
			_, name, _ = strings.Cut(name, " ")
			where = append(where, name)
		}
		p.Count += len(other[v])
	}
	p.What = fmt.Sprintf("versions differ: %s; the controller that leads runs %s", strings.Join(parts, "; "), s.Version)
	p.Where = strings.Join(where, ",")
	return []Problem{p}
}

func runs(n int) string {
	if n == 1 {
		return "runs"
	}
	return "run"
}

func clocks(s Snapshot) []Problem {
	wrong := several{kind: ClockDiffers, next: "timedatectl timesync-status  # on each of them, and on the controller", thing: "machine", many: func(n, names string) string {
		return fmt.Sprintf("the clocks of %s differ by more than %v from that of the controller (%s)", n, skew, names)
	}}
	look := func(what, name string, ahead time.Duration) {
		if ahead.Abs() <= skew {
			return
		}
		way := "ahead of"
		if ahead < 0 {
			way = "behind"
		}
		wrong.one = append(wrong.one, Problem{Kind: ClockDiffers, Severity: Warning, Where: name, Count: 1,
			What: fmt.Sprintf("the clock of %s %s is %s %s the controller's: with keys nobody joins whose clock is 5 minutes wrong", what, name, span(ahead.Abs()), way),
			Next: s.on("timedatectl timesync-status", name)})
	}
	for _, c := range s.Cluster.Controllers {
		look("controller", c.Name, c.Ahead)
	}
	for _, r := range s.Routers {
		look("router", r.Name, r.Ahead)
	}
	for _, h := range s.Hosts {
		look("host", h.Name, h.Ahead)
	}
	return wrong.tell()
}
