package doctor

import (
	"fmt"
	"net/netip"
	"strings"
)

// minMTU is what IPv6 asks of every link (RFC 8200 §5).
const minMTU = 1280

func links(m Machine) []Finding {
	all, err := m.Links()
	if err != nil {
		return []Finding{{"links", "interfaces", Note, oneLine(err), "they could not be looked at", "run as root"}}
	}
	return append(mtus(all), clashes(m, all)...)
}

// mtus compares the interfaces that could be uplinks.
func mtus(all []Link) []Finding {
	var findings []Finding
	sizes := map[int][]string{}
	for _, l := range all {
		if !l.Up || l.Loopback {
			continue
		}
		sizes[l.MTU] = append(sizes[l.MTU], l.Name)
		if l.MTU < minMTU {
			findings = append(findings, Finding{"links", "MTU of " + l.Name, InWay, fmt.Sprint(l.MTU),
				"IPv6 does not run over it: no uplink", fmt.Sprintf("ip link set %s mtu %d, or more", l.Name, minMTU)})
		}
	}
	if len(sizes) > 1 {
		return append(findings, Finding{"links", "MTU", Note, describe(sizes),
			"a flow that moves between them keeps the smaller segment size for its life", "the same MTU on all uplinks spares that"})
	}
	return append(findings, Finding{Area: "links", Name: "MTU", State: Good, Found: orNone(describe(sizes))})
}

func describe(sizes map[int][]string) string {
	var parts []string
	for _, size := range sortedKeys(sizes) {
		names := sizes[size]
		if len(names) > 4 {
			names = append(names[:4:4], fmt.Sprintf("%d more", len(names)-4))
		}
		parts = append(parts, fmt.Sprintf("%d on %s", size, strings.Join(names, ", ")))
	}
	return strings.Join(parts, "; ")
}

func orNone(s string) string {
	if s == "" {
		return "no interface is up but lo"
	}
	return s
}

// clashes finds addresses of others in the network's prefixes. Those of a running hostd are /128.
func clashes(m Machine, all []Link) []Finding {
	ours := map[string]netip.Prefix{"services": m.Space.Services, "locators": m.Space.AS, "identities": m.Space.Identities}
	var findings []Finding
	for _, l := range all {
		for _, a := range l.Addresses {
			for what, prefix := range ours {
				if prefix.Contains(a.Addr()) && a.Bits() != 128 {
					findings = append(findings, Finding{"links", "address of " + l.Name, InWay, a.String(),
						fmt.Sprintf("it makes a part of the %s prefix %v look on-link: those packets never reach a router", what, prefix),
						"take it away, or give it to the host as /128"})
				}
			}
		}
	}
	return findings
}
