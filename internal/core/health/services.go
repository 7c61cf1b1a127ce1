package health

import (
	"fmt"
	"time"
)

// A Service is judged by whether new flows of it find anybody. One that was made before its servers come is no problem:
// that is how services are made. It becomes one when it has had an instance and has none any more, when a host would
// serve it and may not, or when clients ask for it.
type Service struct {
	Name      string
	Instances int
	Taken     bool      // an instance gets new flows
	Had       bool      // it had an instance once
	Reason    string    // why the instances get none, as of the first of them
	Refused   string    // why a host that would serve it may not
	Asked     time.Time // when a host asked for its address last
	Since     time.Time // that none gets flows
}

// asks is how long ago clients may have asked for a service that counts as wanted: hosts remember an address for
// seconds, so who uses it asks again.
const asks = 5 * time.Minute

func services(s Snapshot) []Problem {
	unserved := several{kind: ServiceUnserved, next: s.ask("service ls"), thing: "service", many: func(n, names string) string {
		return "nobody serves " + n + " (" + names + "): their clients are refused"
	}}
	unready := several{kind: ServiceUnready, next: s.ask("service ls"), thing: "service", many: func(n, names string) string {
		return "no instance of " + n + " gets flows (" + names + ")"
	}}
	wanted := several{kind: ServiceWanted, next: s.ask("service ls"), thing: "service", many: func(n, names string) string {
		return n + " are wanted, and nobody has served them yet (" + names + ")"
	}}
	for _, x := range s.Services {
		p := Problem{Where: x.Name, Since: x.Since, Count: 1, Next: s.ask("explain " + x.Name)}
		switch {
		case x.Taken || s.Settling:
		case x.Instances > 0:
			p.Kind, p.Severity = ServiceUnready, Critical
			p.What = fmt.Sprintf("no instance of service %s gets flows: it has %s", x.Name, count(x.Instances, "instance"))
			if x.Reason != "" {
				p.What += ", " + x.Reason
			}
			unready.one = append(unready.one, p)
		case x.Refused != "":
			p.Kind, p.Severity = ServiceUnserved, Critical
			p.What = fmt.Sprintf("nobody serves service %s: %s", x.Name, x.Refused)
			unserved.one = append(unserved.one, p)
		case x.Had:
			p.Kind, p.Severity = ServiceUnserved, Critical
			p.What = fmt.Sprintf("nobody serves service %s any more: its clients are refused", x.Name)
			p.Next += "  # if it is no longer wanted: " + s.ask("service rm "+x.Name)
			unserved.one = append(unserved.one, p)
		case !x.Asked.IsZero() && s.Now.Sub(x.Asked) < asks:
			p.Kind, p.Severity = ServiceWanted, Warning
			p.What = fmt.Sprintf("hosts ask for service %s, which nobody has served yet", x.Name)
			wanted.one = append(wanted.one, p)
		}
	}
	return append(append(unserved.tell(), unready.tell()...), wanted.tell()...)
}
