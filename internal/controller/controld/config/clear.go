package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/health"
)

// ErrClear says that the state of a network with keys would cross a wire that others may read.
var ErrClear = errors.New("the state of a network with keys would go in the clear")

// What to do about it, with whose flags.
const (
	toPeers = "https:// with --peer-ca, --peer-cert and --peer-key (docs/operate.md#several-controllers); where nobody but the controllers reaches that address, --peer-clear"
	toEtcd  = "https:// with --etcd-ca; where nobody but etcd and the controllers is on the way, --etcd-clear"
)

// refuseNewPeers ends the start of a controller that has nothing stored yet and would be reached in the clear by the
// others: before it asks one of them to take it in. Where something is stored that says whether there are keys.
func (c *Config) refuseNewPeers() error {
	if c.Cluster == nil || c.PeerClear || c.Trust == TrustOpen || store.HasMember(c.Data) {
		return nil
	}
	for _, p := range append([]store.Peer{{URL: c.Cluster.Own()}}, c.Cluster.Members...) {
		if inTheClear(p.URL) {
			return refusedPeer(p.URL, "; if the network is an open one, --trust open")
		}
	}
	return nil
}

func refusedPeer(url, or string) error {
	return fmt.Errorf("%w: whoever reaches the peer %s can read and change all of it, the network's private key too: want %s%s", ErrClear, url, toPeers, or)
}

// refuseClear ends the start of a controller that would put the network's key where others read it. One that did so
// before this was refused goes on, and is warned: its network would be without controllers after an upgrade.
func (c *Config) refuseClear(have store.Choice, kept []store.Peer) error {
	if c.Trust != TrustKeys {
		return nil
	}
	open := have.Begun && !have.Key && have.Trust != TrustKeys // it is about to get its key
	if c.Cluster != nil && inTheClear(c.Cluster.Own()) && !c.PeerClear {
		before := slices.ContainsFunc(kept, func(p store.Peer) bool { return inTheClear(p.URL) })
		if open || !before {
			return refusedPeer(c.Cluster.Own(), "")
		}
	}
	if at := slices.IndexFunc(c.Etcd, inTheClear); at >= 0 && !c.EtcdClear && (open || !have.Begun) {
		return fmt.Errorf("%w: whoever is between here and the etcd at %s can read and change all of it, the network's private key too: want %s", ErrClear, c.Etcd[at], toEtcd)
	}
	return nil
}

// WarnInTheClear says that the network's key goes over the wire for all to read, and nobody said that it may: where the
// state is in an etcd that is not spoken to by TLS, or among controllers that do not.
func (c *Config) WarnInTheClear(log *slog.Logger) {
	if c.Trust != TrustKeys {
		return
	}
	if at := slices.IndexFunc(c.Etcd, inTheClear); at >= 0 && !c.EtcdClear {
		log.Warn("the network's private key goes in the clear to etcd: whoever reads it on the way can make himself a member; a new network is refused so: want "+toEtcd, "etcd", c.Etcd[at])
	}
	if c.Cluster != nil && inTheClear(c.Cluster.Own()) && !c.PeerClear {
		log.Warn("the network's private key goes in the clear among the controllers, and whoever reaches this port can read and change the state; a new controller is refused so: want, one controller after the other, "+toPeers, "peer", c.Cluster.Own())
	}
}

// ClearTo is where the state crosses a wire that others may read.
func (c *Config) ClearTo(peers []store.Peer) health.Clear {
	found := health.Clear{Keys: c.Trust == TrustKeys}
	for _, endpoint := range c.Etcd {
		if inTheClear(endpoint) {
			found.Etcd = append(found.Etcd, endpoint)
		}
	}
	for _, p := range peers {
		if c.Cluster != nil && inTheClear(p.URL) {
			found.Peers = append(found.Peers, p.URL)
		}
	}
	slices.Sort(found.Peers) // every controller says the same
	return found
}

// inTheClear reports whether an endpoint of etcd is neither by TLS nor on this machine.
func inTheClear(endpoint string) bool {
	if strings.HasPrefix(endpoint, "https://") || strings.HasPrefix(endpoint, "unix") {
		return false
	}
	host := endpoint
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		host = u.Host
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// OpenTo is where others than this machine reach an open network.
func (c *Config) OpenTo() (list []string) {
	if c.Trust == TrustKeys {
		return nil
	}
	for _, endpoint := range c.Listen {
		e, err := api.ParseEndpoint(endpoint)
		if err != nil || e.Network != "tcp" {
			continue
		}
		host, _, _ := net.SplitHostPort(e.Address)
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			list = append(list, e.Address)
		}
	}
	return list
}

// Certificates are the files of those that this controller shows, by what it is with them.
func (c *Config) Certificates() map[string]string {
	files := map[string]string{}
	if c.Cluster != nil && c.Cluster.CertFile != "" {
		files["peer"] = c.Cluster.CertFile
	}
	if c.EtcdCertFile != "" {
		files["etcd"] = c.EtcdCertFile
	}
	return files
}
