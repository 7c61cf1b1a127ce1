package boost

import (
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/specs"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/core/names"
)

// A field is one thing that a file can say of a record R in the words of S.
type field[R, S any] struct {
	name string
	said func(S) bool
	take func(*R, S)    // words that do not say it give the default
	text func(R) string // "" is the default
}

func always[S any](S) bool { return true }

func words(list []string) string { return strings.Join(list, ", ") }

var siteFields = []field[store.BoostSite, *apiv1.BoostSiteSpec]{
	{"prefixes", always[*apiv1.BoostSiteSpec], func(r *store.BoostSite, s *apiv1.BoostSiteSpec) { r.Prefixes = s.Prefixes }, func(r store.BoostSite) string { return words(r.Prefixes) }},
	{"agents", func(s *apiv1.BoostSiteSpec) bool { return s.Agents != nil },
		func(r *store.BoostSite, s *apiv1.BoostSiteSpec) { r.Agents = s.Agents.GetItems() }, func(r store.BoostSite) string { return words(r.Agents) }},
	{"switches", func(s *apiv1.BoostSiteSpec) bool { return s.Switches != nil || s.OnPath },
		func(r *store.BoostSite, s *apiv1.BoostSiteSpec) { r.Switches = s.Switches.GetItems() }, func(r store.BoostSite) string { return words(r.Switches) }},
}

var entryFields = []field[store.BoostEntry, *apiv1.BoostEntrySpec]{
	{"client", always[*apiv1.BoostEntrySpec], func(r *store.BoostEntry, e *apiv1.BoostEntrySpec) { r.Client = e.Client }, func(r store.BoostEntry) string { return r.Client }},
	{"server", always[*apiv1.BoostEntrySpec], func(r *store.BoostEntry, e *apiv1.BoostEntrySpec) { r.Server = e.Server }, func(r store.BoostEntry) string { return r.Server }},
	{"port", func(e *apiv1.BoostEntrySpec) bool { return e.Port != nil },
		func(r *store.BoostEntry, e *apiv1.BoostEntrySpec) { r.Port = uint16(e.GetPort()) },
		func(r store.BoostEntry) string {
			if r.Port == 0 {
				return ""
			}
			return events.Number(r.Port)
		}},
	{"from", func(e *apiv1.BoostEntrySpec) bool { return e.FromUnixMs != nil },
		func(r *store.BoostEntry, e *apiv1.BoostEntrySpec) { r.From = timeOf(e.GetFromUnixMs()) }, func(r store.BoostEntry) string { return moment(r.From) }},
	{"until", func(e *apiv1.BoostEntrySpec) bool { return e.UntilUnixMs != nil },
		func(r *store.BoostEntry, e *apiv1.BoostEntrySpec) { r.Until = timeOf(e.GetUntilUnixMs()) }, func(r store.BoostEntry) string { return moment(r.Until) }},
	{"accept", func(e *apiv1.BoostEntrySpec) bool { return e.Accept != nil },
		func(r *store.BoostEntry, e *apiv1.BoostEntrySpec) { r.AtOnce = e.GetAccept() == lane.AtOnce },
		func(r store.BoostEntry) string {
			if !r.AtOnce {
				return ""
			}
			return lane.AtOnce
		}},
	{"mode", func(e *apiv1.BoostEntrySpec) bool { return e.Mode != nil },
		func(r *store.BoostEntry, e *apiv1.BoostEntrySpec) { r.Rewrite = e.GetMode() == lane.Rewritten },
		func(r store.BoostEntry) string {
			if !r.Rewrite {
				return ""
			}
			return lane.Rewritten
		}},
}

// moment is a time as files have it.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// merged is a record as files want it: what they say, and what they said last and say no more as it is by default, unless
// somebody has set it since. mark is what they say now, as text.
func merged[R, S any](fields []field[R, S], was R, last *names.Applied, say S) (now R, c *apiv1.ServiceChange, mark map[string]string) {
	now, c, mark = was, &apiv1.ServiceChange{}, map[string]string{}
	for _, f := range fields {
		said := f.said(say)
		text, ours := last.Last(f.name)
		byHand := ours && text != f.text(was)
		if !said && (!ours || byHand) {
			continue // somebody else's
		}
		if f.take(&now, say); said {
			mark[f.name] = f.text(now)
		}
		if from, to := f.text(was), f.text(now); from != to {
			c.Fields = append(c.Fields, &apiv1.FieldChange{Field: f.name, From: from, To: to, Why: specs.Why(said, byHand)})
		}
	}
	return now, c, mark
}

// Specs are the sites and entries as files have them, by name.
func (x *Boost) Specs() (sites []*apiv1.BoostSiteSpec, entries []*apiv1.BoostEntrySpec) {
	list := func(items []string) *apiv1.StringList {
		if len(items) == 0 {
			return nil
		}
		return &apiv1.StringList{Items: items}
	}
	for _, name := range slices.Sorted(maps.Keys(x.sites)) {
		s := x.sites[name]
		sites = append(sites, &apiv1.BoostSiteSpec{Name: name, Prefixes: s.Prefixes, Agents: list(s.Agents), Switches: list(s.Switches)})
	}
	for _, name := range slices.Sorted(maps.Keys(x.entries)) {
		e := x.entries[name]
		out := &apiv1.BoostEntrySpec{Name: name, Client: e.Client, Server: e.Server}
		if e.Port != 0 {
			out.Port = proto.Uint32(uint32(e.Port))
		}
		if !e.From.IsZero() {
			out.FromUnixMs = proto.Int64(unixMs(e.From))
		}
		if !e.Until.IsZero() {
			out.UntilUnixMs = proto.Int64(unixMs(e.Until))
		}
		if e.AtOnce {
			out.Accept = proto.String(lane.AtOnce)
		}
		if e.Rewrite {
			out.Mode = proto.String(lane.Rewritten)
		}
		entries = append(entries, out)
	}
	return sites, entries
}
