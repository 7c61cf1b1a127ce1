package doctor

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// rivals finds programs that believe the machine's rules and routes to be theirs.
func rivals(m Machine) []Finding {
	if _, running := m.Read("/run/systemd/netif/state"); !running {
		return nil
	}
	conf, _ := m.Read("/etc/systemd/networkd.conf")
	for line := range strings.Lines(conf) {
		if strings.TrimSpace(line) == "ManageForeignRoutingPolicyRules=no" {
			return []Finding{{Area: "settings", Name: "systemd-networkd", State: Good, Found: "leaves the rules of others alone"}}
		}
	}
	return []Finding{{"settings", "systemd-networkd", Note, "removes rules and routes that it does not know when it restarts",
		"hostd puts its own back at once and says so; new flows fail for that moment",
		"set ManageForeignRoutingPolicyRules=no and ManageForeignRoutes=no in /etc/systemd/networkd.conf"}}
}

func clocks(m Machine) []Finding {
	var findings []Finding
	if source, ok := m.Read("/sys/devices/system/clocksource/clocksource0/current_clocksource"); ok {
		f := Finding{Area: "clock", Name: "source", State: Good, Found: source}
		if slices.Contains([]string{"hpet", "acpi_pm", "jiffies"}, source) {
			f.State, f.Cost, f.Do = Note, "reading it is slow: about a microsecond for each packet", "boot with tsc, or use the hypervisor's clock"
		}
		findings = append(findings, f)
	}
	synchronised, err := m.Synced()
	f := Finding{Area: "clock", Name: "synchronised", State: Good, Found: "yes"}
	if err != nil || !synchronised {
		f.State, f.Found = Note, "no"
		f.Cost, f.Do = "events and logs of different hosts do not line up; in a network with keys nobody joins whose clock is 5 minutes off", "run chrony or systemd-timesyncd"
	}
	return append(findings, f)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
