package health

import (
	"fmt"
	"time"
)

// A Router is one that joined, and was not forgotten.
type Router struct {
	Name        string
	Away        bool
	Since       time.Time // of Away
	Unconfirmed int       // changes of rules that it was told and has not confirmed
	Told        time.Time // the oldest of these
	Error       string    // why it could not apply the last
	Version     string
	Ahead       time.Duration // of its clock
}

// How long a router may take to confirm rules: it takes milliseconds, and seconds for a full table.
const (
	lags     = 10 * time.Second
	lagsLong = time.Minute
)

func routers(s Snapshot) (all []Problem) {
	away := several{kind: RouterAway, next: s.ask("router ls"), thing: "router", many: func(n, names string) string {
		return n + " are not connected (" + names + "): they forward by what they know"
	}}
	connected := 0
	for _, r := range s.Routers {
		if !r.Away {
			connected++
		}
	}
	for _, r := range s.Routers {
		switch {
		case r.Away && s.Settling:
		case r.Away && connected == 0:
			away.one = append(away.one, Problem{Kind: RouterAway, Severity: Critical, Where: r.Name, Since: r.Since, Count: 1,
				What: fmt.Sprintf("router %s is not connected, and no other one is: nothing that changes reaches the network", r.Name),
				Next: s.start("routerd", r.Name)})
		case r.Away:
			away.one = append(away.one, Problem{Kind: RouterAway, Severity: Warning, Where: r.Name, Since: r.Since, Count: 1,
				What: fmt.Sprintf("router %s is not connected: it forwards by what it knows, if it runs", r.Name),
				Next: s.start("routerd", r.Name) + s.forGood("router forget "+r.Name)})
		case r.Error != "":
			all = append(all, Problem{Kind: RouterError, Severity: Critical, Where: r.Name, Since: r.Told, Count: 1,
				What: fmt.Sprintf("router %s could not apply its rules: %s", r.Name, r.Error), Next: s.logs("routerd", r.Name, "")})
		case r.Unconfirmed > 0 && s.Now.Sub(r.Told) > lags:
			p := Problem{Kind: RouterLags, Severity: Warning, Where: r.Name, Since: r.Told, Count: 1,
				What: fmt.Sprintf("router %s has not confirmed %s of its rules: it forwards by older ones", r.Name, count(r.Unconfirmed, "change")),
				Next: s.logs("routerd", r.Name, "")}
			if s.Now.Sub(r.Told) > lagsLong {
				p.Severity = Critical
			}
			all = append(all, p)
		}
	}
	return append(all, away.tell()...)
}

// A Host is one that joined and did not leave.
type Host struct {
	Name    string
	Silent  bool      // its edge does not answer its router's probes, at no place
	Alone   bool      // its daemon is not connected to the controller
	Router  string    // its first-hop router, where that one is away too and nobody probes the host
	Since   time.Time // of Silent or Alone
	Version string
	Ahead   time.Duration // of its clock
	Permits []Permit
}

// A Permit is one by which a host serves, and that ends soon.
type Permit struct {
	Service string
	Until   time.Time
}

// alone is how long a host's daemon may be away: a restart takes a second or two.
const alone = 10 * time.Second

func hosts(s Snapshot) []Problem {
	silent := several{kind: HostSilent, next: s.ask("host ls"), thing: "host", many: func(n, names string) string {
		return n + " do not answer (" + names + "): their flows turn to other hosts where there are any"
	}}
	daemons := several{kind: HostDaemon, next: s.ask("host ls"), thing: "host", many: func(n, names string) string {
		return "the daemons of " + n + " are away (" + names + "): flows go on, but nothing can change there"
	}}
	permits := several{kind: PermitEnds, next: s.ask("host ls"), thing: "host", many: func(n, names string) string {
		return "permits to serve of " + n + " end soon (" + names + ")"
	}}
	for _, h := range s.Hosts {
		for _, p := range h.Permits {
			permits.one = append(permits.one, Problem{Kind: PermitEnds, Severity: Warning, Where: h.Name, Count: 1,
				What: fmt.Sprintf("the permit of host %s to serve %s %s", h.Name, p.Service, ends(p.Until, s.Now)),
				Next: s.ask("service delegate "+p.Service+" --key "+p.Service+".key --host "+h.Name) + "  # where the service's key is"})
		}
		p := Problem{Where: h.Name, Since: h.Since, Count: 1, Severity: Warning}
		switch {
		case s.Settling:
		case h.Silent:
			p.Kind, p.What = HostSilent, fmt.Sprintf("host %s does not answer: its flows turn to other hosts where there are any", h.Name)
			p.Next = s.start("hostd", h.Name) + s.forGood("host forget "+h.Name)
			silent.one = append(silent.one, p)
		case h.Alone && s.Now.Sub(h.Since) > alone && h.Router != "":
			p.Kind, p.What = HostDaemon, fmt.Sprintf("nobody hears host %s: its router %s is away and its daemon is not connected", h.Name, h.Router)
			p.Next = s.start("routerd", h.Router)
			daemons.one = append(daemons.one, p)
		case h.Alone && s.Now.Sub(h.Since) > alone:
			p.Kind, p.What = HostDaemon, fmt.Sprintf("the daemon of host %s is away: its flows go on, but nothing can change there", h.Name)
			p.Next = s.start("hostd", h.Name)
			daemons.one = append(daemons.one, p)
		}
	}
	return append(append(silent.tell(), daemons.tell()...), permits.tell()...)
}
