package explain

import (
	"fmt"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/core/names"
)

// namedFew is how many names a line for people has before the others are counted.
const namedFew = 3

func few(list []string) string {
	if len(list) <= namedFew {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:namedFew], ", "), len(list)-namedFew)
}

// access says whom the service's lists refuse, as servers and as clients. Nothing where they refuse nobody.
func (n *Network) access(r names.Record) (lines []string) {
	for _, host := range n.Hosts.Names() {
		refused := slices.DeleteFunc(n.Hosts.Refused(host), func(x Refusal) bool { return x.Triple.Service != r.ID })
		slices.SortFunc(refused, func(a, b Refusal) int { return int(a.Triple.Port) - int(b.Triple.Port) })
		for _, x := range refused {
			lines = append(lines, fmt.Sprintf("%s would serve %v/%d and may not: %s", host, x.Triple.Proto, x.Triple.Port, x.Why))
		}
	}
	if len(r.Access.Allow) == 0 {
		return lines
	}
	how := fmt.Sprintf("(scaffold service access %s)", r.Name)
	if r.Access.Forbidden() {
		return append(lines, fmt.Sprintf(`nobody may connect %s: every connection is refused with "permission denied"`, how))
	}
	line := fmt.Sprintf("only %s may connect %s", few(r.Access.Allow), how)
	if refused := n.refusedBy(r); len(refused) > 0 {
		line += fmt.Sprintf(`; connections from %s are refused with "permission denied"`, few(refused))
	}
	return append(append(lines, line), n.emptyEntries(r)...)
}

// refusedBy are the hosts that are here and may not connect.
func (n *Network) refusedBy(r names.Record) (refused []string) {
	set := n.Access.Set(r.ID)
	for _, host := range n.Hosts.Names() {
		at := n.Hosts.Locators(host)
		if len(at) > 0 && !slices.ContainsFunc(at, set.Allows) {
			refused = append(refused, host)
		}
	}
	return refused
}

// emptyEntries says which entries of the list let nobody connect, and why.
func (n *Network) emptyEntries(r names.Record) []string {
	lines := n.Services.Nameless(nil, r.Access.Allow, n.Services.Has)
	for _, text := range r.Access.Allow {
		a, err := names.ParseAllowed(text)
		if err != nil || a.Service == "" {
			continue
		}
		if s, err := n.Services.Named(a.Service); err == nil && len(n.Plan.Instances(s.ID)) == 0 {
			lines = append(lines, fmt.Sprintf("no host serves %s: %s lets nobody connect", a.Service, text))
		}
	}
	return lines
}
