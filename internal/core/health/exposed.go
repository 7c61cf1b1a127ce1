package health

import "strings"

// What lets others than members in: a network without keys that others than the controller's machine reach, and a
// store that is spoken to without TLS. Nobody else reaches a lab's namespaces.

// Clear is where the state crosses a wire without TLS.
type Clear struct {
	Peers []string // URLs of the controllers' own parts of the state
	Etcd  []string // endpoints of an etcd elsewhere
	Keys  bool     // the network's private key is in that state
}

// toKeys is how an open network becomes one with keys.
const toKeys = "scaffold install controller --trust keys  # where the controller runs"

func open(s Snapshot) []Problem {
	if len(s.Open) == 0 || s.Lab != "" {
		return nil
	}
	at := strings.Join(s.Open, ", ")
	return []Problem{{Kind: NetworkOpen, Severity: Warning, Where: at, Count: 1,
		What: "the network is open: whoever reaches " + at + " may join it, rule it and read all of its state", Next: toKeys}}
}

// openTo is open as a host or a router sees it, which joined without a key.
func (s Snapshot) openTo(o *Own) []Problem {
	if !o.Open || s.Lab != "" {
		return nil
	}
	return []Problem{{Kind: NetworkOpen, Severity: Warning, Where: o.Name, Count: 1,
		What: "the network is open: " + o.Role + " " + o.Name + " joined it without a key, as may whoever reaches its controllers", Next: toKeys}}
}

func clear(s Snapshot) (all []Problem) {
	if s.Lab != "" {
		return nil
	}
	key := ""
	if s.Clear.Keys {
		key = ", the network's private key too"
	}
	tell := func(at []string, what, next string) {
		if len(at) > 0 {
			all = append(all, Problem{Kind: StoreClear, Severity: Warning, Where: strings.Join(at, ", "), Count: len(at), What: what, Next: next})
		}
	}
	tell(s.Clear.Peers, "the controllers exchange the state in clear: whoever reaches "+list(s.Clear.Peers)+" can read and change all of it"+key,
		"scaffold controld --help  # first --peer-ca, --peer-cert and --peer-key at all of them, one after the other, then https:// in --cluster")
	tell(s.Clear.Etcd, "the state goes in clear to the etcd at "+list(s.Clear.Etcd)+": whoever reads along learns all of it"+key,
		"scaffold controld --help  # --etcd-ca, and https:// in --etcd")
	return all
}
