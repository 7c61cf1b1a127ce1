package manifest

import (
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/yamlfile"
)

// schema is a piece of JSON schema.
type schema map[string]any

// A field is a key of a service: how it is read and written, and what editors are told of it.
type field struct {
	name   string
	read   func(*reader, *apiv1.ServiceSpec, *yamlfile.Node)
	write  func(*apiv1.ServiceSpec) any // nil: not said
	about  string
	schema schema
}

func oneOf(words ...string) schema { return schema{"type": "string", "enum": words} }
func number(low, high int) schema {
	return schema{"type": "integer", "minimum": low, "maximum": high}
}
func matching(pattern string) schema { return schema{"type": "string", "pattern": pattern} }
func lists(items schema) schema {
	return schema{"type": "array", "items": items, "minItems": 1, "maxItems": names.MaxListed, "uniqueItems": true}
}

// host is what a host's name looks like to an editor; the controller looks more closely.
const host = `^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$`

var fields = []field{
	{"ready", func(r *reader, s *apiv1.ServiceSpec, n *yamlfile.Node) {
		s.Ready = r.policy(n, "ready", func(p *names.Policy, v string) { p.Ready = v })
	}, func(s *apiv1.ServiceSpec) any { return text(s.Ready) },
		"when an instance may serve: tcp, http:/path, or exec:NAME of a command that the hosts list; empty: when it listens", matching(`^(|tcp|http:/.*|exec:.+)$`)},
	{"failover", func(r *reader, s *apiv1.ServiceSpec, n *yamlfile.Node) {
		s.Failover = r.policy(n, "failover", func(p *names.Policy, v string) { p.Failover = v })
	}, func(s *apiv1.ServiceSpec) any { return text(s.Failover) },
		"flows whose instance is gone: their clients are told (reset), or another instance goes on (continue)", oneOf(names.Reset, names.Continue)},
	{"patience", func(r *reader, s *apiv1.ServiceSpec, n *yamlfile.Node) { s.PatienceMs = r.patience(n) },
		func(s *apiv1.ServiceSpec) any {
			if s.PatienceMs == nil {
				return nil
			}
			return (time.Duration(*s.PatienceMs) * time.Millisecond).String()
		}, "how long a host that is cut off is waited for, 0s to 1m", matching(`^([0-9.]+(ms|s|m))+$|^0$`)},
	{"drain", func(r *reader, s *apiv1.ServiceSpec, n *yamlfile.Node) {
		s.Drain = r.policy(n, "drain", func(p *names.Policy, v string) { p.Drain = v })
	}, func(s *apiv1.ServiceSpec) any { return text(s.Drain) },
		"flows of an instance that drains: they end in peace (wait), or go elsewhere (shed)", oneOf(names.Wait, names.Shed)},
	{"datagrams", func(r *reader, s *apiv1.ServiceSpec, n *yamlfile.Node) {
		s.Datagrams = r.policy(n, "datagrams", func(p *names.Policy, v string) { p.Datagrams = v })
	}, func(s *apiv1.ServiceSpec) any { return text(s.Datagrams) },
		"UDP: the first answer binds the flow; or each datagram is resolved anew; or that, both ways", oneOf("bound", "unbound", "unset")},
	{"dscp", func(r *reader, s *apiv1.ServiceSpec, n *yamlfile.Node) { s.Dscp = r.count(n, "dscp", 0, names.MaxDSCP) },
		func(s *apiv1.ServiceSpec) any { return count(s.Dscp) }, "DSCP that hosts write into its packets", number(0, names.MaxDSCP)},
	{"boost", func(r *reader, s *apiv1.ServiceSpec, n *yamlfile.Node) {
		is := r.OneOf(n, "boost", "true", "false") == "true"
		s.Boost = &is
	},
		func(s *apiv1.ServiceSpec) any {
			if s.Boost == nil {
				return nil
			}
			return *s.Boost
		}, "agents of boost carry its TCP connections from sites where nobody serves it", schema{"type": "boolean"}},
	{"weight", func(r *reader, s *apiv1.ServiceSpec, n *yamlfile.Node) {
		s.Weight = r.count(n, "weight", 1, names.MaxWeight)
	}, func(s *apiv1.ServiceSpec) any { return count(s.Weight) }, "of hosts that have no weight of their own; 100 unless said", number(1, names.MaxWeight)},
	{"weights", func(r *reader, s *apiv1.ServiceSpec, n *yamlfile.Node) { r.weights(n, s) },
		func(s *apiv1.ServiceSpec) any {
			if len(s.Weights) == 0 {
				return nil
			}
			return s.Weights
		}, "share of new flows, by host; 0: none", schema{"type": "object", "propertyNames": matching(host), "additionalProperties": number(0, names.MaxWeight)}},
	{"servers", func(r *reader, s *apiv1.ServiceSpec, n *yamlfile.Node) {
		s.Servers = r.hosts(n, "servers", "leave it out if any host may serve", func(h string) error { return names.Access{Servers: []string{h}}.Check() })
	}, func(s *apiv1.ServiceSpec) any { return items(s.Servers) }, "hosts that may serve it; any, unless said", lists(matching(host))},
	{"allow", func(r *reader, s *apiv1.ServiceSpec, n *yamlfile.Node) {
		s.Allow = r.hosts(n, "allow", "leave it out if everybody may connect, or write ["+names.Nobody+"] if nobody may", func(a string) error { return names.Access{Allow: []string{a}}.Check() })
		if items := s.Allow.Items; len(items) > 1 && slices.Contains(items, names.Nobody) {
			r.At(n, "%v", names.Access{Allow: []string{names.Nobody, names.Nobody}}.Check())
		}
	}, func(s *apiv1.ServiceSpec) any { return items(s.Allow) },
		"who may connect: hosts, service:NAME for the hosts that serve it, prefixes of locators; none alone: nobody; everybody, unless said", lists(schema{"type": "string"})},
	{"key", func(r *reader, s *apiv1.ServiceSpec, n *yamlfile.Node) { s.Key = r.key(n) },
		func(s *apiv1.ServiceSpec) any { return text(s.Key) },
		"its public key, ed25519:... or a file: instances show a permit of it; for life", matching(`.+`)},
	{"sid", func(r *reader, s *apiv1.ServiceSpec, n *yamlfile.Node) { s.Sid = r.sid(n) },
		func(s *apiv1.ServiceSpec) any { return text(s.Sid) },
		"its serviceID, for life; one is assigned, unless said", matching(`^[0-9a-f]{8}-[0-9a-f]{16}$`)},
}

func text(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}

func count(n *uint32) any {
	if n == nil {
		return nil
	}
	return *n
}

func items(l *apiv1.StringList) any {
	if l == nil {
		return nil
	}
	return l.Items
}
