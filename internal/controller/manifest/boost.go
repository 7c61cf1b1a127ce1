package manifest

import (
	"fmt"
	"strings"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/yamlfile"
)

// The kinds of what files say of boost, as the controller's answers have them.
const (
	siteKind  = "boost site"
	entryKind = "boost entry"
)

// A key is one of a site or entry S of boost: how it is read and written, and what editors are told of it.
type key[S any] struct {
	name   string
	needed bool
	read   func(*reader, S, *yamlfile.Node)
	write  func(S) any // nil: not said
	about  string
	schema schema
}

const (
	anyPort = "any"
	instant = `^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9:.]+([Zz]|[+-][0-9:]+)$`
)

func several(items schema) schema {
	return schema{"type": "array", "items": items, "minItems": 1, "uniqueItems": true}
}

var siteKeys = []key[*apiv1.BoostSiteSpec]{
	{"prefixes", true, func(r *reader, s *apiv1.BoostSiteSpec, n *yamlfile.Node) {
		s.Prefixes = r.hosts(n, "prefixes", "which hosts are at the site?", prefix).Items
	}, func(s *apiv1.BoostSiteSpec) any { return s.Prefixes },
		"addresses and prefixes of the hosts at the site; each address is of one site", several(schema{"type": "string"})},
	{"agents", false, func(r *reader, s *apiv1.BoostSiteSpec, n *yamlfile.Node) {
		s.Agents = r.hosts(n, "agents", "leave it out if the site has none", name("agent"))
	}, func(s *apiv1.BoostSiteSpec) any { return items(s.Agents) },
		"agents that serve the site, by name: no others do. None, unless said", several(matching(host))},
	{"switches", false, func(r *reader, s *apiv1.BoostSiteSpec, n *yamlfile.Node) {
		s.Switches = r.hosts(n, "switches", "leave it out if the agents are on the hosts' way", name("switch"))
	}, func(s *apiv1.BoostSiteSpec) any { return items(s.Switches) },
		"OpenFlow switches that send connections to the agents at their ports; none, unless said", several(matching(host))},
	{"on-path", false, func(r *reader, s *apiv1.BoostSiteSpec, n *yamlfile.Node) {
		s.OnPath = r.OneOf(n, "on-path", "true") == "true"
	}, func(s *apiv1.BoostSiteSpec) any {
		if s.OnPath {
			return true
		}
		return nil
	}, "the agents are on the way of the hosts' packets, whatever somebody else said: no switches", schema{"const": true}},
}

var entryKeys = []key[*apiv1.BoostEntrySpec]{
	{"client", true, func(r *reader, e *apiv1.BoostEntrySpec, n *yamlfile.Node) { e.Client = r.prefix(n, "client") },
		func(e *apiv1.BoostEntrySpec) any { return e.Client }, "address or prefix of the clients, all of one site", schema{"type": "string"}},
	{"server", true, func(r *reader, e *apiv1.BoostEntrySpec, n *yamlfile.Node) { e.Server = r.prefix(n, "server") },
		func(e *apiv1.BoostEntrySpec) any { return e.Server }, "address or prefix of the servers, all of another site", schema{"type": "string"}},
	{"port", false, func(r *reader, e *apiv1.BoostEntrySpec, n *yamlfile.Node) {
		if n.Value == anyPort {
			e.Port = new(uint32)
			return
		}
		e.Port = r.count(n, "port", 1, 65535)
	}, func(e *apiv1.BoostEntrySpec) any {
		if e.Port != nil && *e.Port == 0 {
			return anyPort
		}
		return count(e.Port)
	}, "of the servers; any, unless said", schema{"oneOf": []schema{number(1, 65535), oneOf(anyPort)}}},
	{"from", false, func(r *reader, e *apiv1.BoostEntrySpec, n *yamlfile.Node) { e.FromUnixMs = r.moment(n, "from") },
		func(e *apiv1.BoostEntrySpec) any { return moment(e.FromUnixMs) },
		"when connections may begin, as 2026-12-01T22:00:00Z; at once, unless said", matching(instant)},
	{"until", false, func(r *reader, e *apiv1.BoostEntrySpec, n *yamlfile.Node) { e.UntilUnixMs = r.moment(n, "until") },
		func(e *apiv1.BoostEntrySpec) any { return moment(e.UntilUnixMs) },
		"when no more connections begin that are boosted; never, unless said", matching(instant)},
	{"accept", false, func(r *reader, e *apiv1.BoostEntrySpec, n *yamlfile.Node) {
		word := r.OneOf(n, "accept", lane.Accepts...)
		e.Accept = &word
	}, func(e *apiv1.BoostEntrySpec) any {
		if e.Accept == nil {
			return nil
		}
		return *e.Accept
	}, "when clients are accepted: once the server has answered, or at once, and what the server says comes late; answered, unless said", oneOf(lane.Accepts...)},
	{"mode", false, func(r *reader, e *apiv1.BoostEntrySpec, n *yamlfile.Node) {
		word := r.OneOf(n, "mode", lane.Modes...)
		e.Mode = &word
	}, func(e *apiv1.BoostEntrySpec) any {
		if e.Mode == nil {
			return nil
		}
		return *e.Mode
	}, "how switches send connections to agents: at their ports, or anywhere, by rules for each connection; steer, unless said", oneOf(lane.Modes...)},
}

// boost reads what a file says of it.
func (r *reader) boost(n *yamlfile.Node) {
	if n.Tag == "!!null" {
		return // `boost:` alone: neither sites nor entries
	}
	r.Object(n, "boost", yamlfile.Fields{
		"sites": func(n *yamlfile.Node) {
			for name, value := range r.things(n, "sites", siteKind) {
				s := &apiv1.BoostSiteSpec{Name: name}
				r.set.Sites = append(r.set.Sites, s)
				said := keysOf(r, siteKeys, siteKind, name, s, value)
				if s.OnPath && s.Switches != nil {
					r.At(said["on-path"], "boost site %s: its agents are on the hosts' way, and it has switches that send them connections: say one of both", name)
				}
			}
		},
		"entries": func(n *yamlfile.Node) {
			for name, value := range r.things(n, "entries", entryKind) {
				e := &apiv1.BoostEntrySpec{Name: name}
				r.set.Entries = append(r.set.Entries, e)
				said := keysOf(r, entryKeys, entryKind, name, e, value)
				if e.GetFromUnixMs() != 0 && e.GetUntilUnixMs() != 0 && *e.UntilUnixMs <= *e.FromUnixMs {
					r.At(said["until"], "boost entry %s: it ends before it begins: from is on line %d", name, said["from"].Line)
				}
			}
		},
	})
}

// things are the sites or entries of a mapping, by name.
func (r *reader) things(n *yamlfile.Node, what, kind string) func(func(string, *yamlfile.Node) bool) {
	return func(yield func(string, *yamlfile.Node) bool) {
		if n.Tag == "!!null" {
			return
		}
		r.Each(n, what, func(key, value *yamlfile.Node) {
			if err := name(kind)(key.Value); err != nil {
				r.At(key, "%v", err)
				return
			}
			at := kind + " " + key.Value
			if first, twice := r.set.at[at]; twice {
				r.At(key, "%s stands also in %s:%d", at, first[""].path, first[""].line)
				return
			}
			r.set.at[at] = map[string]place{"": r.place(key)}
			yield(key.Value, value)
		})
	}
}

// keysOf reads the keys of a site or an entry, and returns where each stands.
func keysOf[S any](r *reader, keys []key[S], kind, name string, s S, n *yamlfile.Node) map[string]*yamlfile.Node {
	said, known, at := map[string]*yamlfile.Node{}, yamlfile.Fields{}, r.set.at[kind+" "+name]
	for _, k := range keys {
		known[k.name] = func(n *yamlfile.Node) {
			at[k.name], said[k.name] = r.place(n), n
			k.read(r, s, n)
		}
	}
	if n.Tag != "!!null" {
		bad := len(r.Errs)
		if r.Object(n, kind+" "+name, known); len(r.Errs) > bad {
			return said // a key that is misspelt is not missing as well
		}
	}
	for _, k := range keys {
		if k.needed && said[k.name] == nil {
			where := at[""]
			r.Errorf(where.line, where.column, "%s %s: %q is missing: %s", kind, name, k.name, k.about)
		}
	}
	return said
}

// name checks names of sites, entries, agents and switches, which are those of hosts.
func name(what string) func(string) error {
	return func(text string) error {
		if clean, err := names.Clean(text, ""); err != nil || clean != text {
			return fmt.Errorf("%s name %.80q: want letters, digits and hyphens, in lower case", what, text)
		}
		return nil
	}
}

// prefix checks a prefix, or an address.
func prefix(text string) error {
	_, err := lane.ParsePrefix(text)
	return err
}

func (r *reader) prefix(n *yamlfile.Node, what string) string {
	bad := len(r.Errs)
	text := r.Text(n, what)
	if err := prefix(text); err != nil && len(r.Errs) == bad {
		r.At(n, "%s: %v", what, err)
	}
	return text
}

func (r *reader) moment(n *yamlfile.Node, what string) *int64 {
	t, err := time.Parse(time.RFC3339, n.Value)
	switch {
	case strings.HasPrefix(n.Value, "+"):
		r.At(n, "%s: expected a time as 2026-12-01T22:00:00Z, found %s: a while from now would be another time whenever the file is applied", what, yamlfile.KindOf(n))
	case !yamlfile.IsValue(n) || err != nil || t.Unix() <= 0:
		r.At(n, "%s: expected a time as 2026-12-01T22:00:00Z, found %s", what, yamlfile.KindOf(n))
	default:
		ms := t.UnixMilli()
		return &ms
	}
	return nil
}

func moment(unixMs *int64) any {
	if unixMs == nil {
		return nil
	}
	return time.UnixMilli(*unixMs).UTC()
}

// schemaOf is what editors are told of sites, or entries.
func schemaOf[S any](keys []key[S], about string) schema {
	properties, needed := schema{}, []string{}
	for _, k := range keys {
		one := schema{"description": k.about}
		for word, v := range k.schema {
			one[word] = v
		}
		properties[k.name] = one
		if k.needed {
			needed = append(needed, k.name)
		}
	}
	return schema{
		"type": []string{"object", "null"}, "description": about, "propertyNames": matching(host),
		"additionalProperties": schema{"type": "object", "additionalProperties": false, "required": needed, "properties": properties},
	}
}
