package places

import (
	"crypto/ed25519"
	"log/slog"
	"net/netip"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/host/routing"
	"scaffold.dev/scaffold/sid"
)

// A Config is what places need of others. Beside, Order and Flows may be set later, before there is a place.
type Config struct {
	Log      *slog.Logger
	Identity uint64   // low half of the host's own address
	Beside   bool     // a router works in the host's namespace
	Order    []string // of uplinks, the preferred one first
	Post     func(func())
	Files    Files
	Keys     Keys
	Member   func() bool // the host has a credential, or one that cannot be read: unsigned messages are not for it
	Edges    Edges
	Uplinks  Uplinks
	Flows    Flows
	Settled  func(*Home) error // the host is at its places: programs may serve
}

// Files keep what a restarted daemon needs to know.
type Files interface {
	Read(name string, v any) bool
	WriteJSON(name string, v any) error
	Remove(name string)
}

// Keys sign for the host.
type Keys interface {
	Now() ed25519.PrivateKey
	Sign(k *session.Keys, succession []byte)
}

// Edges open the edge, and tell all who have to do with it.
type Edges interface {
	Open(space sid.Space, device string) (*host.Edge, error)
	Close() // for good: guests and flows go with it
}

// Uplinks are the host's interfaces.
type Uplinks interface {
	Find(name string) (index, mtu int, ok bool)
	// Resume takes the router of before for the uplink's until one greets.
	Resume(name string, index int, router netip.Addr, before *apiv1.Attachment) (now int, ok bool)
}

// Flows hear where the host is.
type Flows interface {
	BindTo(device string) // of the VRF in which the host's programs are, "" where they are in none
	Moved(from, to sid.Locator)
	Back(l sid.Locator)
	Hush(l sid.Locator)
	Holds(l sid.Locator) bool
	Trusts(k *session.Keys)
	Distrusts()
}

// Places are where the host is and was. The loop owns them.
type Places struct {
	Config
	list            // where it is now
	home   *Home    // nil until the host was told where it is
	former []Former // locators that it had, the oldest first
	domain routing.Domain
	kernel routing.Setup
	edge   *host.Edge // nil before there is one

	unsaved  bool // home, list or former changed
	diskFull bool // or something else keeps them from being saved
	retries  bool // saving is tried again
	awaiting bool // no uplink is there, and await is called again
}

// New is at those places, most often at none, until Settle or Resume.
func New(cfg Config, at ...Place) *Places { return &Places{Config: cfg, list: at} }

// Home is the network that the host is in, nil until it was told.
func (p *Places) Home() *Home { return p.home }

// All are in the order of preference; they are not to be changed.
func (p *Places) All() []Place { return p.list }

// Last is the locator that an uplink has or had last.
func (p *Places) Last(uplink string) (l sid.Locator, ok bool) {
	if at := p.On(uplink); at != nil {
		return at.Locator, true
	}
	for _, f := range slices.Backward(p.former) {
		if f.Uplink == uplink {
			return f.Locator, true
		}
	}
	return 0, false
}

// With is the list of places with this one in the stead of that of the same uplink.
func (p *Places) With(at Place) []Place {
	rest := slices.DeleteFunc(slices.Clone(p.list), func(o Place) bool { return o.Uplink == at.Uplink })
	return p.InOrder(append(rest, at))
}

// InOrder sorts places by preference, which is the order of --uplink.
func (p *Places) InOrder(all []Place) []Place {
	slices.SortStableFunc(all, func(a, b Place) int { return p.rank(a.Uplink) - p.rank(b.Uplink) })
	return all
}

func (p *Places) rank(uplink string) int { return slices.Index(p.Order, uplink) }

// LeadsHere reports whether what arrives for services comes by the interface: it is an uplink, or the device of the VRF
// that the uplinks are in.
func (p *Places) LeadsHere(index int) bool {
	return p.domain.Is(index) || slices.ContainsFunc(p.list, func(at Place) bool { return at.Index == index })
}

// GivesToUnbound reports whether sockets that are bound to no device get what arrives.
func (p *Places) GivesToUnbound(proto sid.Proto) bool { return p.domain.GivesToUnbound(proto) }

// VRF is the device of the one that the uplinks are in, "" where they are in none.
func (p *Places) VRF() string { return p.domain.Device() }

// Clear takes the host's set-up out of the kernel.
func (p *Places) Clear() { p.kernel.Remove() }
