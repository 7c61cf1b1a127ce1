package oftables

import (
	"net/netip"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/sid"
)

// Options are what is known of a switch when it connects.
type Options struct {
	Version    ofp.Version
	Extensions bool    // Nicira's and Netronome's: an Open vSwitch
	MAC        ofp.MAC // of the router: hosts and routers send to it, and it sends from it
	First      uint8   // of the tables used besides 0; 0: DefaultFirst
	NoMeters   bool    // the switch has none: what is punted is not limited
	// LinkLocal is the router's address on each link, where the switch can answer for it; see answerSolicited.
	LinkLocal netip.Addr
}

// DefaultFirst is the first of our tables besides 0.
const DefaultFirst = 10

// Tables are those of one switch: what they should hold, and what the switch was told. They belong to one
// goroutine.
type Tables struct {
	space sid.Space
	o     Options

	flows  book[flowKey, entry]
	groups book[ofp.GroupID, group]
	meters book[ofp.MeterID, meter]

	own      sid.Locator // 0: none yet, and no routing tables
	resolves bool

	ports      map[string]ofp.Port
	mtus       map[string]int // of ports that take less than hosts may send
	neighbours map[neighbour]ofp.MAC
	routes     map[netip.Prefix]plan.Route
	byPort     map[string]map[netip.Prefix]struct{}
	redirects  map[sid.Locator]sid.Locator
	gone       map[sid.Locator]struct{}

	services map[sid.ServiceID]*service
	suffixes map[sid.Suffix][]*service // those of services
	lists    map[listKey]*list
	listIDs  map[uint32]listKey // by mark
	returned int                // entries for what targets return
	idle     map[listKey]int    // lists that nobody uses, and how many Ages they have seen
	owners   map[uint16]*owned
	keeping  map[uint16]map[flowKey]entry // what the switch has of owners whose entries are left alone
	copyBits uint32                       // that are in use
	naming   plan.Naming
	foreign  map[flowKey]struct{} // others' entries at the switch, when it was read
	missed   map[flowKey]struct{} // entries that were missing when the switch was read last, and may have ended just then
	had      map[flowKey]entry    // routes of the switch, when it was read, that have not been told anew since
}

// New is the tables of a switch that was told nothing. Until SetRouter they hold the modules' entries alone.
func New(space sid.Space, o Options) *Tables {
	if o.First == 0 {
		o.First = DefaultFirst
	}
	return &Tables{
		space: space, o: o,
		flows:  newBook[flowKey](entry.same),
		groups: newBook[ofp.GroupID](group.same), meters: newBook[ofp.MeterID](meter.same),
		ports: map[string]ofp.Port{}, mtus: map[string]int{}, neighbours: map[neighbour]ofp.MAC{}, routes: map[netip.Prefix]plan.Route{},
		byPort: map[string]map[netip.Prefix]struct{}{}, redirects: map[sid.Locator]sid.Locator{}, gone: map[sid.Locator]struct{}{},
		services: map[sid.ServiceID]*service{}, suffixes: map[sid.Suffix][]*service{}, lists: map[listKey]*list{}, idle: map[listKey]int{}, listIDs: map[uint32]listKey{},
		owners: map[uint16]*owned{}, keeping: map[uint16]map[flowKey]entry{}, foreign: map[flowKey]struct{}{},
	}
}

// Our tables behind 0, counted from Options.First.
const (
	tableArrival = iota
	tableKind
	tableResolve
	tableChoose
	tableReturned
	tableOthers
	tableRoutes
	tableOutput
	tableSize
	tableSolicited
	tablesUsed
)

// Last is the number of the last table that is used besides the modules'.
func (t *Tables) Last() uint8 { return t.table(tablesUsed - 1) }

func (t *Tables) table(n uint8) uint8 { return t.o.First + n }

func (t *Tables) goTo(n uint8) ofp.Instruction { return ofp.GotoTable{Table: t.table(n)} }

// masks reports whether the switch can write half of an address.
func (t *Tables) masks() bool { return t.o.Version >= ofp.V15 }

// SetRouter says which locator is the router's own, and whether it is a service router. Locator 0 takes all that
// forwards out of the switch; the modules' entries stay.
func (t *Tables) SetRouter(own sid.Locator, resolves bool) {
	if t.own == own && t.resolves == resolves {
		return
	}
	t.eachFixed(t.flows.unset)
	t.own, t.resolves = own, resolves
	t.refreshAll()
}

// refreshAll renders everything that depends on who the router is.
func (t *Tables) refreshAll() {
	t.renderFixed()
	t.renderPorts()
	for p := range t.routes {
		t.renderRoute(p)
	}
	for l := range t.redirects {
		t.renderLeft(l)
	}
	for l := range t.gone {
		t.renderLeft(l)
	}
	for _, s := range t.services {
		t.renderService(s)
	}
}
