package controld

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/sid"
)

// An application is one Apply at work. All but carrying it out happens in the loop.
type application struct {
	n     *network
	req   *apiv1.ApplyRequest
	resp  *apiv1.ApplyResponse
	steps []step
	taken map[sid.Suffix]string // by services that are to be made
}

func (p *application) problem(service, field string, refused bool, err error) {
	text := strings.TrimPrefix(err.Error(), names.ErrInvalid.Error()+": ")
	p.resp.Problems = append(p.resp.Problems, &apiv1.SpecProblem{Service: service, Field: field, Text: text, Refused: refused})
}

func (p *application) warn(format string, args ...any) {
	p.resp.Warnings = append(p.resp.Warnings, fmt.Sprintf(format, args...))
}

// plan finds out what is to be done, and all that is wrong.
func (p *application) plan() {
	p.req.Owner = cmp.Or(p.req.Owner, DefaultOwner)
	p.taken = make(map[sid.Suffix]string)
	if owner, err := names.Clean(p.req.Owner, ""); err != nil || owner != p.req.Owner {
		p.problem("", "", false, fmt.Errorf("owner %.60q: want letters, digits and hyphens, in lower case", p.req.Owner))
	}
	named := make(map[string]bool)
	for _, s := range p.req.Services {
		clean, err := names.Clean(s.Name, p.n.cfg.Domain)
		switch {
		case err != nil:
			p.problem(s.Name, "", false, err)
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
func (p *application) one(s *apiv1.ServiceSpec) {
	before := len(p.resp.Problems)
	for _, f := range fields {
		if err := f.check(s); err != nil {
			p.problem(s.Name, f.name, false, err)
		}
	}
	for host, w := range s.Weights {
		if w > plan.MaxWeight {
			p.problem(s.Name, "weights."+host, false, fmt.Errorf("weight %d: want 0 to %d", w, plan.MaxWeight))
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
	if r, err := p.n.names.Named(s.Name); err == nil {
		p.update(r, s, key)
	} else {
		p.create(s, key)
	}
	p.strangers(s)
}

// create makes a service.
func (p *application) create(s *apiv1.ServiceSpec, key []byte) {
	var like names.Record
	for _, f := range fields {
		f.take(&like, s)
	}
	like.Access.Key = key
	r, err := p.n.newRecord(s.Name, 0, s.GetSid(), like.Policy, like.Access)
	if err != nil {
		field := ""
		if p.n.holdable(like.Policy) != nil {
			field = "failover"
		} else if s.Sid != nil {
			field = "sid"
		}
		p.problem(s.Name, field, p.n.holdable(like.Policy) != nil, err)
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
	records := []store.Change{store.PutService(r)}
	effect := func() { p.n.addService(r) }
	p.weigh(c, r, s, nil, &records, &effect)
	p.add(c, records, effect)
}

// update changes one that is there, as far as it is to.
func (p *application) update(r names.Record, s *apiv1.ServiceSpec, key []byte) {
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

func (p *application) merge(r names.Record, s *apiv1.ServiceSpec) {
	mark, now := r.Applied, r
	c := &apiv1.ServiceChange{Name: r.Name, Action: "none"}
	for _, f := range fields {
		last, ours := mark.Last(f.name)
		byHand := ours && last != f.text(r)
		if !f.said(s) && (!ours || byHand) {
			continue // somebody else's
		}
		if f.take(&now, s); f.text(now) != f.text(r) {
			c.Fields = append(c.Fields, &apiv1.FieldChange{Field: f.name, From: f.text(r), To: f.text(now), Why: why(f.said(s), byHand)})
		}
	}
	if err := p.n.holdable(now.Policy); err != nil {
		p.problem(s.Name, "failover", true, err)
		return
	}
	now.Applied = &names.Applied{Owner: p.req.Owner, Made: mark != nil && mark.Made, Fields: p.marks(s)}
	changed, remarked := len(c.Fields) > 0, !now.Applied.Same(mark)
	var records []store.Change
	effect := func() {}
	if changed || remarked {
		r, err := p.n.names.With(r.Name, now.Policy, now.Access, now.Applied)
		if err != nil {
			p.problem(s.Name, "", false, err)
			return
		}
		records = append(records, store.PutService(r))
		effect = func() { p.n.reword(r, c.Fields) }
	}
	p.weigh(c, r, s, mark, &records, &effect)
	switch {
	case len(c.Fields) > 0:
		c.Action = "update"
	case r.Owner() != p.req.Owner:
		c.Action = "adopt"
	}
	p.add(c, records, effect)
}

// why tells of a change that the file's words do not explain.
func why(said, byHand bool) string {
	switch {
	case !said:
		return "the files do not say it any more"
	case byHand:
		return "changed by hand since the last apply"
	}
	return ""
}

// weigh adds what becomes of hosts' weights.
func (p *application) weigh(c *apiv1.ServiceChange, r names.Record, s *apiv1.ServiceSpec, mark *names.Applied, records *[]store.Change, effect *func()) {
	hosts := maps.Clone(s.Weights)
	if hosts == nil {
		hosts = make(map[string]uint32)
	}
	for key, last := range markedWeights(mark) {
		o := p.n.overrides[overrideKey{r.ID, key}]
		if _, said := hosts[key]; !said && o.Set && uitoa(o.Weight) == last {
			hosts[key] = 0 // taken back
		}
	}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		was := p.n.overrides[overrideKey{r.ID, host}]
		o := was
		o.Service, o.Host = r.ID, host
		o.Weight, o.Set = s.Weights[host], hasKey(s.Weights, host)
		if o == was || o.Set == was.Set && o.Weight == was.Weight {
			continue
		}
		last, ours := mark.Last("weights." + host)
		c.Fields = append(c.Fields, &apiv1.FieldChange{Field: "weights." + host, From: weightText(was), To: weightText(o),
			Why: why(o.Set, ours && last != weightText(was))})
		record := store.PutOverride(o)
		if !o.Set && !o.Drain {
			record = store.DeleteOverride(o)
		}
		*records = append(*records, record)
		before := *effect
		*effect = func() {
			before()
			p.n.setOverride(o)
			p.n.event("service.weight", r.Name, fmt.Sprintf("weight of %s is %s", o.Host, cmp.Or(weightText(o), "the service's")), "host", o.Host, "weight", uitoa(o.Weight))
		}
	}
}

func hasKey(m map[string]uint32, key string) bool { _, ok := m[key]; return ok }

func weightText(o store.Override) string {
	if !o.Set {
		return ""
	}
	return uitoa(o.Weight)
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
func (p *application) marks(s *apiv1.ServiceSpec) map[string]string {
	all := make(map[string]string)
	var r names.Record
	for _, f := range fields {
		if f.said(s) {
			f.take(&r, s)
			all[f.name] = f.text(r)
		}
	}
	for host, w := range s.Weights {
		all["weights."+host] = uitoa(w)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// prune removes what the owner's files made and no longer name, and lets go of what they only changed.
func (p *application) prune(named map[string]bool) {
	for _, r := range p.n.names.All() {
		if r.Owner() != p.req.Owner || named[r.Name] {
			continue
		}
		if !r.Applied.Made {
			free, err := p.n.names.With(r.Name, r.Policy, r.Access, nil)
			if err == nil {
				p.add(&apiv1.ServiceChange{Name: r.Name, Action: "release"}, []store.Change{store.PutService(free)}, func() { p.n.reword(free, nil) })
			}
			continue
		}
		if live := len(p.n.plan.Instances(r.ID)); live > 0 && !p.req.Force {
			p.problem(r.Name, "", true, fmt.Errorf("service %s is no longer named and still has %d instances: stop or drain them first, or use force", r.Name, live))
			continue
		}
		p.add(&apiv1.ServiceChange{Name: r.Name, Action: "remove"}, p.n.removal(r), func() { p.n.removeService(r) })
	}
}

func (p *application) add(c *apiv1.ServiceChange, records []store.Change, effect func()) {
	p.resp.Changes = append(p.resp.Changes, c)
	if len(records) > 0 {
		p.steps = append(p.steps, step{c, records, effect})
	}
}

// strangers warns of names that nothing bears: they may come yet, or were mistyped.
func (p *application) strangers(s *apiv1.ServiceSpec) {
	hosts := append(slices.Clone(s.Servers.GetItems()), slices.Collect(maps.Keys(s.Weights))...)
	for _, text := range s.Allow.GetItems() {
		a, err := names.ParseAllowed(text)
		if err == nil && a.Host != "" && text != names.Nobody {
			hosts = append(hosts, a.Host)
		}
		if err == nil && a.Service != "" && !p.knows(a.Service) {
			p.warn("service %s: allow: there is no service %s", s.Name, a.Service)
		}
	}
	for _, h := range hosts {
		if p.n.hosts[h] == nil {
			p.warn("service %s: no host %s has ever joined", s.Name, h)
		}
	}
}

func (p *application) knows(service string) bool {
	_, err := p.n.names.Named(service)
	return err == nil || slices.ContainsFunc(p.req.Services, func(s *apiv1.ServiceSpec) bool { return s.Name == service })
}

// reword puts a new version in its place; one whose mark alone is new is nobody's news.
func (n *network) reword(r names.Record, changed []*apiv1.FieldChange) {
	if len(changed) == 0 {
		_ = n.names.Replace(r) // it passed With
		return
	}
	kind, list := "service.policy", make([]string, 0, len(changed))
	for _, f := range changed {
		if f.Field == "servers" || f.Field == "allow" {
			kind = "service.access"
		}
		list = append(list, f.Field)
	}
	n.setRecord(r, kind, "changed by "+r.Owner()+"'s files: "+strings.Join(list, ", "))
}

// removal is what the store forgets with a service.
func (n *network) removal(r names.Record) []store.Change {
	records := []store.Change{store.DeleteService(r.ID)}
	for key, o := range n.overrides {
		if key.service == r.ID {
			records = append(records, store.DeleteOverride(o))
		}
	}
	return records
}
