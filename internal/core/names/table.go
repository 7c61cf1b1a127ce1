package names

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"scaffold.dev/scaffold/sid"
)

// A Record is one service.
type Record struct {
	Name    string        `json:"name"`
	ID      sid.ServiceID `json:"id"`
	Policy  Policy        `json:"policy"`
	Version uint64        `json:"version"`         // grows with each change of the record
	Created int64         `json:"created_unix_ms"` // for people; nothing is decided by it
	Access  Access        `json:"access,omitzero"`
	Applied *Applied      `json:"applied,omitempty"` // nil: not by apply
}

// What callers tell apart.
var (
	ErrExists  = errors.New("exists already")
	ErrUnknown = errors.New("no such service")
	ErrInvalid = errors.New("not valid")
)

// A Table holds the records of a network. Its owner uses it from one goroutine.
type Table struct {
	domain string
	byName map[string]Record
	byID   map[sid.ServiceID]string
	suffix map[sid.Suffix]string
}

// NewTable returns an empty directory of names under domain.
func NewTable(domain string) *Table {
	return &Table{domain: domain, byName: map[string]Record{}, byID: map[sid.ServiceID]string{}, suffix: map[sid.Suffix]string{}}
}

// Check says whether the record may be added, and cleans its name. Suffixes are unique in the
// network whatever their ssID: the suffix is all of a serviceID that reaches a host.
func (t *Table) Check(r Record) (Record, error) {
	name, err := CleanService(WithoutDomain(r.Name, t.domain), t.domain)
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return r, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	r.Name = name
	if have, ok := t.byName[name]; ok {
		return r, fmt.Errorf("service %s %w as %v: remove it first, or choose another name", name, ErrExists, have.ID)
	}
	if !r.ID.Valid() {
		return r, fmt.Errorf("%w: service %s: serviceID %v: ssID 0 and suffixes below %#x or with the top bit set are reserved", ErrInvalid, name, r.ID, sid.ReservedSuffixes)
	}
	if other, ok := t.suffix[r.ID.Suffix]; ok {
		return r, fmt.Errorf("service %s: suffix collision: %v %w in service %s (%v), and hosts tell services apart by the suffix alone: choose another serviceID", name, r.ID.Suffix, ErrExists, other, t.byName[other].ID)
	}
	return r, nil
}

// check says what is wrong with a record for itself.
func (r Record) check() error {
	if err := r.Policy.Check(); err != nil {
		return err
	}
	if err := r.Access.Check(); err != nil {
		return err
	}
	if want := sid.Certified(r.Access.Key); len(r.Access.Key) > 0 && r.ID.Suffix != want {
		return fmt.Errorf("serviceID %v is not that of its key, whose suffix is %v: a service has its key from the beginning", r.ID, want)
	}
	return nil
}

// Add adds a record that Check accepted.
func (t *Table) Add(r Record) error {
	r, err := t.Check(r)
	if err == nil {
		t.put(r)
	}
	return err
}

func (t *Table) put(r Record) {
	t.byName[r.Name] = r
	t.byID[r.ID] = r.Name
	t.suffix[r.ID.Suffix] = r.Name
}

// With returns the record as it is after a change of anything but its name and serviceID; Replace makes it so.
func (t *Table) With(name string, p Policy, a Access, mark *Applied) (Record, error) {
	r, err := t.Named(name)
	if err != nil {
		return r, err
	}
	r.Policy, r.Access, r.Applied = p, a, mark
	if err := r.check(); err != nil {
		return r, fmt.Errorf("%w: service %s: %w", ErrInvalid, r.Name, err)
	}
	r.Version++
	return r, nil
}

// Replace puts a newer version of a record in the place of the one of its name and serviceID.
func (t *Table) Replace(r Record) error {
	have, ok := t.byName[r.Name]
	switch {
	case !ok:
		return fmt.Errorf("service %s: %w", r.Name, ErrUnknown)
	case have.ID != r.ID:
		return fmt.Errorf("service %s is %v: a name keeps its serviceID for life, %v is refused", r.Name, have.ID, r.ID)
	case r.Version <= have.Version:
		return fmt.Errorf("service %s is at version %d: version %d is old", r.Name, have.Version, r.Version)
	}
	t.put(r)
	return nil
}

// Remove forgets a service.
func (t *Table) Remove(name string) {
	if r, ok := t.byName[name]; ok {
		delete(t.byName, name)
		delete(t.byID, r.ID)
		delete(t.suffix, r.ID.Suffix)
	}
}

// Named finds a record by name, written in any way that Clean accepts, with its domain or without. Services whose name
// ends like the domain are of before that was taken off.
func (t *Table) Named(name string) (Record, error) {
	clean, err := CleanService(name, t.domain)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	r, ok := t.byName[clean]
	if !ok {
		clean = WithoutDomain(clean, t.domain)
		r, ok = t.byName[clean]
	}
	if !ok {
		return r, fmt.Errorf("service %s: %w: scaffold service ls shows those that exist", clean, ErrUnknown)
	}
	return r, nil
}

// Has reports whether there is a service of exactly that name.
func (t *Table) Has(name string) bool {
	_, ok := t.byName[name]
	return ok
}

// ByID finds a record by serviceID.
func (t *Table) ByID(id sid.ServiceID) (Record, bool) {
	name, ok := t.byID[id]
	return t.byName[name], ok
}

// All lists the records by name.
func (t *Table) All() []Record {
	list := make([]Record, 0, len(t.byName))
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		list = append(list, t.byName[name])
	}
	return list
}

// Allocate returns a serviceID of the service system ss that is free, from random bits.
func (t *Table) Allocate(ss uint32, random func() uint64) sid.ServiceID {
	for {
		s := sid.Suffix(random() >> 1)
		if _, taken := t.suffix[s]; !taken && s.Valid() {
			return sid.ServiceID{SS: ss, Suffix: s}
		}
	}
}
