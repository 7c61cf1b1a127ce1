package store

import (
	"encoding/json"
	"fmt"
	"strings"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// Registrations are a part of what a host serves, as it said last. With them its instances outlive the controller, also
// when its daemon is slow to come back. One host may have more of them than etcd takes in a record, so they come in pages.
type Registrations struct {
	Form   uint32         `json:"form"`
	Host   string         `json:"host"`
	Page   int            `json:"page"`
	Key    []byte         `json:"key,omitempty"` // that the host's session showed, by which its permits were proved
	BootID string         `json:"boot_id,omitempty"`
	Netns  string         `json:"netns,omitempty"`
	All    []Registration `json:"all"`
}

// registrationsForm is that of the records that this version writes, and the latest that it reads.
const registrationsForm = 1

// A Registration is an instance: who may serve was looked at, and is again when it is read.
type Registration struct {
	Service sid.ServiceID `json:"service"`
	Proto   sid.Proto     `json:"proto"`
	Port    uint16        `json:"port"`
	plan.Readiness
	User   string `json:"user,omitempty"`
	Permit []byte `json:"permit,omitempty"` // one that was proved
	Since  int64  `json:"since"`            // seconds since 1970: as it is
}

// Triple is what is served.
func (r Registration) Triple() sid.Triple {
	return sid.Triple{Service: r.Service, Proto: r.Proto, Port: r.Port}
}

// Unread is a page of registrations that this version cannot read: the host says again what it serves, so that nothing is
// lost for good.
type Unread struct {
	Key  string // of the record
	Host string
	Page int // 0: the key does not say
	Why  string
}

// PutRegistrations stores a page of what a host serves.
func PutRegistrations(r Registrations) Change {
	r.Form = registrationsForm
	return Change{registrationsKey(r.Host, r.Page), r}
}

// DeleteRegistrations forgets a page.
func DeleteRegistrations(host string, page int) Change {
	return Change{registrationsKey(host, page), nil}
}

// PutRegistrationsTerm stores that a term stores what hosts serve. Controllers of versions before do not: after a term of
// one of them records may be missing.
func PutRegistrationsTerm(epoch uint64) Change { return Change{registrationsTerm, epoch} }

const registrationsTerm = "registrations-term"

func registrationsKey(host string, page int) string {
	return fmt.Sprintf("registrations/%s/%d", host, page)
}

// readRegistrations adds a page, or notes that it cannot be read: it is no reason to stop.
func (s *State) readRegistrations(key string, value []byte) {
	r := Registrations{}
	err := json.Unmarshal(value, &struct {
		Form *uint32 `json:"form"`
	}{&r.Form})
	switch {
	case err != nil:
	case r.Form == 0 || r.Form > registrationsForm:
		err = fmt.Errorf("it has form %d, and this version reads up to %d", r.Form, registrationsForm)
	default:
		err = json.Unmarshal(value, &r)
	}
	if err == nil && registrationsKey(r.Host, r.Page) != key {
		err = fmt.Errorf("it says that it is page %d of host %.80q", r.Page, r.Host)
	}
	if err == nil {
		s.Registrations = append(s.Registrations, r)
		return
	}
	u := Unread{Key: key, Why: err.Error()}
	if parts := strings.Split(key, "/"); len(parts) == 3 {
		u.Host = parts[1]
		if _, err := fmt.Sscan(parts[2], &u.Page); err != nil {
			u.Page = 0
		}
	}
	s.Unread = append(s.Unread, u)
}
