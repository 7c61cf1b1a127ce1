package controld

import (
	"log/slog"
	"net"
	"net/url"
	"strings"
)

// warnInTheClear says that the network's key goes over the wire for all to read: where the state is in an etcd that is
// not spoken to by TLS, or among controllers that do not.
func (c *Config) warnInTheClear(log *slog.Logger) {
	if c.Trust != TrustKeys {
		return
	}
	for _, endpoint := range c.Etcd {
		if inTheClear(endpoint) {
			log.Warn("the network's private key goes in the clear to etcd: whoever reads it on the way can make himself a member; use https:// with --etcd-ca", "etcd", endpoint)
			return
		}
	}
	if c.Cluster != nil && inTheClear(c.Cluster.Own()) {
		log.Warn("the network's private key goes in the clear among the controllers, and whoever reaches this port can read and change the state; use https:// with --peer-ca, --peer-cert and --peer-key", "peer", c.Cluster.Own())
	}
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
