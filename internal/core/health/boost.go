package health

import (
	"fmt"
	"time"
)

// An Agent is one of boost that joined, and was not forgotten.
type Agent struct {
	Name    string
	Away    bool
	Since   time.Time // of Away
	Error   string    // why it has not taken what it was told
	Version string
	Lost    []Way // paths that it has not, while it has others to the same agent
}

// A Way is one of several paths between two agents.
type Way struct {
	Other string
	Path  string // its two addresses
	Why   string // it is lost
	Since time.Time
}

// An Entry is connections that are to be boosted now.
type Entry struct {
	Name  string
	Why   string    // nobody carries them; "": somebody does
	Since time.Time // of Why
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// boost judges what agents carry. Connections that nobody carries pass as they would: slower, and no trouble for who is not
// told of it.
func boost(s Snapshot) (all []Problem) {
	away := several{kind: AgentAway, next: s.ask("boost agent ls"), thing: "agent", many: func(n, names string) string {
		return n + " of boost are not connected (" + names + "): they carry what they were told last, if they run"
	}}
	for _, a := range s.Agents {
		for _, w := range a.Lost {
			all = append(all, Problem{Kind: BoostPath, Severity: Warning, Where: a.Name, Since: w.Since, Count: 1,
				What: fmt.Sprintf("agents %s and %s of boost have lost a path, %s, and go on by others%s", a.Name, w.Other, w.Path, because(w.Why)),
				Next: s.ask("boost agent ls")})
		}
		switch {
		case a.Away && !s.Settling:
			away.one = append(away.one, Problem{Kind: AgentAway, Severity: Warning, Where: a.Name, Since: a.Since, Count: 1,
				What: fmt.Sprintf("agent %s of boost is not connected: it carries what it was told last, if it runs", a.Name),
				Next: s.on("scaffold boostd --config /etc/scaffold/boostd.yaml", a.Name) + s.forGood("boost agent forget "+a.Name)})
		case !a.Away && a.Error != "":
			all = append(all, Problem{Kind: AgentError, Severity: Warning, Where: a.Name, Count: 1,
				What: fmt.Sprintf("agent %s of boost has not taken its lanes: %s", a.Name, a.Error), Next: s.ask("boost agent ls")})
		}
	}
	unserved := several{kind: BoostUnserved, next: s.ask("boost ls"), thing: "entry", many: func(n, names string) string {
		return "connections of " + n + " of boost pass unboosted (" + names + ")"
	}}
	for _, e := range s.Entries {
		if e.Why != "" && !s.Settling {
			unserved.one = append(unserved.one, Problem{Kind: BoostUnserved, Severity: Warning, Where: e.Name, Since: e.Since, Count: 1,
				What: fmt.Sprintf("connections of the entry %s pass unboosted: %s", e.Name, e.Why), Next: s.ask("boost agent ls")})
		}
	}
	return append(append(all, away.tell()...), unserved.tell()...)
}
