// Package health judges a network: what is wrong with it, how bad that is, since when, and which command comes next.
// `scaffold status`, /healthz, the metrics and so the alerts are all made of what Judge returns (docs/operate.md,
// docs/metrics.md), so that they cannot contradict each other.
package health

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A Severity says how soon somebody has to look.
type Severity int

// The severities.
const (
	OK       Severity = iota
	Warning           // look at it today
	Critical          // somebody loses service, or nothing can be changed or saved
)

// String is the severity as programs read it.
func (s Severity) String() string { return [...]string{"ok", "warning", "critical"}[s] }

// ParseSeverity is the reverse; what nobody knows is a warning.
func ParseSeverity(text string) Severity {
	for _, s := range []Severity{OK, Critical} {
		if s.String() == text {
			return s
		}
	}
	return Warning
}

// A Kind names a sort of problem for programs, and in the metrics. Kinds are never renamed.
type Kind string

// The kinds, docs/operate.md has the list.
const (
	NoLeader         Kind = "controller.none"
	ControllerAway   Kind = "controller.away"
	ControllerLearns Kind = "controller.learns"
	StoreFailing     Kind = "store.failing"
	StoreDamaged     Kind = "store.damaged"
	StoreBehind      Kind = "store.behind"
	StoreClear       Kind = "store.clear"
	DiskFull         Kind = "disk.full"
	DiskLow          Kind = "disk.low"
	StateRestored    Kind = "state.restored"
	RouterAway       Kind = "router.away"
	RouterLags       Kind = "router.lags"
	RouterError      Kind = "router.error"
	HostSilent       Kind = "host.silent"
	HostDaemon       Kind = "host.daemon"
	ServiceUnserved  Kind = "service.unserved"
	ServiceUnready   Kind = "service.unready"
	ServiceWanted    Kind = "service.wanted"
	CredentialEnds   Kind = "credential.ends"
	CertificateEnds  Kind = "certificate.ends"
	PermitEnds       Kind = "permit.ends"
	KeyFormer        Kind = "key.former"
	NetworkOpen      Kind = "network.open"
	VersionDiffers   Kind = "version.differs"
	ClockDiffers     Kind = "clock.differs"
	NotJoined        Kind = "daemon.alone"
	NoUplink         Kind = "uplink.none"
	TableFull        Kind = "table.full"
	AgentAway        Kind = "agent.away"
	AgentError       Kind = "agent.error"
	BoostUnserved    Kind = "boost.unserved"
	BoostPath        Kind = "boost.path"
)

// Kinds are all, in the order in which problems of one severity are told: the causes before what follows from them.
var Kinds = []Kind{
	NoLeader, StoreDamaged, StoreFailing, DiskFull, NotJoined, NoUplink, ControllerAway, RouterAway, RouterError, RouterLags, TableFull,
	ServiceUnserved, ServiceUnready, ServiceWanted, HostSilent, HostDaemon, AgentError, AgentAway, BoostUnserved, BoostPath, StoreBehind, ControllerLearns, DiskLow,
	CertificateEnds, CredentialEnds, PermitEnds, KeyFormer, ClockDiffers, VersionDiffers, StateRestored, NetworkOpen, StoreClear,
}

// A Problem is one thing that is wrong.
type Problem struct {
	Kind     Kind
	Severity Severity
	What     string    // one sentence, for people
	Where    string    // the machine, or the service; of several, joined by commas
	Since    time.Time // zero: not known
	Next     string    // the command that comes next; where it is to be run is a comment behind it
	Count    int       // how many machines or services it is about
}

// A Snapshot is what is to be judged. What is not known is left out: a host knows only of itself.
type Snapshot struct {
	Now         time.Time
	Version     string   // of the program that looks
	Settling    bool     // the controller leads since a moment: who is not here may be on the way
	Lab         string   // whose network this is; "": no lab's
	Open        []string // where others than the controller's machine reach an open network
	Clear       Clear
	Cluster     Cluster
	Stores      []Store
	Restored    string // when the backup was made whose state this is; "": it is none
	Unknown     int    // services that hosts serve and that backup does not know
	Routers     []Router
	Hosts       []Host
	Services    []Service
	Agents      []Agent // of boost
	Entries     []Entry // that are to be boosted now
	Credentials []Credential
	Former      Former
	Own         *Own // of a host or router that judges itself
}

// Judge says what is wrong, the worst first. It only reads.
func Judge(s Snapshot) []Problem {
	var all []Problem
	for _, judge := range []func(Snapshot) []Problem{cluster, stores, routers, hosts, services, boost, credentials, versions, clocks, own, open, clear} {
		all = append(all, judge(s)...)
	}
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(slices.Index(Kinds, a.Kind), slices.Index(Kinds, b.Kind)))
	})
	return all
}

// Worst is the severity of the worst problem.
func Worst(all []Problem) (worst Severity) {
	for _, p := range all {
		worst = max(worst, p.Severity)
	}
	return worst
}

// named is how many machines or services are named one by one, before they are counted.
const named = 3

// list names a few, and counts the rest.
func list(names []string) string {
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:named], ", ") + " and " + number(len(names)-named) + " more"
}

// A several is one sort of trouble that more than one may have: each is told alone, or all at once where they are many.
type several struct {
	kind  Kind
	one   []Problem
	many  func(count, names string) string // "12 hosts", "s1, s2, s3 and 9 more"
	next  string
	thing string
}

// tell returns the problems of each, or one for all.
func (s several) tell() []Problem {
	if len(s.one) <= named {
		return s.one
	}
	sum := Problem{Kind: s.kind, Next: s.next, Count: len(s.one)}
	var names []string
	for _, p := range s.one {
		names = append(names, p.Where)
		sum.Severity = max(sum.Severity, p.Severity)
		if sum.Since.IsZero() || !p.Since.IsZero() && p.Since.Before(sum.Since) {
			sum.Since = p.Since
		}
	}
	sum.Where = strings.Join(names, ",")
	sum.What = s.many(count(len(names), s.thing), list(names))
	return []Problem{sum}
}
