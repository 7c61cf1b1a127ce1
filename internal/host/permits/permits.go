package permits

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
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

// Keys are the host's.
type Keys interface {
	Now() ed25519.PrivateKey
	Public() ed25519.PublicKey
	Permitted(p wire.Permit, now time.Time) error // why a permit is not for this host
}

// A Config is what permits need of others.
type Config struct {
	Log       *slog.Logger
	Keys      Keys
	Presented string // directory of the permits that were presented
	Directory string // the operator's, of permits and of services' keys; empty: none
	Post      func(func())
	Challenge func() []byte              // of the session: what is signed in it quotes it; nothing while there is none
	Name      func(sid.ServiceID) string // of a service, for people
	// Again has the registry show anew what it serves of services of which there is news.
	Again func(news func(sid.ServiceID) bool)
}

// Permits are what this host may serve of services with a key. The loop owns them.
type Permits struct {
	Config
	best     map[sid.ServiceID]papers // of each service the one that lasts longest
	ended    map[sid.ServiceID]papers // and of those that have expired: shown where there is no other, so that the refusal says since when
	keys     map[sid.Suffix]serviceKey
	made     map[sid.ServiceID]papers // with those keys
	sent     map[sid.ServiceID][]byte // as the controller was shown them
	troubles []*apiv1.HeldPermit
}

// New has none until Take.
func New(cfg Config) *Permits {
	return &Permits{Config: cfg, best: map[sid.ServiceID]papers{}, keys: map[sid.Suffix]serviceKey{}, made: map[sid.ServiceID]papers{}, sent: map[sid.ServiceID][]byte{}}
}

// Show adds to a registration what it needs.
func (p *Permits) Show(g *apiv1.Registration, t sid.Triple) {
	have, ok := p.of(t.Service)
	challenge := p.Challenge()
	if !ok || len(challenge) == 0 {
		return
	}
	g.Permit = have.Append(nil)
	p.sent[t.Service] = g.Permit
	g.Signature = wire.Stand{Challenge: challenge, Triple: t}.Sign(p.Keys.Now())
}

// of is the permit for a service; with the service's own key it is made.
func (p *Permits) of(id sid.ServiceID) (papers, bool) {
	if k, ok := p.keys[id.Suffix]; ok {
		now, have := time.Now(), p.made[id]
		if have.ServiceKey != wire.Key(k.public()) || now.Add(ownPermitFor/2).Unix() > have.NotAfter {
			have = papers{wire.Delegate(k.key, id, p.Keys.Public(), now.Add(-permitSkew).Unix(), now.Add(ownPermitFor).Unix()), k.from}
			p.made[id] = have
		}
		return have, true
	}
	if have, ok := p.best[id]; ok {
		return have, true
	}
	have, ok := p.ended[id]
	return have, ok
}

// Take makes what was found what there is, and registers anew where that changes anything.
func (p *Permits) Take(found Found) {
	p.best, p.ended, p.keys = found.best, found.ended, found.keys
	for id := range p.made {
		if _, ok := p.keys[id.Suffix]; !ok {
			delete(p.made, id)
		}
	}
	for _, t := range found.troubles {
		if !slices.ContainsFunc(p.troubles, func(o *apiv1.HeldPermit) bool { return o.From == t.From && o.Trouble == t.Trouble }) {
			p.Log.Warn("a permit is of no use", "file", t.From, "reason", t.Trouble)
		}
	}
	p.troubles = found.troubles
	p.showAnew()
}

// showAnew registers again what has another permit now than the controller was shown, or none.
func (p *Permits) showAnew() {
	now := map[sid.ServiceID][]byte{}
	p.Again(func(id sid.ServiceID) bool {
		raw, looked := now[id]
		if have, ok := p.of(id); ok && !looked {
			raw = have.Append(nil)
		}
		now[id] = raw
		return !bytes.Equal(p.sent[id], raw)
	})
	for id, raw := range now {
		if raw == nil {
			delete(p.sent, id)
		}
	}
}

// List is what people are shown.
func (p *Permits) List() []*apiv1.HeldPermit {
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

func (p *Permits) told(id sid.ServiceID, have papers) *apiv1.HeldPermit {
	h := &apiv1.HeldPermit{Service: p.Name(id), NotAfterUnix: have.NotAfter, From: have.from}
	if err := have.Current(time.Now().Unix()); err != nil {
		h.Trouble = err.Error()
	}
	return h
}

// Held describes a permit that was presented.
func (p *Permits) Held(x wire.Permit) *apiv1.HeldPermit {
	return p.told(x.Service, papers{x, filepath.Base(p.Presented)})
}
