package legs

import (
	"context"
	"errors"
	"net"
	"net/netip"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/boost/frame"
)

// A first is a client's first packet, which waits at its switch: agent.SYN.
type first struct {
	l              *Legs
	number, lane   uint64
	client, server netip.AddrPort
}

func (f *first) Lane() uint64           { return f.lane }
func (f *first) Client() netip.AddrPort { return f.client }
func (f *first) Server() netip.AddrPort { return f.server }

// Options are not known here. Another agent, which would need them, cannot go on with a connection that has this one's port.
func (f *first) Options() frame.Options { return frame.Options{} }

// Accept has the client's packets come to a port of this machine's, and waits for the client there.
func (f *first) Accept(ctx context.Context) (*net.TCPConn, frame.Options, error) {
	own, err := f.l.from(f.client.Addr())
	var at Awaited
	if err == nil {
		at, err = f.l.kernel.Await(own, f.client)
	}
	if err != nil {
		return nil, frame.Options{}, errors.Join(err, f.Pass())
	}
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	k := key{false, f.client, f.server}
	f.l.mu.Lock()
	err = f.l.tell(f.verdict(apiv1.BoostVerdict_BOOST_VERDICT_ACCEPT, at.At().String()))
	if err == nil {
		f.l.all[k] = &leg{lane: f.lane, at: at.At(), abort: abort}
	}
	f.l.mu.Unlock()
	if err != nil {
		at.Close()
		return nil, frame.Options{}, err
	}
	c, mine, err := at.Accept(ctx)
	if err != nil {
		f.l.over(k, at.At())
	} else {
		f.l.stands(k, at.At())
	}
	return c, mine, err
}

// Pass lets it go on to the server, unboosted.
func (f *first) Pass() error { return f.decide(apiv1.BoostVerdict_BOOST_VERDICT_PASS) }

// Refuse lets the server say itself that it refuses.
func (f *first) Refuse() error { return f.Pass() }

// Drop is silent, as the server is.
func (f *first) Drop() error { return f.decide(apiv1.BoostVerdict_BOOST_VERDICT_DROP) }

func (f *first) decide(v apiv1.BoostVerdict) error {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	return f.l.tell(f.verdict(v, ""))
}

func (f *first) verdict(v apiv1.BoostVerdict, at string) *apiv1.BoostReport {
	return &apiv1.BoostReport{Report: &apiv1.BoostReport_First{First: &apiv1.BoostFirst{Number: f.number, Verdict: v, At: at}}}
}
