package boost

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/specs"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/core/names"
)

// The kinds of what files say of boost, as changes and problems have them.
const (
	siteKind  = "boost site"
	entryKind = "boost entry"
)

// An application is what an Apply comes to: the sites and entries as they are to be, all checked together.
type application struct {
	x       *Boost
	req     *apiv1.ApplyRequest
	resp    *apiv1.ApplyResponse
	sites   map[string]store.BoostSite
	entries map[string]store.BoostEntry
	named   map[string]bool // kind and name
	steps   []specs.Step
	ending  []string // entries whose lanes are to go: they are taken away, or are other connections
}

// Apply finds out what is to be done for a request, and all that is wrong, and writes it into the answer. It changes nothing:
// the steps do. They are one change, which the first of them makes.
func (x *Boost) Apply(req *apiv1.ApplyRequest, resp *apiv1.ApplyResponse) []specs.Step {
	p := &application{x: x, req: req, resp: resp, sites: maps.Clone(x.sites), entries: maps.Clone(x.entries), named: map[string]bool{}}
	wrong := len(resp.Problems)
	for _, s := range req.BoostSites {
		p.site(s)
	}
	for _, e := range req.BoostEntries {
		p.entry(e)
	}
	if req.Prune && req.KnowsBoost { // a command of before names none, whatever its files have
		p.prune()
	}
	if len(resp.Problems) == wrong { // else what is missing for a mistake of its own would be told of everything that needs it
		p.together()
	}
	p.order()
	specs.AsPlanned(req, resp, func(kind string) bool { return kind != "" }, func(_, name string) string {
		return fmt.Sprintf("the files are other ones, or somebody was faster (`scaffold events --of %s`)", name)
	})
	if len(p.steps) > 0 {
		p.steps[0].Effect = p.effect
	}
	return p.steps
}

// order has sites before entries, each by name.
func (p *application) order() {
	slices.SortStableFunc(p.resp.Changes, func(a, b *apiv1.ServiceChange) int {
		rank := map[string]int{siteKind: 1, entryKind: 2}
		return cmp.Or(cmp.Compare(rank[a.Kind], rank[b.Kind]), cmp.Compare(a.Name, b.Name))
	})
	slices.Sort(p.resp.Warnings)
	p.resp.Warnings = slices.Compact(p.resp.Warnings)
}

func (p *application) problem(kind, name, field string, err error) {
	text, refused := err.Error(), errors.Is(err, orders.ErrConflict)
	var known *connect.Error
	if errors.As(err, &known) {
		text = known.Message()
	}
	p.resp.Problems = append(p.resp.Problems, &apiv1.SpecProblem{
		Kind: kind, Service: name, Field: field, Refused: refused, Text: strings.TrimPrefix(text, orders.ErrConflict.Error()+": "),
	})
}

// twice reports whether the request has named something before, which is a mistake.
func (p *application) twice(kind, name string) bool {
	key := kind + " " + name
	if p.named[key] {
		p.problem(kind, name, "", fmt.Errorf("%s %s is named twice", kind, name))
		return true
	}
	p.named[key] = true
	return false
}

// others refuses what belongs to files of another owner.
func (p *application) others(kind, name string, mark *names.Applied) bool {
	if mark == nil || mark.Owner == p.req.Owner || p.req.Force {
		return false
	}
	p.problem(kind, name, "", fmt.Errorf("%w: %s %s belongs to the files of %s: take it out of one of the two, or use force to take it over", orders.ErrConflict, kind, name, mark.Owner))
	return true
}

// site is one that is named.
func (p *application) site(s *apiv1.BoostSiteSpec) {
	if p.twice(siteKind, s.Name) {
		return
	}
	was, known := p.x.sites[s.Name]
	if !p.siteSpec(s) || p.others(siteKind, s.Name, was.Applied) {
		return
	}
	was.Name = s.Name
	now, c, mark := merged(siteFields, was, was.Applied, s)
	now.Applied = p.mark(was.Applied, known, mark)
	c.Kind, c.Name, c.Action = siteKind, s.Name, action(known, c, was.Applied, p.req.Owner)
	p.sites[s.Name] = now
	for _, name := range now.Agents {
		if !p.x.Known(name) {
			p.resp.Warnings = append(p.resp.Warnings, fmt.Sprintf("boost site %s: no agent named %s has joined yet", s.Name, name))
		}
	}
	text := "a site of boost was set by " + p.req.Owner + "'s files"
	p.add(c, known && now.Applied.Same(was.Applied), []store.Change{store.PutBoostSite(now)}, events.Changed(events.New("boost.site", s.Name, text), c.Fields...))
}

// siteSpec says all that is wrong with the words of a site by themselves, and puts them in order.
func (p *application) siteSpec(s *apiv1.BoostSiteSpec) bool {
	wrong := len(p.resp.Problems)
	bad := func(field string, err error) {
		if err != nil {
			p.problem(siteKind, s.Name, field, err)
		}
	}
	bad("", checkName("site", s.Name))
	if len(s.Prefixes) == 0 || len(s.Prefixes) > maxPrefixes {
		bad("prefixes", fmt.Errorf("site %q: %d prefixes, expected 1 to %d: which hosts do its agents serve?", s.Name, len(s.Prefixes), maxPrefixes))
	}
	for i, text := range s.Prefixes {
		prefix, err := lane.ParsePrefix(text)
		if s.Prefixes[i] = prefix.String(); err != nil {
			bad("prefixes", fmt.Errorf("site %q: prefix %w", s.Name, err))
		}
	}
	for _, name := range s.Agents.GetItems() {
		bad("agents", checkName("agent", name))
	}
	_, err := checkSwitches(s.Name, s.Switches.GetItems())
	bad("switches", err)
	for field, list := range map[string]*apiv1.StringList{"agents": s.Agents, "switches": s.Switches} {
		switch {
		case list != nil && len(list.Items) == 0:
			bad(field, fmt.Errorf("site %q: an empty list of %s: leave it out", s.Name, field))
		case list != nil:
			slices.Sort(list.Items)
			list.Items = slices.Compact(list.Items)
		}
	}
	if s.OnPath && s.Switches != nil {
		bad("on-path", fmt.Errorf("site %q: its agents are on the hosts' way, and it has switches that send them connections: say one of both", s.Name))
	}
	slices.Sort(s.Prefixes)
	return len(p.resp.Problems) == wrong
}

// entry is one that is named.
func (p *application) entry(e *apiv1.BoostEntrySpec) {
	if p.twice(entryKind, e.Name) {
		return
	}
	was, known := p.x.entries[e.Name]
	if !p.entrySpec(e) || p.others(entryKind, e.Name, was.Applied) {
		return
	}
	was.Name = e.Name
	now, c, mark := merged(entryFields, was, was.Applied, e)
	now.Applied = p.mark(was.Applied, known, mark)
	c.Kind, c.Name, c.Action = entryKind, e.Name, action(known, c, was.Applied, p.req.Owner)
	p.entries[e.Name] = now
	if known && (now.Client != was.Client || now.Server != was.Server || now.Port != was.Port) {
		p.ending = append(p.ending, e.Name)
	}
	text := "connections are to be boosted"
	if known {
		text = "the entry was changed by " + p.req.Owner + "'s files"
	}
	p.add(c, known && now.Applied.Same(was.Applied), []store.Change{store.PutBoostEntry(now)}, events.Changed(
		events.New("boost.allow", e.Name, text, "client", now.Client, "server", now.Server, "port", events.Number(now.Port)), c.Fields...))
}

func (p *application) entrySpec(e *apiv1.BoostEntrySpec) bool {
	wrong := len(p.resp.Problems)
	bad := func(field string, err error) {
		if err != nil {
			p.problem(entryKind, e.Name, field, err)
		}
	}
	bad("", checkName("entry", e.Name))
	for field, text := range map[string]*string{"client": &e.Client, "server": &e.Server} {
		prefix, err := lane.ParsePrefix(*text)
		if err != nil {
			bad(field, fmt.Errorf("entry %q: %s %w", e.Name, field, err))
			continue
		}
		*text = prefix.String()
	}
	if e.GetPort() > 65535 {
		bad("port", fmt.Errorf("entry %q: port %d: expected 1 to 65535, or 0 for any", e.Name, e.GetPort()))
	}
	if _, err := lane.ParseMode(e.GetMode()); err != nil {
		bad("mode", fmt.Errorf("entry %q: mode %w", e.Name, err))
	}
	if _, err := lane.ParseAccept(e.GetAccept()); err != nil {
		bad("accept", fmt.Errorf("entry %q: accept %w", e.Name, err))
	}
	return len(p.resp.Problems) == wrong
}

// mark is the mark of these files on what they name.
func (p *application) mark(was *names.Applied, known bool, fields map[string]string) *names.Applied {
	return &names.Applied{Owner: p.req.Owner, Made: !known || was != nil && was.Made, Fields: fields}
}

// action is what becomes of one that is named.
func action(known bool, c *apiv1.ServiceChange, mark *names.Applied, owner string) string {
	switch {
	case !known:
		return "create"
	case len(c.Fields) > 0:
		return "update"
	case mark == nil || mark.Owner != owner:
		return "adopt"
	}
	return "none"
}

// add notes a change, and how it is made unless nothing changes at all.
func (p *application) add(c *apiv1.ServiceChange, sameMark bool, records []store.Change, says *apiv1.Event) {
	p.resp.Changes = append(p.resp.Changes, c)
	if c.Action == "none" && sameMark {
		return
	}
	if len(c.Fields) == 0 && c.Action != "create" && c.Action != "remove" {
		says = events.New(says.Kind, c.Name, "what files say of it changed, nothing else")
	}
	p.steps = append(p.steps, specs.Step{Change: c, Records: records, Effect: func() {}, Says: []*apiv1.Event{says}})
}

// prune takes away what the owner's files made and no longer name, and lets go of what they only changed.
func (p *application) prune() {
	gone := func(kind, name string, mark *names.Applied) (is, made bool) {
		return mark != nil && mark.Owner == p.req.Owner && !p.named[kind+" "+name], mark != nil && mark.Made
	}
	for _, name := range slices.Sorted(maps.Keys(p.x.sites)) {
		s := p.x.sites[name]
		switch is, made := gone(siteKind, name, s.Applied); {
		case is && made:
			delete(p.sites, name)
			p.add(&apiv1.ServiceChange{Kind: siteKind, Name: name, Action: "remove"}, false, []store.Change{store.DeleteBoostSite(name)}, events.New("boost.site", name, "a site of boost was removed"))
		case is:
			s.Applied = nil
			p.sites[name] = s
			p.add(&apiv1.ServiceChange{Kind: siteKind, Name: name, Action: "release"}, false, []store.Change{store.PutBoostSite(s)}, events.New("boost.site", name, ""))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.x.entries)) {
		e := p.x.entries[name]
		switch is, made := gone(entryKind, name, e.Applied); {
		case is && made:
			delete(p.entries, name)
			p.ending = append(p.ending, name)
			p.add(&apiv1.ServiceChange{Kind: entryKind, Name: name, Action: "remove"}, false, []store.Change{store.DeleteBoostEntry(name)},
				events.New("boost.deny", name, "connections are not to be boosted any more; those that are go on"))
		case is:
			e.Applied = nil
			p.entries[name] = e
			p.add(&apiv1.ServiceChange{Kind: entryKind, Name: name, Action: "release"}, false, []store.Change{store.PutBoostEntry(e)}, events.New("boost.allow", name, ""))
		}
	}
}

// together says what is wrong with all sites and entries as they would be.
func (p *application) together() {
	if n := len(p.sites); n > maxSites && n > len(p.x.sites) {
		p.problem(siteKind, "", "", fmt.Errorf("%w: there would be %d sites, at most %d may be", orders.ErrConflict, n, maxSites))
	}
	if n := len(p.entries); n > maxEntries && n > len(p.x.entries) {
		p.problem(entryKind, "", "", fmt.Errorf("%w: there would be %d entries, at most %d may be: take away those that are over (scaffold boost ls)", orders.ErrConflict, n, maxEntries))
		return // each would be compared with each other one
	}
	p.agents()
	for _, w := range lane.Problems(planned(p.sites), plannedEntries(p.entries)) {
		kind, name := siteKind, w.Site
		if w.Entry != "" {
			kind, name = entryKind, w.Entry
		}
		text := fmt.Errorf("%s", w.Text)
		if w.Other != "" && (!p.named[kind+" "+name] || !p.named[kind+" "+w.Other]) {
			text = fmt.Errorf("%w: %w", orders.ErrConflict, text) // of what is there
		}
		if w.Other != "" && !p.named[kind+" "+name] {
			name = w.Other // the one that is in the files
		}
		p.problem(kind, name, w.Field, text)
	}
}

// agents says which agents would be at two sites, and which would reset what they carry.
func (p *application) agents() {
	at := map[string]string{}
	for _, site := range slices.Sorted(maps.Keys(p.sites)) {
		for _, name := range p.sites[site].Agents {
			other, twice := at[name]
			if at[name] = site; !twice {
				continue
			}
			if !p.named[siteKind+" "+site] {
				other, site = site, other
			}
			p.problem(siteKind, site, "agents", fmt.Errorf("%w: agent %s serves site %q: an agent serves one site", orders.ErrConflict, name, other))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.x.agents)) {
		if !p.req.Force {
			p.leaves(name, at[name])
		}
	}
}

// leaves says what an agent's other site, or its site's other switches, would do to what it carries.
func (p *application) leaves(name, after string) {
	before, carries := p.x.siteOf(name), p.x.agents[name].load.GetSessions()
	what, known := events.Counted(int(carries), "connection"), p.x.agents[name].load != nil
	if !known { // this controller has just begun, or the agent goes on without one
		what = "what it carries, which is not known before it is heard"
	}
	place := p.x.switches.places[name]
	switch {
	case before == "" || known && carries == 0:
	case before != after:
		p.problem(siteKind, before, "agents", fmt.Errorf("%w: agent %s would leave site %q and reset %s: drain it first (scaffold boost agent drain %s) and wait, or use force",
			orders.ErrConflict, name, before, what, name))
	case place != nil && !slices.Contains(p.sites[before].Switches, place.Switch):
		p.problem(siteKind, before, "switches", fmt.Errorf("%w: agent %s is at switch %q, which would send it no more of %s: these would stand still: drain it first (scaffold boost agent drain %s) and wait, or use force",
			orders.ErrConflict, name, place.Switch, what, name))
	}
}

// effect makes all sites and entries what they are to be. What ends goes first, and is planned without: a lane keeps its
// number where its entry becomes other connections, and agents are to have seen it go before.
func (p *application) effect() {
	x := p.x
	if len(p.ending) > 0 {
		for _, name := range p.ending {
			delete(x.entries, name)
		}
		x.stale = true
		x.Flush()
	}
	x.sites = p.sites
	for _, name := range slices.Sorted(maps.Keys(p.sites)) {
		x.nameSwitches(p.sites[name])
	}
	x.leaveSwitches()
	x.entries, x.stale = p.entries, true
}
