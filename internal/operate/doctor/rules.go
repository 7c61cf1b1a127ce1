package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// rules is what a rule set says about IPv6 packets, as far as it matters here.
type rules struct {
	chains   int      // base chains that IPv6 packets pass
	drops    []string // base chains that drop what no rule accepts
	tracked  []string // rules that judge by conntrack's state
	reversed []string // rules that check the way back
	exempt   []string // rules that let packets pass untracked
}

// readRules understands the text of nft list ruleset and of ip6tables-save: line by line, which is
// enough to know that somebody should look.
func readRules(text string) rules {
	var r rules
	family, chain := "ip6", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "table" && len(words) > 2:
			family = words[1]
		case words[0] == "chain" && len(words) > 1:
			chain = words[1]
		case family != "ip6" && family != "inet": // ip, arp, bridge, netdev
		case words[0] == "type" && strings.Contains(line, " hook "):
			r.base(chain, strings.Contains(line, "policy drop"))
		case strings.HasPrefix(words[0], ":") && len(words) > 1 && words[1] != "-": // :INPUT DROP [0:0]
			r.base(words[0][1:], words[1] == "DROP")
		default:
			r.rule(line)
		}
	}
	return r
}

func (r *rules) base(chain string, drops bool) {
	r.chains++
	if drops {
		r.drops = append(r.drops, chain)
	}
}

func (r *rules) rule(line string) {
	dropping := strings.Contains(line, "drop") || strings.Contains(line, "reject") || strings.Contains(line, "DROP") || strings.Contains(line, "REJECT")
	switch {
	case strings.Contains(line, "notrack"), strings.Contains(line, "NOTRACK"), strings.Contains(line, "CT --notrack"):
		r.exempt = append(r.exempt, line)
	case strings.Contains(line, "fib saddr") && dropping, strings.Contains(line, "-m rpfilter"):
		r.reversed = append(r.reversed, line)
	case strings.Contains(line, "ct state") && strings.Contains(line, "invalid") && dropping,
		strings.Contains(line, "INVALID") && dropping:
		r.tracked = append(r.tracked, line)
	}
}

func (r rules) findings(m Machine, name string) []Finding {
	var all []Finding
	if len(r.tracked) > 0 && !r.untracked(m) {
		state, cost := judge(m, trackingHere, trackingCost)
		all = append(all, Finding{"filters", name + " by connection state", state, r.tracked[0] + more(r.tracked), cost, exempt(m)})
	}
	if len(r.drops) > 0 {
		all = append(all, Finding{"filters", name + " with policy drop", InWay, "chains " + strings.Join(r.drops, ", "),
			"what no rule accepts is dropped: flows too, unless a rule lets their addresses pass",
			fmt.Sprintf("accept in these chains: UDP port 23727, and IPv6 from or to %v and %v", m.Space.Services, m.Space.AS)})
	}
	if len(r.reversed) > 0 {
		state, cost := judge(m, reversingHere, reversingCost)
		all = append(all, Finding{"filters", name + " reverse-path check", state, r.reversed[0] + more(r.reversed), cost,
			fmt.Sprintf("accept IPv6 from %v before that rule", m.Space.AS)})
	}
	if all == nil {
		all = []Finding{{Area: "filters", Name: name, State: Good, Found: fmt.Sprintf("%d chains, none in the way", r.chains)}}
	}
	return all
}

func more(rules []string) string {
	if len(rules) == 1 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", len(rules)-1)
}

// untracked reports whether a rule keeps connection tracking off the network's packets.
func (r rules) untracked(m Machine) bool {
	return slices.ContainsFunc(r.exempt, func(line string) bool { return strings.Contains(line, m.Space.AS.String()) })
}
