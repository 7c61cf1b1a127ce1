package config

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/controller/store"
)

// ErrTrust says that what the flags say about keys cannot hold for the network that is stored.
var ErrTrust = errors.New("the network is not what --trust says")

// ErrKeysMeanwhile says that another controller has made the network one with keys.
var ErrKeysMeanwhile = errors.New("another controller has given keys to it meanwhile")

// loopbackListen is where an open network is reached unless an address is said: by this machine.
var loopbackListen = []string{"127.0.0.1:23728", "[::1]:23728"}

// Stored is where it says whether the network has keys.
type Stored interface {
	fmt.Stringer
	Choice(context.Context) (store.Choice, error)
	Kept() []store.Peer
}

// choose settles whether the network has keys. One that has a key keeps it whatever is said; a new one gets a key unless
// somebody said otherwise; an open one of before that rule stays open until somebody says keys.
func (c *Config) choose(ctx context.Context, s Stored, log *slog.Logger) (store.Choice, error) {
	have, err := s.Choice(ctx)
	if err != nil {
		return have, err
	}
	c.trustSaid = c.Trust != ""
	switch {
	case have.Key && c.Trust == TrustOpen:
		return have, c.hasKeys(s)
	case c.trustSaid:
	case have.Key, !have.Begun, have.Trust == TrustKeys:
		c.Trust = TrustKeys
	default:
		c.Trust = TrustOpen
	}
	if !have.Begun && c.Trust == TrustOpen {
		log.Warn("this network is made open: whoever reaches the controller may join, steer every service and copy all that is stored")
	}
	return have, nil
}

func (c *Config) hasKeys(s fmt.Stringer) error {
	return fmt.Errorf("%w: the network %s in %v has keys, and it is never opened again: leave --trust open out (in the configuration file: trust: keys); an open network is another one, with an empty directory (--data)", ErrTrust, c.Network, s)
}

// Disagrees says why this controller cannot be one of the network's: what was stored meanwhile, by others, is not what
// it goes by.
func (c *Config) Disagrees(s fmt.Stringer, state store.State) error {
	open := len(state.Key) == 0 && state.Trust != TrustKeys
	switch {
	case state.Epoch == 0: // nobody has led it yet
		return nil
	case c.Trust == TrustOpen && !open && !c.trustSaid: // it would choose otherwise now
		return fmt.Errorf("the network %s in %v: %w: start this controller again (its unit does), and it has them too, as nothing says otherwise", c.Network, s, ErrKeysMeanwhile)
	case c.Trust == TrustOpen && !open:
		return c.hasKeys(s)
	case c.Trust == TrustKeys && open && !c.trustSaid:
		return fmt.Errorf("%w: the network %s in %v is open, and this controller was not told so: give it --trust open as long as the network is, or --trust keys to make it one with keys", ErrTrust, c.Network, s)
	}
	return nil
}

// listensAt are the endpoints of the API beside the socket. before says that the network was there before open ones
// were kept to an address: it goes on where it was, or an upgrade would cut its members off.
func (c *Config) listensAt(before bool) ([]string, error) {
	open := c.Trust == TrustOpen && !before
	switch {
	case !c.ListenByTrust && open:
		return c.Listen, c.nameAddresses()
	case !c.ListenByTrust:
		return c.Listen, nil
	case !open:
		return []string{DefaultListen}, nil
	case c.Cluster != nil: // the address by which the others reach this one
		at, err := c.concrete(DefaultListen)
		return []string{at}, err
	}
	return loopbackListen, nil
}

// nameAddresses refuses an open network on all addresses.
func (c *Config) nameAddresses() error {
	for _, endpoint := range c.Listen {
		if everywhere(endpoint) {
			return fmt.Errorf("%w: an open network does not listen on all addresses, as --listen %s does: whoever reaches one of them rules it: name the address that its members reach, as --listen 192.0.2.1:23728, or leave --trust open out", ErrTrust, endpoint)
		}
	}
	return nil
}

// everywhere reports whether an endpoint is at no address of its own.
func everywhere(endpoint string) bool {
	e, err := api.ParseEndpoint(endpoint)
	if err != nil || e.Network != "tcp" {
		return false
	}
	at, err := netip.ParseAddrPort(e.Address)
	return err == nil && at.Addr().IsUnspecified() || e.Address[0] == ':'
}

// wasOpenBefore reports whether the network is an open one that began before --trust open had to be said.
func wasOpenBefore(have store.Choice) bool { return have.Begun && have.Trust == "" && !have.Key }
