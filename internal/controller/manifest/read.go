package manifest

import (
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/permit"
	"scaffold.dev/scaffold/internal/yamlfile"
	"scaffold.dev/scaffold/sid"
)

// place is where something stands.
type place struct {
	path         string
	line, column int
}

// A reader takes one file apart, and adds to the set.
type reader struct {
	yamlfile.Reader
	set  *Set
	keys func(name string) ([]byte, error) // reads a key's file beside the manifest
}

func (r *reader) documents(text []byte) {
	for _, doc := range r.Trees(text) {
		r.set.spoken = true
		r.Object(doc, "a file of services and boost", yamlfile.Fields{"services": r.services, "boost": r.boost})
	}
}

func (r *reader) services(n *yamlfile.Node) {
	if n.Tag == "!!null" {
		return // `services:` alone: none
	}
	r.Each(n, "services", func(key, value *yamlfile.Node) {
		name, err := names.CleanService(key.Value, "")
		if err != nil {
			r.At(key, "%v", err)
			return
		}
		if first, twice := r.set.at[name]; twice {
			r.At(key, "service %s stands also in %s:%d", name, first[""].path, first[""].line)
			return
		}
		s := &apiv1.ServiceSpec{Name: name}
		r.set.Services = append(r.set.Services, s)
		r.set.at[name] = map[string]place{"": r.place(key)}
		if value.Tag != "!!null" { // `web:` alone: nothing is said of it
			r.service(s, value)
		}
	})
}

func (r *reader) place(n *yamlfile.Node) place { return place{r.Path, n.Line, n.Column} }

// service reads one. Each field is checked for itself, by what the controller checks it with.
func (r *reader) service(s *apiv1.ServiceSpec, n *yamlfile.Node) {
	known := yamlfile.Fields{}
	for _, f := range fields {
		known[f.name] = func(n *yamlfile.Node) {
			r.set.at[s.Name][f.name] = r.place(n)
			f.read(r, s, n)
		}
	}
	r.Object(n, "service "+s.Name, known)
}

// policy reads a word of the policy and checks it.
func (r *reader) policy(n *yamlfile.Node, what string, set func(*names.Policy, string)) *string {
	text := ""
	if n.Tag != "!!null" {
		text = r.Text(n, what)
	}
	var p names.Policy
	set(&p, strings.TrimSpace(text))
	if err := p.Check(); err != nil {
		r.At(n, "%v", err)
	}
	return &text
}

func (r *reader) count(n *yamlfile.Node, what string, low, high int) *uint32 {
	v := uint32(r.Integer(n, what, low, high))
	return &v
}

func (r *reader) patience(n *yamlfile.Node) *uint32 {
	ms, err := names.ParsePatience(r.Text(n, "patience"))
	if err != nil {
		r.At(n, "%v", err)
	}
	return &ms
}

// hosts reads a list; check says what is wrong with an entry.
func (r *reader) hosts(n *yamlfile.Node, what, empty string, check func(string) error) *apiv1.StringList {
	list, bad := &apiv1.StringList{}, len(r.Errs)
	seen := map[string]int{}
	r.List(n, what, func(n *yamlfile.Node) {
		text := r.Text(n, what)
		if first, twice := seen[text]; twice {
			r.At(n, "%s: %q stands twice (first on line %d)", what, text, first)
		}
		seen[text] = n.Line
		if err := check(text); err != nil {
			r.At(n, "%v", err)
		}
		list.Items = append(list.Items, text)
	})
	if len(list.Items) == 0 && len(r.Errs) == bad {
		r.At(n, "%s: an empty list: %s", what, empty)
	}
	return list
}

func (r *reader) weights(n *yamlfile.Node, s *apiv1.ServiceSpec) {
	s.Weights = map[string]uint32{}
	r.Each(n, "weights", func(key, value *yamlfile.Node) {
		r.set.at[s.Name]["weights."+key.Value] = r.place(key)
		if err := (names.Access{Servers: []string{key.Value}}).Check(); err != nil {
			r.At(key, "weights: %q: want a host's name", key.Value)
		}
		s.Weights[key.Value] = uint32(r.Integer(value, "weights", 0, names.MaxWeight))
	})
}

// key reads a public key, or the name of a file that has it.
func (r *reader) key(n *yamlfile.Node) *string {
	text := r.Text(n, "key")
	if _, err := names.ParseKey(text); err == nil && text != "" {
		return &text
	}
	if _, err := names.ParseKey(text); strings.HasPrefix(text, "ed25519:") {
		r.At(n, "%v", err)
		return &text
	} else if text == "" {
		r.At(n, "key: leave it out, or name a file or a key")
		return &text
	}
	pem, err := r.keys(text)
	if err == nil {
		var public []byte
		if public, err = permit.ParsePublic(pem); err == nil {
			text = names.FormatKey(public)
			return &text
		}
	}
	r.At(n, "key: %q: %v", text, err)
	return &text
}

func (r *reader) sid(n *yamlfile.Node) *string {
	text := r.Text(n, "sid")
	if _, err := sid.ParseServiceID(text); err != nil {
		r.At(n, "%v", err)
	}
	return &text
}
