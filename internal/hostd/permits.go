package hostd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/permit"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A service's key that lies at the host permits for so long at a time; it is asked again when half of that is over.
const (
	ownPermitFor = 24 * time.Hour
	permitSkew   = 5 * time.Minute // clocks differ
)

// papers are a permit of this host's.
type papers struct {
	wire.Permit
	from string // file
}

// permits are what this host may serve of services with a key. The loop owns them.
type permits struct {
	d        *daemon
	best     map[sid.ServiceID]papers // of each service the one that lasts longest
	keys     map[sid.Suffix]serviceKey
	made     map[sid.ServiceID]papers // with those keys
	sent     map[sid.ServiceID][]byte // as the controller was shown them
	troubles []*apiv1.HeldPermit
}

func newPermits(d *daemon) *permits {
	return &permits{d: d, best: map[sid.ServiceID]papers{}, keys: map[sid.Suffix]serviceKey{}, made: map[sid.ServiceID]papers{}, sent: map[sid.ServiceID][]byte{}}
}

// show adds to a registration what it needs.
func (p *permits) show(g *apiv1.Registration, t sid.Triple) {
	have, ok := p.of(t.Service)
	if !ok || len(p.d.challenge) == 0 {
		return
	}
	g.Permit = have.Append(nil)
	p.sent[t.Service] = g.Permit
	g.Signature = wire.Stand{Challenge: p.d.challenge, Triple: t}.Sign(p.d.keys.now())
}

// of is the permit for a service; with the service's own key it is made.
func (p *permits) of(id sid.ServiceID) (papers, bool) {
	if k, ok := p.keys[id.Suffix]; ok {
		now, have := time.Now(), p.made[id]
		if have.ServiceKey != wire.Key(k.public()) || now.Add(ownPermitFor/2).Unix() > have.NotAfter {
			have = papers{wire.Delegate(k.key, id, p.d.publicKey(), now.Add(-permitSkew).Unix(), now.Add(ownPermitFor).Unix()), k.from}
			p.made[id] = have
		}
		return have, true
	}
	have, ok := p.best[id]
	return have, ok
}

func (d *daemon) publicKey() ed25519.PublicKey { return publicOf(d.keys.now()) }

// take makes what was found what there is, and registers anew where that changes anything.
func (p *permits) take(found foundPermits) {
	p.best, p.keys = found.best, found.keys
	for id := range p.made {
		if _, ok := p.keys[id.Suffix]; !ok {
			delete(p.made, id)
		}
	}
	for _, t := range found.troubles {
		if !slices.ContainsFunc(p.troubles, func(o *apiv1.HeldPermit) bool { return o.From == t.From && o.Trouble == t.Trouble }) {
			p.d.log.Warn("a permit is of no use", "file", t.From, "reason", t.Trouble)
		}
	}
	p.troubles = found.troubles
	p.showAnew()
}

// showAnew registers again what has another permit now than the controller was shown, or none.
func (p *permits) showAnew() {
	now := map[sid.ServiceID][]byte{}
	for t, i := range p.d.serving.instances {
		raw, looked := now[t.Service]
		if have, ok := p.of(t.Service); ok && !looked {
			raw = have.Append(nil)
		}
		now[t.Service] = raw
		if !bytes.Equal(p.sent[t.Service], raw) {
			i.reconsider()
			if _, told := p.d.serving.told[t]; told {
				p.d.serving.told[t] = verdict{reason: "to be told again"}
			}
			p.d.serving.dirty = true
		}
	}
	for id, raw := range now {
		if raw == nil {
			delete(p.sent, id)
		}
	}
}

// list is what people are shown.
func (p *permits) list() []*apiv1.HeldPermit {
	var all []*apiv1.HeldPermit
	for id, have := range p.best {
		if _, own := p.keys[id.Suffix]; !own {
			all = append(all, p.told(id, have))
		}
	}
	for id, have := range p.made {
		all = append(all, p.told(id, have))
	}
	all = append(all, p.troubles...)
	slices.SortFunc(all, func(a, b *apiv1.HeldPermit) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.From, b.From))
	})
	return all
}

func (p *permits) told(id sid.ServiceID, have papers) *apiv1.HeldPermit {
	h := &apiv1.HeldPermit{Service: p.d.serviceName(id), NotAfterUnix: have.NotAfter, From: have.from}
	if err := have.Current(time.Now().Unix()); err != nil {
		h.Trouble = err.Error()
	}
	return h
}

// PresentPermit keeps a permit, in the state directory, until it expires or another takes its place.
func (l *local) PresentPermit(ctx context.Context, req *connect.Request[apiv1.PresentPermitRequest]) (*connect.Response[apiv1.HeldPermit], error) {
	p, err := wire.ParsePermit(req.Msg.Permit)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	err = l.d.permitted(p, time.Now())
	if err != nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("%w (this is %s, with the key %08x)", err, l.d.cfg.Name, wire.KeyID(l.d.publicKey())))
	}
	if err := l.d.store.keepPermit(p.Service.String()+permitSuffix, permit.Format(p, "", l.d.cfg.Name)); err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	found := l.d.findPermits(time.Now())
	answer := &apiv1.HeldPermit{}
	if !l.d.call(ctx, func() {
		l.d.permits.take(found)
		answer = l.d.permits.told(p.Service, papers{p, permitsDir})
	}) {
		return nil, errLeaving
	}
	return connect.NewResponse(answer), nil
}
