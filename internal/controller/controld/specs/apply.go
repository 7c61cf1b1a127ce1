// Package specs is services as files say them: what is to be changed for a network to have what the files want, and what
// has changed, in words.
package specs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

// DefaultOwner is whose services are that were applied without saying whose.
const DefaultOwner = "apply"

// A Catalogue is the services that there are, and how they are changed.
type Catalogue interface {
	All() []names.Record
	Has(name string) bool
	Named(name string) (names.Record, error)
	With(name string, policy names.Policy, access names.Access, mark *names.Applied) (names.Record, error)
	New(name, id string, policy names.Policy, access names.Access) (names.Record, error)
	Holdable(names.Policy) error // nil where the network can keep it
	Override(service sid.ServiceID, host string) store.Override
	Instances(sid.ServiceID) int
	Nameless(hosts, allow []string, knows func(service string) bool) []string // of which nothing bears the name
	Address(sid.ServiceID) string
	LastOrder(service string) string // who changed it last
	Removal(names.Record) []store.Change

	Add(names.Record)
	Set(names.Record, bool) // a new version; false: its mark alone is new
	Remove(names.Record)
	SetOverride(store.Override)
}

// A Step is what one service, or site or entry of boost, of an Apply comes to.
type Step struct {
	Change  *apiv1.ServiceChange
	Records []store.Change
	Effect  func()
	Says    []*apiv1.Event
}

// A change is what becomes of one service.
type change struct {
	records []store.Change
	effect  func()
	says    []*apiv1.Event
}

// A Plan is what an Apply comes to.
type Plan struct {
	all    Catalogue
	domain string
	req    *apiv1.ApplyRequest
	resp   *apiv1.ApplyResponse
	steps  []Step
	taken  map[sid.Suffix]string // by services that are to be made
}

// Make finds out what is to be done for a request, and all that is wrong, and writes it into the answer. It changes
// nothing: the steps do.
func Make(all Catalogue, domain string, req *apiv1.ApplyRequest, resp *apiv1.ApplyResponse) []Step {
	p := &Plan{all: all, domain: domain, req: req, resp: resp}
	p.plan()
	AsPlanned(req, resp, func(kind string) bool { return kind == "" }, func(_, name string) string { return all.LastOrder(name) })
	return p.steps
}

func (p *Plan) problem(service, field string, refused bool, err error) {
	text := strings.TrimPrefix(err.Error(), names.ErrInvalid.Error()+": ")
	p.resp.Problems = append(p.resp.Problems, &apiv1.SpecProblem{Service: service, Field: field, Text: text, Refused: refused})
}

func (p *Plan) warn(format string, args ...any) {
	p.resp.Warnings = append(p.resp.Warnings, fmt.Sprintf(format, args...))
}

// plan finds out what is to be done, and all that is wrong.
func (p *Plan) plan() {
	p.req.Owner = cmp.Or(p.req.Owner, DefaultOwner)
	p.taken = make(map[sid.Suffix]string)
	if owner, err := names.Clean(p.req.Owner, ""); err != nil || owner != p.req.Owner {
		p.problem("", "", false, fmt.Errorf("owner %.60q: want letters, digits and hyphens, in lower case", p.req.Owner))
	}
	named := make(map[string]bool)
	for _, s := range p.req.Services {
		clean, err := names.CleanService(s.Name, p.domain)
		switch {
		case err != nil:
			p.problem(s.Name, "", false, err)
			continue
		case clean != names.WithoutDomain(clean, p.domain) && !p.all.Has(clean):
			p.problem(s.Name, "", false, fmt.Errorf("service %s: the network's domain comes behind each name by itself: write %s", clean, names.WithoutDomain(clean, p.domain)))
			continue
		case named[clean]:
			p.problem(s.Name, "", false, fmt.Errorf("service %s is named twice", clean))
			continue
		}
		s.Name, named[clean] = clean, true
		p.one(s)
	}
	if p.req.Prune {
		p.prune(named)
	}
	slices.SortFunc(p.resp.Changes, func(a, b *apiv1.ServiceChange) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(p.resp.Warnings)
	p.resp.Warnings = slices.Compact(p.resp.Warnings)
}

// one is a service that is named.
func (p *Plan) one(s *apiv1.ServiceSpec) {
	before := len(p.resp.Problems)
	for _, f := range fields {
		if err := f.check(s); err != nil {
			p.problem(s.Name, f.name, false, err)
		}
	}
	for host, w := range s.Weights {
		if w > names.MaxWeight {
			p.problem(s.Name, "weights."+host, false, fmt.Errorf("weight %d: want 0 to %d", w, names.MaxWeight))
		}
		if clean, err := names.Clean(host, ""); err != nil || clean != host {
			p.problem(s.Name, "weights."+host, false, fmt.Errorf("weights: %.60q: want a host's name", host))
		}
	}
	key, err := names.ParseKey(s.GetKey())
	if err != nil {
		p.problem(s.Name, "key", false, err)
	}
	if len(p.resp.Problems) > before {
		return
	}
	if r, err := p.all.Named(s.Name); err == nil {
		p.update(r, s, key)
	} else {
		p.create(s, key)
	}
	p.unknownNames(s)
}

// create makes a service.
func (p *Plan) create(s *apiv1.ServiceSpec, key []byte) {
	var like names.Record
	for _, f := range fields {
		f.take(&like, s)
	}
	like.Access.Key = key
	r, err := p.all.New(s.Name, s.GetSid(), like.Policy, like.Access)
	if err != nil {
		field := ""
		if p.all.Holdable(like.Policy) != nil {
			field = "failover"
		} else if s.Sid != nil {
			field = "sid"
		}
		p.problem(s.Name, field, p.all.Holdable(like.Policy) != nil, err)
		return
	}
	if other := p.taken[r.ID.Suffix]; other != "" {
		p.problem(s.Name, "sid", false, fmt.Errorf("service %s is to have the same: hosts tell services apart by the suffix alone", other))
		return
	}
	p.taken[r.ID.Suffix] = s.Name
	r.Applied = &names.Applied{Owner: p.req.Owner, Made: true, Fields: p.marks(s)}
	c := &apiv1.ServiceChange{Name: r.Name, Action: "create"}
	for _, f := range fields {
		if text := f.text(r); text != "" {
			c.Fields = append(c.Fields, &apiv1.FieldChange{Field: f.name, To: text})
		}
	}
	if len(key) > 0 {
		c.Fields = append(c.Fields, &apiv1.FieldChange{Field: "key", To: names.FormatKey(key)})
	}
	all := change{[]store.Change{store.PutService(r)}, func() { p.all.Add(r) }, []*apiv1.Event{Created(r, p.all.Address(r.ID))}}
	p.weigh(c, r, s, nil, &all)
	p.add(c, all)
}

// update changes one that is there, as far as it is to.
func (p *Plan) update(r names.Record, s *apiv1.ServiceSpec, key []byte) {
	mark := r.Applied
	switch {
	case s.Sid != nil && *s.Sid != r.ID.String():
		p.problem(s.Name, "sid", true, fmt.Errorf("service %s is %v: a name keeps its serviceID for life", s.Name, r.ID))
	case s.Key != nil && string(key) != string(r.Access.Key):
		p.problem(s.Name, "key", true, fmt.Errorf("service %s has another key, or none: its serviceID follows from it, so it is for life: remove the service first", s.Name))
	case mark != nil && mark.Owner != p.req.Owner && !p.req.Force:
		p.problem(s.Name, "", true, fmt.Errorf("service %s belongs to the files of %s: take it out of one of the two, or use force to take it over", s.Name, mark.Owner))
	default:
		p.merge(r, s)
	}
}

func (p *Plan) merge(r names.Record, s *apiv1.ServiceSpec) {
	mark, now := r.Applied, r
	c := &apiv1.ServiceChange{Name: r.Name, Action: "none"}
	for _, f := range fields {
		last, ours := mark.Last(f.name)
		byHand := ours && last != f.text(r)
		if !f.said(s) && (!ours || byHand) {
			continue // somebody else's
		}
		if f.take(&now, s); f.text(now) != f.text(r) {
			c.Fields = append(c.Fields, &apiv1.FieldChange{Field: f.name, From: f.text(r), To: f.text(now), Why: Why(f.said(s), byHand)})
		}
	}
	if err := p.all.Holdable(now.Policy); err != nil {
		p.problem(s.Name, "failover", true, err)
		return
	}
	now.Applied = &names.Applied{Owner: p.req.Owner, Made: mark != nil && mark.Made, Fields: p.marks(s)}
	changed, remarked := len(c.Fields) > 0, !now.Applied.Same(mark)
	all := change{effect: func() {}}
	if changed || remarked {
		next, err := p.all.With(r.Name, now.Policy, now.Access, now.Applied)
		if err != nil {
			p.problem(s.Name, "", false, err)
			return
		}
		all.records = append(all.records, store.PutService(next))
		all.says = append(all.says, marked(r, next, c.Fields))
		reworded := len(c.Fields) > 0
		all.effect = func() { p.all.Set(next, reworded) }
	}
	p.weigh(c, r, s, mark, &all)
	switch {
	case len(c.Fields) > 0:
		c.Action = "update"
	case r.Owner() != p.req.Owner:
		c.Action = "adopt"
	}
	p.add(c, all)
}

// Why tells of a change that the file's words do not explain.
func Why(said, byHand bool) string {
	switch {
	case !said:
		return "the files do not say it any more"
	case byHand:
		return "changed by hand since the last apply"
	}
	return ""
}

// weigh adds what becomes of hosts' weights.
func (p *Plan) weigh(c *apiv1.ServiceChange, r names.Record, s *apiv1.ServiceSpec, mark *names.Applied, all *change) {
	hosts := maps.Clone(s.Weights)
	if hosts == nil {
		hosts = make(map[string]uint32)
	}
	for key, last := range markedWeights(mark) {
		o := p.all.Override(r.ID, key)
		if _, said := hosts[key]; !said && o.Set && events.Number(o.Weight) == last {
			hosts[key] = 0 // taken back
		}
	}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		was := p.all.Override(r.ID, host)
		o := was
		o.Service, o.Host = r.ID, host
		o.Weight, o.Set = s.Weights[host], hasKey(s.Weights, host)
		if o == was || o.Set == was.Set && o.Weight == was.Weight {
			continue
		}
		last, ours := mark.Last("weights." + host)
		c.Fields = append(c.Fields, &apiv1.FieldChange{Field: "weights." + host, From: weightText(was), To: weightText(o),
			Why: Why(o.Set, ours && last != weightText(was))})
		record := store.PutOverride(o)
		if !o.Set && !o.Drain {
			record = store.DeleteOverride(o)
		}
		all.records = append(all.records, record)
		all.says = append(all.says, events.Changed(events.New("service.weight", r.Name, fmt.Sprintf("weight of %s is %s", o.Host, cmp.Or(weightText(o), "the service's")),
			"host", o.Host, "weight", events.Number(o.Weight)), overrideChanges(was, o)...))
		before := all.effect
		all.effect = func() {
			before()
			p.all.SetOverride(o)
		}
	}
}

func hasKey(m map[string]uint32, key string) bool { _, ok := m[key]; return ok }

func weightText(o store.Override) string {
	if !o.Set {
		return ""
	}
	return events.Number(o.Weight)
}

func markedWeights(mark *names.Applied) map[string]string {
	all := make(map[string]string)
	if mark != nil {
		for field, text := range mark.Fields {
			if host, ok := strings.CutPrefix(field, "weights."); ok {
				all[host] = text
			}
		}
	}
	return all
}

// marks is what the request says of a service, as text.
func (p *Plan) marks(s *apiv1.ServiceSpec) map[string]string {
	all := make(map[string]string)
	var r names.Record
	for _, f := range fields {
		if f.said(s) {
			f.take(&r, s)
			all[f.name] = f.text(r)
		}
	}
	for host, w := range s.Weights {
		all["weights."+host] = events.Number(w)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// prune removes what the owner's files made and no longer name, and lets go of what they only changed.
func (p *Plan) prune(named map[string]bool) {
	for _, r := range p.all.All() {
		if r.Owner() != p.req.Owner || named[r.Name] {
			continue
		}
		if !r.Applied.Made {
			free, err := p.all.With(r.Name, r.Policy, r.Access, nil)
			if err == nil {
				p.add(&apiv1.ServiceChange{Name: r.Name, Action: "release"}, change{[]store.Change{store.PutService(free)}, func() { p.all.Set(free, false) },
					[]*apiv1.Event{marked(r, free, nil)}})
			}
			continue
		}
		if live := p.all.Instances(r.ID); live > 0 && !p.req.Force {
			p.problem(r.Name, "", true, fmt.Errorf("service %s is no longer named and still has %s: stop what serves it first, or use force", r.Name, events.Counted(live, "instance")))
			continue
		}
		p.add(&apiv1.ServiceChange{Name: r.Name, Action: "remove"}, change{p.all.Removal(r), func() { p.all.Remove(r) }, []*apiv1.Event{Removed(r)}})
	}
}

func (p *Plan) add(c *apiv1.ServiceChange, all change) {
	p.resp.Changes = append(p.resp.Changes, c)
	if len(all.records) > 0 {
		p.steps = append(p.steps, Step{c, all.records, all.effect, all.says})
	}
}

// unknownNames warns of names that nothing bears: they may come yet, or were mistyped.
func (p *Plan) unknownNames(s *apiv1.ServiceSpec) {
	hosts := append(slices.Clone(s.Servers.GetItems()), slices.Collect(maps.Keys(s.Weights))...)
	for _, text := range p.all.Nameless(hosts, s.Allow.GetItems(), p.knows) {
		p.warn("service %s: %s", s.Name, text)
	}
}

func (p *Plan) knows(service string) bool {
	_, err := p.all.Named(service)
	return err == nil || slices.ContainsFunc(p.req.Services, func(s *apiv1.ServiceSpec) bool { return s.Name == service })
}

// AsPlanned refuses what is not what somebody has looked at before, of the kinds of changes that are ours. last says who
// was the last to change such.
func AsPlanned(req *apiv1.ApplyRequest, resp *apiv1.ApplyResponse, ours func(kind string) bool, last func(kind, name string) string) {
	if !req.Planned || len(resp.Problems) > 0 {
		return
	}
	refuse := func(c *apiv1.ServiceChange, format string, args ...any) {
		resp.Problems = append(resp.Problems, &apiv1.SpecProblem{Kind: c.Kind, Service: c.Name, Refused: true,
			Text: cmp.Or(c.Kind, "service") + " " + c.Name + ": " + fmt.Sprintf(format, args...)})
	}
	type key struct{ kind, name string }
	agreed := make(map[key]string)
	for _, c := range req.Plan {
		if ours(c.Kind) {
			agreed[key{c.Kind, c.Name}] = inWords(c)
		}
	}
	for _, c := range resp.Changes {
		of := key{c.Kind, c.Name}
		if now := inWords(c); ours(c.Kind) && now != cmp.Or(agreed[of], "none") {
			refuse(c, "what would be done now (%s) is not what the plan says (%s): %s: make the plan again (`scaffold diff -o json`) and look at it",
				now, cmp.Or(agreed[of], "none"), last(c.Kind, c.Name))
		}
		delete(agreed, of)
	}
	for _, of := range slices.SortedFunc(maps.Keys(agreed), func(a, b key) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) }) {
		if agreed[of] != "none" {
			refuse(&apiv1.ServiceChange{Kind: of.kind, Name: of.name}, "the plan has %s, and nothing would be done now: %s: make the plan again (`scaffold diff -o json`)",
				agreed[of], last(of.kind, of.name))
		}
	}
}

// inWords is what a change does, without why.
func inWords(c *apiv1.ServiceChange) string {
	text := c.Action
	if len(c.Fields) > 0 {
		text += " " + Told(c.Fields)
	}
	return text
}
