package legs

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// MostFirsts is how many first packets wait for agents at a time; more go on unboosted.
const MostFirsts = 1024

// AskEach is how often it is looked whether a near agent still stands that has a first packet to decide about.
const AskEach = 2 * time.Second

// firsts are the packets that clients begin with, each of which waits at a switch until it is decided about.
type firsts struct {
	asked   map[uint64]first // by the number by which a near agent is asked
	last    uint64
	decided map[apiv1.BoostVerdict]uint64 // how often
}

// A first is one about which a near agent is to decide.
type first struct {
	Key
	site string
	syn  uint64 // its number at who drives the switches
}

func newFirsts() firsts {
	return firsts{asked: map[uint64]first{}, decided: map[apiv1.BoostVerdict]uint64{}}
}

// First takes a client's first packet that waits at a switch, of a lane at whose near end the agent is.
func (x *Legs) First(syn uint64, agent string, lane uint64, client, server netip.AddrPort) {
	key := Key{agent, false, client, server}
	was, listens := x.all[key], x.in.Listens(agent)
	if was != nil && !was.over && listens { // it was lost on its way to the agent, or to the client
		x.release(was, syn)
		return
	}
	if was != nil { // the client begins anew: the switch has the first packet of before no more
		was.syn = 0
		x.end(was)
	}
	site := x.in.Site(agent)
	if !listens || len(x.firsts.asked) >= MostFirsts || x.atSite(site) >= Most {
		x.Pass(syn)
		return
	}
	x.firsts.last++
	number := x.firsts.last
	x.firsts.asked[number] = first{key, site, syn}
	x.in.Order(agent, &apiv1.BoostOrder{Order: &apiv1.BoostOrder_Syn{Syn: &apiv1.BoostSYN{
		Number: number, Lane: lane, Client: client.String(), Server: server.String(),
	}}})
	x.watch(number, x.in.Now())
}

// release sends a first packet that came again to the agent that waits for it.
func (x *Legs) release(l *leg, syn uint64) {
	if x.waiting[l] { // the one before goes nowhere: its switch has it no more
		if l.syn == 0 { // so far nobody has waited for it, and nobody would give up
			x.patient(l)
		}
		l.syn = syn
		return
	}
	x.decide(syn, apiv1.BoostVerdict_BOOST_VERDICT_ACCEPT)
}

// watch lets a first packet go on about which nobody decides: its agent stands still, or asks others for too long.
func (x *Legs) watch(number uint64, since time.Time) {
	x.in.After(AskEach, func() {
		f, waits := x.firsts.asked[number]
		switch {
		case !waits:
		case !x.in.Listens(f.Agent) || x.in.Now().Sub(since) >= x.patience:
			x.goesOn(number)
		default:
			x.watch(number, since)
		}
	})
}

// decide says what is to become of a first packet.
func (x *Legs) decide(syn uint64, verdict apiv1.BoostVerdict) {
	x.firsts.decided[verdict]++
	x.in.Steer(&apiv1.SteerOrder{Order: &apiv1.SteerOrder_First{First: &apiv1.SteerFirst{Number: syn, Verdict: verdict}}})
}

// Pass lets a first packet go on, unboosted.
func (x *Legs) Pass(syn uint64) { x.decide(syn, apiv1.BoostVerdict_BOOST_VERDICT_PASS) }

// goesOn is for one about which nobody has decided.
func (x *Legs) goesOn(number uint64) {
	if f, waits := x.firsts.asked[number]; waits {
		delete(x.firsts.asked, number)
		x.Pass(f.syn)
	}
}

// Lost lets those go on about which an agent does not decide any more. What it carries stays.
func (x *Legs) Lost(agent string) {
	for _, number := range slices.Sorted(maps.Keys(x.firsts.asked)) {
		if x.firsts.asked[number].Agent == agent {
			x.goesOn(number)
		}
	}
}

// Decided takes what a near agent says of a first packet.
func (x *Legs) Decided(agent string, m *apiv1.BoostFirst) {
	f, waits := x.firsts.asked[m.Number]
	if !waits || f.Agent != agent {
		return
	}
	delete(x.firsts.asked, m.Number)
	if m.Verdict != apiv1.BoostVerdict_BOOST_VERDICT_ACCEPT {
		x.decide(f.syn, m.Verdict)
		return
	}
	if was := x.all[f.Key]; was != nil && was.newest > f.syn {
		// It was asked about two, and has decided about the newer one first: that one's port holds. The client says it again.
		x.decide(f.syn, apiv1.BoostVerdict_BOOST_VERDICT_DROP)
		return
	}
	at, err := x.portOf(agent, m.At, f.Client)
	if err == nil {
		err = x.set(&leg{Key: f.Key, site: f.site, at: at, syn: f.syn, newest: f.syn})
	}
	if err != nil {
		x.complain(agent, fmt.Sprintf("a connection of %v to %v passes unboosted: %v", f.Client, f.Server, err))
		x.Pass(f.syn)
	}
}

// Undriven is for who drives the switches no more: all first packets that waited there have gone on, unboosted.
func (x *Legs) Undriven() {
	clear(x.firsts.asked)
	for _, l := range x.all {
		if l.syn != 0 {
			x.end(l)
		}
	}
}

// Verdicts counts first packets by what became of them.
func (x *Legs) Verdicts() map[apiv1.BoostVerdict]uint64 { return maps.Clone(x.firsts.decided) }
