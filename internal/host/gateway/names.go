package gateway

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"scaffold.dev/scaffold"
)

// How long an address of a name is used before it is looked up again, beside the flows that use it; and
// how soon again after it was not found.
const (
	fresh     = 5 * time.Second
	missFresh = time.Second
	lookLimit = 5 * time.Second
)

// A book knows the addresses of names. What it knows it goes on using while the host's daemon is away.
type book struct {
	host *scaffold.Host

	mu    sync.Mutex
	pages map[string]*page
}

type page struct {
	mu     sync.Mutex
	addr   netip.Addr // not valid: not found yet
	err    error      // of the last look
	until  time.Time
	asking bool
}

func newBook(host *scaffold.Host) *book { return &book{host: host, pages: map[string]*page{}} }

func (b *book) page(name string) *page {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pages[name]
	if p == nil {
		p = &page{}
		b.pages[name] = p
	}
	return p
}

// find returns the address of a name; only who asks for one that was never found waits.
func (b *book) find(ctx context.Context, name string) (netip.Addr, error) {
	p := b.page(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case p.addr.IsValid() && !now.Before(p.until) && !p.asking:
		p.asking = true
		go b.refresh(p, name) // ends by lookLimit
	case !p.addr.IsValid() && !now.Before(p.until):
		b.look(ctx, p, name)
	}
	if p.addr.IsValid() {
		return p.addr, nil
	}
	return p.addr, p.err
}

// look asks with the page locked: all who want the name wait for one answer.
func (b *book) look(ctx context.Context, p *page, name string) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	addr, err := b.host.Lookup(ctx, name)
	if p.err = err; err != nil {
		p.until = time.Now().Add(missFresh)
		return
	}
	p.addr, p.until = addr, time.Now().Add(fresh)
}

func (b *book) refresh(p *page, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), lookLimit)
	defer cancel()
	addr, err := b.host.Lookup(ctx, name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking, p.err = false, err
	p.until = time.Now().Add(missFresh)
	if err == nil {
		p.addr, p.until = addr, time.Now().Add(fresh)
	}
}

// trouble is what is wrong with a name, as far as anybody asked for it.
func (b *book) trouble(name string) error {
	p := b.page(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
