package doctor

import (
	"fmt"
	"strings"
)

// Filters on a host see the addresses that programs see, for the edge rewrites behind them: there a
// flow looks like any other. On a router they see the wire: a flow's first packet goes to one address
// of a host and its answer comes from another, and what tracks connections makes no sense of it.
const (
	trackingHere  = "none to hosts, whose filters see the addresses that programs see; a router with this rule drops flows"
	trackingCost  = "this machine forwards, and on the wire a flow's answer comes from another address than its first packet went to: the filter takes it for a stray"
	reversingHere = "none to a host with one uplink; with several, packets that come in at the other one are dropped"
	reversingCost = "this machine forwards, and a service router beside the path sends packets on that came from elsewhere: they are dropped"
)

// judge gives the state and the cost of what hurts routers and spares hosts.
func judge(m Machine, here, forwarding string) (State, string) {
	if on, _ := m.Read("/proc/sys/net/ipv6/conf/all/forwarding"); on == "1" {
		return InWay, forwarding
	}
	return Note, here
}

func filters(m Machine) []Finding {
	findings := append(nftables(m), legacy(m)...)
	findings = append(findings, tracking(m, findings)...)
	return append(findings, firewalld(m)...)
}

// exempt is the rule that lets the network's packets pass untracked.
func exempt(m Machine) string {
	as := m.Space.AS
	return fmt.Sprintf("let them pass untracked: nft 'add table inet untracked; add chain inet untracked in { type filter hook prerouting priority raw; }; "+
		"add rule inet untracked in ip6 saddr %v notrack; add chain inet untracked out { type filter hook output priority raw; }; "+
		"add rule inet untracked out ip6 daddr %v notrack'", as, as)
}

func nftables(m Machine) []Finding {
	const name = "nftables"
	rules, err := m.Run("nft", "list", "ruleset")
	if err != nil {
		return []Finding{{Area: "filters", Name: name, State: Good, Found: "no nft program to ask: legacy tables and modules are looked at below"}}
	}
	seen := readRules(rules)
	if seen.chains == 0 {
		return []Finding{{Area: "filters", Name: name, State: Good, Found: "no chain that IPv6 packets pass"}}
	}
	return seen.findings(m, name)
}

// legacy looks at ip6tables' older half, which nft does not show.
func legacy(m Machine) []Finding {
	tables, _ := m.Read("/proc/net/ip6_tables_names")
	if tables == "" {
		return nil
	}
	rules, err := m.Run("ip6tables-legacy-save")
	if err != nil {
		rules, err = m.Run("ip6tables-save")
	}
	if err != nil {
		return []Finding{{"filters", "ip6tables", Note, "tables in use: " + strings.Join(strings.Fields(tables), ", "),
			"what they drop is not known: there is no ip6tables-save to ask", "look for rules with conntrack, state or rpfilter"}}
	}
	return readRules(rules).findings(m, "ip6tables")
}

func tracking(m Machine, already []Finding) []Finding {
	count, ok := m.Read("/proc/sys/net/netfilter/nf_conntrack_count")
	if !ok {
		return []Finding{{Area: "filters", Name: "conntrack", State: Good, Found: "not loaded"}}
	}
	f := Finding{Area: "filters", Name: "conntrack", State: Good, Found: "loaded, " + count + " entries; no rule here drops by it"}
	for _, other := range already {
		if other.State == InWay {
			f.Found = "loaded, " + count + " entries"
		}
	}
	return []Finding{f}
}

func firewalld(m Machine) []Finding {
	conf, ok := m.Read("/etc/firewalld/firewalld.conf")
	if _, running := m.Read("/run/firewalld.pid"); !ok || !running {
		return nil
	}
	for line := range strings.Lines(conf) {
		line = strings.TrimSpace(line)
		if line == "IPv6_rpfilter=yes" || line == "IPv6_rpfilter=strict" {
			return []Finding{{"filters", "firewalld IPv6_rpfilter", InWay, line,
				"packets of bound flows look as if they came in at the wrong interface and are dropped",
				"set IPv6_rpfilter=loose in /etc/firewalld/firewalld.conf and run firewall-cmd --reload"}}
		}
	}
	return []Finding{{Area: "filters", Name: "firewalld IPv6_rpfilter", State: Good, Found: "off or loose"}}
}
