package health

import (
	"fmt"
	"time"
)

// A Credential is that of a member of a network with keys, or a certificate in a file.
type Credential struct {
	Role  string // "host", "router", "admin"; "peer", "etcd": the file of that controller
	Name  string
	Until time.Time
	For   time.Duration // how long it was good for in all
	File  string        // of a certificate that nobody renews by itself
}

// Former is the network's key of before, while there is one.
type Former struct {
	ID    string // "": there is none
	Since time.Time
	Next  bool     // it is not that of before, but the next one, which not all know yet
	By    []string // members that have not followed
}

// Credentials are renewed when a third of their time is over, so one with a quarter left has failed to be for long. Two
// weeks are time enough for anybody. What ended long ago and nobody missed is told no more.
const (
	soonShare = 4
	soonMost  = 14 * 24 * time.Hour
	lateShare = 20
	lateMost  = 2 * 24 * time.Hour
	overFor   = 7 * 24 * time.Hour
)

// formerFor is how long two keys of a network may count: members follow within days.
const formerFor = 7 * 24 * time.Hour

func credentials(s Snapshot) (all []Problem) {
	members := several{kind: CredentialEnds, next: s.ask("token members"), thing: "credential", many: func(n, names string) string {
		return n + " end soon or have ended (" + names + ")"
	}}
	for _, c := range s.Credentials {
		left := c.Until.Sub(s.Now)
		if left > min(soonMost, c.For/soonShare) || left < -overFor {
			continue
		}
		p := Problem{Kind: CredentialEnds, Severity: Warning, Where: c.Name, Count: 1}
		if left < min(lateMost, c.For/lateShare) && c.Role != "admin" { // who logs in again loses nothing
			p.Severity = Critical
		}
		if c.File != "" {
			p.Kind = CertificateEnds
			p.What = fmt.Sprintf("the certificate in %s of controller %s %s", c.File, c.Name, ends(c.Until, s.Now))
			p.Next = s.on("openssl x509 -enddate -noout -in "+c.File, c.Name)
			all = append(all, p)
			continue
		}
		p.What = fmt.Sprintf("the credential of %s %s %s", c.Role, c.Name, ends(c.Until, s.Now))
		switch {
		case c.Role == "admin" && left > 0:
			p.What += ": it is renewed whenever it is used"
			if p.Next = "scaffold status  # on " + c.Name + "'s machine"; s.Lab != "" {
				p.Next = s.ask("status")
			}
		case left > 0:
			p.What += ": it is renewed while its daemon is connected"
			p.Next = s.start(c.Role+"d", c.Name)
		default:
			p.Next = s.ask("token create --role " + c.Role + " --name " + c.Name)
		}
		members.one = append(members.one, p)
	}
	all = append(all, members.tell()...)
	if f := s.Former; f.ID != "" && s.Now.Sub(f.Since) > formerFor {
		p := Problem{Kind: KeyFormer, Severity: Warning, Where: f.ID, Since: f.Since, Count: 1, Next: s.ask("net key retire " + f.ID)}
		p.What = fmt.Sprintf("the network's former key %s still counts, since it was replaced %s ago", f.ID, span(s.Now.Sub(f.Since)))
		if f.Next {
			p.What, p.Next = fmt.Sprintf("the network's next key %s waits for members that do not know it yet, since %s", f.ID, span(s.Now.Sub(f.Since))), s.ask("net key ls")
		}
		if len(f.By) > 0 {
			p.What += ": " + list(f.By) + " have not followed"
			p.Next = s.ask("net key ls")
		}
		all = append(all, p)
	}
	return all
}

// ends says when something does, or did.
func ends(until, now time.Time) string {
	if left := until.Sub(now); left > 0 {
		return "ends in " + span(left)
	}
	return "ended " + span(now.Sub(until)) + " ago"
}
