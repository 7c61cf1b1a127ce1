package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// A Host is what the network remembers of a host: who it is and where it was. With it the routes to
// a host outlive the controller, also when its daemon is slow to come back.
type Host struct {
	Name     string  `json:"name"`
	Key      []byte  `json:"key,omitempty"` // Ed25519 public key, the name's for life in a network with keys
	Identity uint64  `json:"identity"`      // low half of its identity address
	Place            // where new flows to it go
	Others   []Place `json:"others,omitempty"` // its further uplinks
	BootID   string  `json:"boot_id,omitempty"`
	Netns    string  `json:"netns,omitempty"` // with BootID: which host of the name it was
	Here     bool    `json:"here"`            // it joined and has not left
}

// A Place is where one uplink of a host hangs on the network, or did when the host was last here.
type Place struct {
	Locator   sid.Locator `json:"locator"`
	Router    string      `json:"router"` // first hop
	Port      string      `json:"port"`   // of that router
	LinkLocal string      `json:"link_local,omitempty"`
	MAC       []byte      `json:"mac,omitempty"`
}

// A Router owns a block of locators for life.
type Router struct {
	Name    string `json:"name"`
	Block   uint8  `json:"block"` // hostAddr block<<8 is its own locator
	Service bool   `json:"service"`
	LinkKey string `json:"link_key,omitempty"` // hexadecimal; "": it cannot prove to its neighbours who it is
	Switch  bool   `json:"switch,omitempty"`   // an OpenFlow switch, whose hosts reach the controller by its connection
}

// Links are what a router said last of its links to other routers.
type Links struct {
	Router string `json:"router"`
	Links  []Link `json:"links"`
}

// A Link is one of them.
type Link struct {
	Port     string `json:"port"`
	Peer     string `json:"peer"`
	PeerPort string `json:"peer_port,omitempty"`
	Via      string `json:"via,omitempty"`
	Up       bool   `json:"up"`
	Reason   string `json:"reason,omitempty"`
	Cost     uint32 `json:"cost"`
}

// An Override is an operator's word about one host of one service.
type Override struct {
	Service sid.ServiceID `json:"service"`
	Host    string        `json:"host"`
	plan.Override
	Mode string `json:"mode,omitempty"` // of the drain; empty: as the service's policy says
}

// A Quarantine keeps a locator from being given to anyone but the host that had it. How long is
// left is not recorded: a restart begins the whole time anew, which errs on the safe side.
type Quarantine struct {
	Locator sid.Locator `json:"locator"`
	Host    string      `json:"host"`
}

// A Pledge is the last certificate that a host was given for a locator: until it has ended nobody else gets the
// locator. Times are seconds since 1970. The one of locator 0 says that pledges are recorded.
type Pledge struct {
	Locator sid.Locator `json:"locator"`
	Host    string      `json:"host"`
	Since   int64       `json:"since"`  // when it was given the first one
	Issued  int64       `json:"issued"` // when the last one
	Valid   int64       `json:"valid"`  // s, of that
	Until   int64       `json:"until"`  // when nobody takes any of them any more
}

// A Redirect sends what comes for a locator that its host left to the one that it went to. As with
// quarantines, how long is left is not recorded.
type Redirect struct {
	From sid.Locator `json:"from"`
	To   sid.Locator `json:"to"`
	Host string      `json:"host"`
}

// A SwitchFlow is a flow that an operator wants an OpenFlow switch to have, in the words that were typed: what
// a port's number is may be another one when the switch comes again.
type SwitchFlow struct {
	Switch   string `json:"switch"`
	Number   uint32 `json:"number"` // of the switch's
	Match    string `json:"match"`
	Actions  string `json:"actions"`
	Priority uint32 `json:"priority"`
	First    bool   `json:"first,omitempty"` // before Scaffold's own
}

// State is everything stored.
type State struct {
	Services    []names.Record
	Hosts       []Host
	Routers     []Router
	Links       []Links
	Overrides   []Override
	Quarantines []Quarantine
	Pledges     []Pledge
	Redirects   []Redirect
	SwitchFlows []SwitchFlow
	Boost       Boost
	Served      []Served
	Tokens      []Token
	Members     []Member
	Revoked     []Revoked
	Key         []byte // seed of the network's Ed25519 key; nil in a network that never had one
	Second      Authority
	Trust       string // what was decided when the network was new; "" in one of before that was stored
	Epoch       uint64 // starts of a controller on this store, this one counted
	ID          string // of the network, by which it is told from others of its name
	Controllers []Controller
	Ordered     []Entry   // history, the oldest first: what somebody ordered,
	Happened    []Entry   // and what happened
	Restored    *Restored // nil where no backup was put in lately

	Registrations     []Registrations
	Unread            []Unread // of those, the pages that cannot be read
	RegistrationsTerm uint64   // the last one that stored them
}

// A Controller is one of the network's, whether it runs or not.
type Controller struct {
	Name string   `json:"name"`
	API  []string `json:"api"` // endpoints
}

// Restored says that the state is that of a backup: what happened since it was made is not in it.
type Restored struct {
	Made string `json:"made"` // when, for people
}

// A Change is one record to put or delete; several in one Commit happen together or not at all.
type Change struct {
	key   string
	value any // nil: delete
}

// PutService stores a service's record.
func PutService(r names.Record) Change { return Change{serviceKey(r.ID), r} }

// DeleteService removes a service; its overrides are the caller's to delete with it.
func DeleteService(id sid.ServiceID) Change { return Change{serviceKey(id), nil} }

// PutHost stores what is known of a host.
func PutHost(h Host) Change { return Change{"host/" + h.Name, h} }

// PutRouter stores a router's block.
func PutRouter(r Router) Change { return Change{"router/" + r.Name, r} }

// PutLinks stores what a router said of its links.
func PutLinks(l Links) Change { return Change{"links/" + l.Router, l} }

// PutOverride stores a weight or a drain.
func PutOverride(o Override) Change { return Change{overrideKey(o), o} }

// DeleteOverride takes it back.
func DeleteOverride(o Override) Change { return Change{overrideKey(o), nil} }

// PutQuarantine stores that a locator is not free.
func PutQuarantine(q Quarantine) Change { return Change{quarantineKey(q.Locator), q} }

// DeleteQuarantine frees it.
func DeleteQuarantine(l sid.Locator) Change { return Change{quarantineKey(l), nil} }

// PutPledge stores that a host has a certificate.
func PutPledge(p Pledge) Change { return Change{pledgeKey(p.Locator), p} }

// PutRedirect stores where a host went from a locator.
func PutRedirect(r Redirect) Change { return Change{redirectKey(r.From), r} }

// DeleteRedirect forgets it.
func DeleteRedirect(from sid.Locator) Change { return Change{redirectKey(from), nil} }

// PutSwitchFlow stores an operator's flow.
func PutSwitchFlow(f SwitchFlow) Change { return Change{switchFlowKey(f.Switch, f.Number), f} }

// DeleteSwitchFlow forgets it.
func DeleteSwitchFlow(switchName string, number uint32) Change {
	return Change{switchFlowKey(switchName, number), nil}
}

// PutController stores where a controller is.
func PutController(c Controller) Change { return Change{"controller/" + c.Name, c} }

// DeleteController forgets it.
func DeleteController(name string) Change { return Change{"controller/" + name, nil} }

// DeleteRestored says that the network knows by now what happened after the backup.
func DeleteRestored() Change { return Change{"restored", nil} }

// PutKey stores the seed of the network's key.
func PutKey(seed []byte) Change { return Change{"key", seed} }

func serviceKey(id sid.ServiceID) string { return "service/" + id.String() }
func overrideKey(o Override) string      { return "override/" + o.Service.String() + "/" + o.Host }
func quarantineKey(l sid.Locator) string { return fmt.Sprintf("quarantine/%016x", uint64(l)) }
func pledgeKey(l sid.Locator) string     { return fmt.Sprintf("pledge/%016x", uint64(l)) }
func redirectKey(l sid.Locator) string   { return fmt.Sprintf("redirect/%016x", uint64(l)) }

func switchFlowKey(switchName string, number uint32) string {
	return fmt.Sprintf("switchflow/%s/%d", switchName, number)
}

// read adds one record to the state. Kinds that a newer version wrote are left alone.
func (s *State) read(key string, value []byte) error {
	kind, _, _ := strings.Cut(key, "/")
	var err error
	switch kind {
	case "service":
		s.Services, err = decode(s.Services, value)
	case "host":
		s.Hosts, err = decode(s.Hosts, value)
	case "router":
		s.Routers, err = decode(s.Routers, value)
	case "links":
		s.Links, err = decode(s.Links, value)
	case "override":
		s.Overrides, err = decode(s.Overrides, value)
	case "quarantine":
		s.Quarantines, err = decode(s.Quarantines, value)
	case "pledge":
		s.Pledges, err = decode(s.Pledges, value)
	case "redirect":
		s.Redirects, err = decode(s.Redirects, value)
	case "switchflow":
		s.SwitchFlows, err = decode(s.SwitchFlows, value)
	case boostSite, boostEntry, boostAgent:
		err = s.Boost.read(kind, value)
	case "token":
		s.Tokens, err = decode(s.Tokens, value)
	case "served":
		s.Served, err = decode(s.Served, value)
	case "registrations":
		s.readRegistrations(key, value)
	case registrationsTerm:
		err = json.Unmarshal(value, &s.RegistrationsTerm)
	case "member":
		s.Members, err = decode(s.Members, value)
	case "revoked":
		s.Revoked, err = decode(s.Revoked, value)
	case secondKey:
		err = json.Unmarshal(value, &s.Second)
	case "key":
		err = json.Unmarshal(value, &s.Key)
	case "ordered":
		s.Ordered = readEntry(s.Ordered, value)
	case "happened":
		s.Happened = readEntry(s.Happened, value)
	case "controller":
		s.Controllers, err = decode(s.Controllers, value)
	case "restoring":
		return errors.New("store: a restore was interrupted: run `scaffold state restore` again")
	case "restored":
		err = json.Unmarshal(value, &s.Restored)
	case "id":
		err = json.Unmarshal(value, &s.ID)
	case trustKey:
		err = json.Unmarshal(value, &s.Trust)
	case "epoch":
		err = json.Unmarshal(value, &s.Epoch)
	}
	if err != nil {
		return fmt.Errorf("store: the record %s cannot be read: %w", key, err)
	}
	return nil
}

func decode[T any](list []T, value []byte) ([]T, error) {
	var x T
	err := json.Unmarshal(value, &x)
	return append(list, x), err
}

// Key names the record: of several changes with one key the last counts.
func (c Change) Key() string { return c.key }

// Deletes reports whether the record goes.
func (c Change) Deletes() bool { return c.value == nil }
