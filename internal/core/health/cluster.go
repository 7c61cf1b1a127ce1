package health

import (
	"fmt"
	"time"
)

// A Cluster is the controllers of a network.
type Cluster struct {
	Several     bool          // there may be more than one: one of them leads
	Leader      string        // by the store's lease; "": nobody does, or nobody can say
	Trouble     string        // why nobody can say
	Store       string        // an etcd elsewhere; "": the state is in the controllers
	Since       time.Time     // that nobody leads
	Lease       time.Duration // how long the silence of a leader is waited for
	Controllers []Controller
}

// A Controller is one of them.
type Controller struct {
	Name    string
	Votes   bool      // it is a member of the cluster that the state is in, and counts
	Learns  bool      // a member that has not caught up yet
	Away    bool      // it does not answer
	Since   time.Time // of Away, or Learns
	Version string
	Ahead   time.Duration // of its clock, before that of who looks
}

// learns is how long a new member may take: it copies a few megabytes.
const learns = time.Minute

func cluster(s Snapshot) (all []Problem) {
	c := s.Cluster
	if !c.Several {
		return nil
	}
	votes, here := 0, 0
	var away []string
	for _, x := range c.Controllers {
		if x.Votes {
			votes++
			if !x.Away {
				here++
			}
		}
		if x.Away {
			away = append(away, x.Name)
		}
	}
	need := votes/2 + 1
	if c.Leader == "" {
		return []Problem{s.leaderless(votes, here, need, away)}
	}
	for _, x := range c.Controllers {
		switch {
		case x.Away && x.Votes && here <= need:
			all = append(all, Problem{Kind: ControllerAway, Severity: Warning, Where: x.Name, Since: x.Since, Count: 1,
				What: fmt.Sprintf("controller %s is away: of %d that hold the state %d are left, and if one more stops nothing can be changed", x.Name, votes, here),
				Next: s.gone(x.Name)})
		case x.Away:
			all = append(all, Problem{Kind: ControllerAway, Severity: Warning, Where: x.Name, Since: x.Since, Count: 1,
				What: fmt.Sprintf("controller %s is away: it cannot take over", x.Name), Next: s.gone(x.Name)})
		case x.Learns && !x.Since.IsZero() && s.Now.Sub(x.Since) > learns:
			all = append(all, Problem{Kind: ControllerLearns, Severity: Warning, Where: x.Name, Since: x.Since, Count: 1,
				What: fmt.Sprintf("controller %s has not caught up with the state: it does not count yet", x.Name), Next: s.logs("controld", x.Name, "")})
		}
	}
	return all
}

// election is how long etcd may take to elect its own leader, without which no lease ends (docs/operate.md).
const election = 2 * time.Second

// gone is what is done about a controller that is away: it comes back, or is given up.
func (s Snapshot) gone(name string) string {
	return s.start("controld", name) + s.forGood("controller remove "+name)
}

// choosing says that nobody leads for so short a time that a change of leader, or a start, explains it.
func (s Snapshot) choosing() bool {
	c := s.Cluster
	return !c.Since.IsZero() && s.Now.Sub(c.Since) < c.Lease+election
}

// leaderless says why nobody leads, by who answers.
func (s Snapshot) leaderless(votes, here, need int, away []string) Problem {
	c := s.Cluster
	p := Problem{Kind: NoLeader, Severity: Critical, Since: c.Since, Count: 1}
	switch {
	case c.Store != "" && !s.choosing():
		p.Where = c.Store
		p.What = "no controller leads: the store at " + c.Store + " does not answer: nothing can be changed, flows go on"
		p.Next = "etcdctl --endpoints=" + c.Store + " endpoint health"
	case votes > 0 && here < need:
		p.Where = list(away)
		p.What = fmt.Sprintf("no controller leads: %d of %d answer, and %d have to: nothing can be changed, flows go on", here, votes, need)
		p.Next = s.start("controld", away...)
	case s.choosing():
		p.Severity = Warning // each change of leader and each start comes by here
		p.What = "the controllers choose a leader: nothing can be changed meanwhile, flows go on"
		p.Next = s.ask("status")
	default:
		p.What = "no controller leads at the moment: nothing can be changed, flows go on"
		p.Next = s.ask("controller ls")
	}
	if c.Trouble != "" && c.Store != "" && p.Severity == Critical {
		p.What += " (" + c.Trouble + ")"
	}
	return p
}
