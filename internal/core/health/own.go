package health

import (
	"cmp"
	"fmt"
	"time"
)

// Own is what a host or a router knows of itself.
type Own struct {
	Role       string // "host", "router"
	Name       string
	Joined     bool
	Trouble    string // why not
	Controller string // where it tries
	Since      time.Time
	Uplinks    int           // of a host, that lead to a router
	Wired      bool          // of a host, that it needs one: it has interfaces
	Until      time.Time     // when the first of its locators' certificates ends; zero: it has none
	Valid      time.Duration // of that certificate, from when it was given; 0: a day
	Credential time.Time     // when its credential ends; zero: it has none
	For        time.Duration
	Full       float64 // used part of its largest table
	Version    string
	Open       bool // it joined a network without keys that is not on this machine alone
}

// A locator's certificate is good for an hour at first and for up to a day later, and renewed when 0.6 of that is left
// (docs/protocol.md §7). It ends soon when a quarter is.
const (
	certificateDay  = 24 * time.Hour
	certificateSoon = 4
)

// Parts of a table that are used.
const (
	nearlyFull = 0.9
	full       = 1.0
)

func own(s Snapshot) (all []Problem) {
	o := s.Own
	if o == nil {
		return nil
	}
	p := Problem{Where: o.Name, Since: o.Since, Count: 1, Severity: Critical}
	daemon := o.Role + "d"
	switch {
	case !o.Joined && o.Wired && o.Uplinks == 0:
		p.Kind, p.What, p.Next = NoUplink, "host "+o.Name+" has no router: "+o.Trouble, s.askHost("host status", o.Name)
		all = append(all, p)
	case !o.Joined:
		p.Kind, p.What = NotJoined, fmt.Sprintf("%s %s is not connected to a controller", o.Role, o.Name)
		if o.Controller != "" {
			p.What += " at " + o.Controller
		}
		if o.Trouble != "" {
			p.What += ": " + o.Trouble
		}
		p.Next = s.logs(daemon, "", o.Name)
		if o.Role == "host" {
			p.Next = s.askHost("host status", o.Name)
		}
		all = append(all, p)
	}
	soon := cmp.Or(o.Valid, certificateDay) / certificateSoon
	if left := o.Until.Sub(s.Now); !o.Until.IsZero() && left < soon {
		q := Problem{Kind: CertificateEnds, Severity: Warning, Where: o.Name, Count: 1,
			What: fmt.Sprintf("the certificate of a locator of host %s %s: its flows cannot move after that", o.Name, ends(o.Until, s.Now)), Next: s.askHost("host status", o.Name)}
		if left < soon/6 {
			q.Severity = Critical
		}
		all = append(all, q)
	}
	if o.Full >= nearlyFull {
		q := Problem{Kind: TableFull, Severity: Warning, Where: o.Name, Count: 1,
			What: fmt.Sprintf("the tables of %s %s are full to %.0f %%", o.Role, o.Name, 100*o.Full), Next: s.ask(o.Role + " ls")}
		if o.Full >= full {
			q.Severity = Critical
		}
		if o.Role == "host" {
			q.Next = s.askHost("flow ls", o.Name)
		}
		all = append(all, q)
	}
	if !o.Credential.IsZero() {
		c := Snapshot{Now: s.Now, Lab: s.Lab, Credentials: []Credential{{Role: o.Role, Name: o.Name, Until: o.Credential, For: o.For}}}
		all = append(all, credentials(c)...)
	}
	return append(all, s.openTo(o)...)
}
