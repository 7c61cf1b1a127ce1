package specs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/core/names"
)

// A field is one thing that a file can say of a service and that may change.
type field struct {
	name string
	said func(*apiv1.ServiceSpec) bool
	take func(*names.Record, *apiv1.ServiceSpec) // a spec that does not say it gives the default
	tell func(*apiv1.ServiceSpec, names.Record)  // the other way round, of what is not the default
	text func(names.Record) string               // "" is the default
}

var fields = []field{
	textField("failover", names.Reset, func(p *names.Policy) *string { return &p.Failover }, func(s *apiv1.ServiceSpec) **string { return &s.Failover }),
	textField("drain", names.Wait, func(p *names.Policy) *string { return &p.Drain }, func(s *apiv1.ServiceSpec) **string { return &s.Drain }),
	textField("ready", "", func(p *names.Policy) *string { return &p.Ready }, func(s *apiv1.ServiceSpec) **string { return &s.Ready }),
	textField("datagrams", "bound", func(p *names.Policy) *string { return &p.Datagrams }, func(s *apiv1.ServiceSpec) **string { return &s.Datagrams }),
	numberField("weight", 100, func(p *names.Policy) *uint32 { return &p.Weight }, func(s *apiv1.ServiceSpec) **uint32 { return &s.Weight }),
	numberField("dscp", 0, func(p *names.Policy) *uint32 { return &p.DSCP }, func(s *apiv1.ServiceSpec) **uint32 { return &s.Dscp }),
	inTime(numberField("patience", 0, func(p *names.Policy) *uint32 { return &p.Patience }, func(s *apiv1.ServiceSpec) **uint32 { return &s.PatienceMs })),
	boostField,
	listField("servers", func(a *names.Access) *[]string { return &a.Servers }, func(s *apiv1.ServiceSpec) **apiv1.StringList { return &s.Servers }),
	listField("allow", func(a *names.Access) *[]string { return &a.Allow }, func(s *apiv1.ServiceSpec) **apiv1.StringList { return &s.Allow }),
}

// boostField says whether agents of boost carry connections to the service.
var boostField = field{
	name: "boost",
	said: func(s *apiv1.ServiceSpec) bool { return s.Boost != nil },
	take: func(r *names.Record, s *apiv1.ServiceSpec) { r.Policy.Boost = s.GetBoost() },
	tell: func(s *apiv1.ServiceSpec, r names.Record) { s.Boost = &r.Policy.Boost },
	text: func(r names.Record) string {
		if r.Policy.Boost {
			return "on"
		}
		return ""
	},
}

func textField(name, usual string, of func(*names.Policy) *string, in func(*apiv1.ServiceSpec) **string) field {
	return field{
		name: name,
		said: func(s *apiv1.ServiceSpec) bool { return *in(s) != nil },
		take: func(r *names.Record, s *apiv1.ServiceSpec) {
			if *of(&r.Policy) = ""; *in(s) != nil {
				*of(&r.Policy) = strings.TrimSpace(**in(s))
			}
		},
		tell: func(s *apiv1.ServiceSpec, r names.Record) { *in(s) = of(&r.Policy) },
		text: func(r names.Record) string { return unless(*of(&r.Policy), usual) },
	}
}

func numberField(name string, usual uint32, of func(*names.Policy) *uint32, in func(*apiv1.ServiceSpec) **uint32) field {
	return field{
		name: name,
		said: func(s *apiv1.ServiceSpec) bool { return *in(s) != nil },
		take: func(r *names.Record, s *apiv1.ServiceSpec) {
			if *of(&r.Policy) = 0; *in(s) != nil {
				*of(&r.Policy) = **in(s)
			}
		},
		tell: func(s *apiv1.ServiceSpec, r names.Record) { *in(s) = of(&r.Policy) },
		text: func(r names.Record) string {
			return unless(events.Number(cmp.Or(*of(&r.Policy), usual)), events.Number(usual))
		},
	}
}

// inTime shows a patience as people write it.
func inTime(f field) field {
	f.text = func(r names.Record) string { return unless(r.Policy.Waits().String(), "0s") }
	return f
}

func listField(name string, of func(*names.Access) *[]string, in func(*apiv1.ServiceSpec) **apiv1.StringList) field {
	return field{
		name: name,
		said: func(s *apiv1.ServiceSpec) bool { return *in(s) != nil },
		take: func(r *names.Record, s *apiv1.ServiceSpec) { *of(&r.Access) = (*in(s)).GetItems() },
		tell: func(s *apiv1.ServiceSpec, r names.Record) { *in(s) = &apiv1.StringList{Items: *of(&r.Access)} },
		text: func(r names.Record) string {
			return strings.Join(slices.Compact(slices.Sorted(slices.Values(*of(&r.Access)))), ", ")
		},
	}
}

func unless(value, usual string) string {
	if value == usual {
		return ""
	}
	return value
}

// check says what is wrong with one field of a spec.
func (f field) check(s *apiv1.ServiceSpec) error {
	var r names.Record
	f.take(&r, s)
	if err := r.Policy.Check(); err != nil {
		return err
	}
	if (f.name == "servers" || f.name == "allow") && f.said(s) && f.text(r) == "" {
		return fmt.Errorf("%s: an empty list: leave it out, or for allow write [%s] if nobody is meant", f.name, names.Nobody)
	}
	return r.Access.Check()
}

// Of is a service as files have it: what is not the default, and the weights that hosts were given.
func Of(r names.Record, weights map[string]uint32) *apiv1.ServiceSpec {
	id := r.ID.String()
	s := &apiv1.ServiceSpec{Name: r.Name, Sid: &id}
	if len(r.Access.Key) > 0 {
		key := names.FormatKey(r.Access.Key)
		s.Key = &key
	}
	for _, f := range fields {
		if f.text(r) != "" {
			f.tell(s, r)
		}
	}
	if len(weights) > 0 {
		s.Weights = weights
	}
	return s
}
