package store

import (
	"time"

	"scaffold.dev/scaffold/internal/core/names"
)

// Boost is which connections agents of boost carry, and which agents there are.
type Boost struct {
	Sites   []BoostSite
	Entries []BoostEntry
	Agents  []BoostAgent
}

// A BoostSite is where agents serve hosts.
type BoostSite struct {
	Name     string         `json:"name"`
	Prefixes []string       `json:"prefixes"`
	Agents   []string       `json:"agents,omitempty"`   // names
	Switches []string       `json:"switches,omitempty"` // names of those that send connections to the agents
	Applied  *names.Applied `json:"applied,omitempty"`  // what files say of it
}

// A BoostEntry is connections that an operator wants to be boosted.
type BoostEntry struct {
	Name    string         `json:"name"`
	Client  string         `json:"client"` // prefix
	Server  string         `json:"server"` // prefix
	Port    uint16         `json:"port,omitempty"`
	From    time.Time      `json:"from,omitzero"`
	Until   time.Time      `json:"until,omitzero"`
	AtOnce  bool           `json:"at_once,omitempty"` // clients are accepted before the server has answered
	Rewrite bool           `json:"rewrite,omitempty"` // switches write the agents' addresses into its packets
	Applied *names.Applied `json:"applied,omitempty"` // what files say of it
}

// A BoostAgent is one that ever joined: others go on to have its trunk while it is away from the controller.
type BoostAgent struct {
	Name     string `json:"name"`
	Door     string `json:"door"` // address and port
	Key      []byte `json:"key"`  // Ed25519, by which other agents know it
	Draining bool   `json:"draining,omitempty"`
	// Doors are all of its addresses, Door first. None: it is one of before, which has one and knows one of each other.
	Doors []string `json:"doors,omitempty"`
}

// The kinds of records.
const (
	boostSite  = "boostsite"
	boostEntry = "boostentry"
	boostAgent = "boostagent"
)

// PutBoostSite stores a site.
func PutBoostSite(s BoostSite) Change { return Change{boostSite + "/" + s.Name, s} }

// DeleteBoostSite forgets it.
func DeleteBoostSite(name string) Change { return Change{boostSite + "/" + name, nil} }

// PutBoostEntry stores an entry.
func PutBoostEntry(e BoostEntry) Change { return Change{boostEntry + "/" + e.Name, e} }

// DeleteBoostEntry forgets it.
func DeleteBoostEntry(name string) Change { return Change{boostEntry + "/" + name, nil} }

// PutBoostAgent stores what is known of an agent.
func PutBoostAgent(a BoostAgent) Change { return Change{boostAgent + "/" + a.Name, a} }

// DeleteBoostAgent forgets it.
func DeleteBoostAgent(name string) Change { return Change{boostAgent + "/" + name, nil} }

func (b *Boost) read(kind string, value []byte) (err error) {
	switch kind {
	case boostSite:
		b.Sites, err = decode(b.Sites, value)
	case boostEntry:
		b.Entries, err = decode(b.Entries, value)
	case boostAgent:
		b.Agents, err = decode(b.Agents, value)
	}
	return err
}
