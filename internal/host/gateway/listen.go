package gateway

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/core/names"
)

// A Listen is one --listen: where clients come, and what they get.
type Listen struct {
	Network string     // "tcp", "udp" or "unix"
	Host    string     // as typed; "" is every address, of IPv4 and IPv6
	Addr    netip.Addr // of Host; not valid where that is "" or a path
	Port    uint16     // 0 of a Unix socket
	Path    string     // of a Unix socket

	Service string // name, without the domain
	To      uint16 // port of the service
	Options
}

// Options are what stands behind a listener's service.
type Options struct {
	Proxy int           // version of the PROXY protocol, 0: none
	Max   int           // connections or sessions at once, 0: as many as the gateway takes
	Idle  time.Duration // after which a UDP session has ended, 0: the gateway's
}

// grammar is what errors show.
const grammar = "ADDRESS:PORT[/udp]=SERVICE[:PORT][,proxy=v1|v2][,max=N][,idle=TIME]"

// ParseListen reads one --listen.
func ParseListen(text string) (Listen, error) {
	l, err := parseListen(text)
	if err != nil {
		return l, fmt.Errorf("--listen %q: %w", text, err)
	}
	return l, nil
}

func parseListen(text string) (l Listen, err error) {
	at, to, ok := strings.Cut(text, "=")
	if !ok || at == "" || to == "" {
		return l, fmt.Errorf("want %s", grammar)
	}
	if err := l.parseAt(at); err != nil {
		return l, err
	}
	to, options, _ := strings.Cut(to, ",")
	if err := l.parseTo(to); err != nil {
		return l, err
	}
	return l, l.parseOptions(options)
}

// parseAt reads where clients come.
func (l *Listen) parseAt(at string) (err error) {
	if path, ok := strings.CutPrefix(at, "unix:"); ok {
		l.Network, l.Path = "unix", path
		if len(path) == 0 || len(path) > maxPath {
			return fmt.Errorf("the path of a Unix socket has 1 to %d characters", maxPath)
		}
		return nil
	}
	at, l.Network, _ = strings.Cut(at, "/")
	switch l.Network {
	case "":
		l.Network = "tcp"
	case "tcp", "udp":
	default:
		return fmt.Errorf("protocol %q: want tcp or udp", l.Network)
	}
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return fmt.Errorf("%q: want ADDRESS:PORT, an IPv6 address in brackets", at)
	}
	if l.Port, err = parsePort(port); err != nil {
		return err
	}
	if host == "" || host == "*" {
		return nil
	}
	l.Host = host
	if l.Addr, err = netip.ParseAddr(host); err != nil {
		return fmt.Errorf("%q is no address: want an IPv4 or IPv6 address of this host, 0.0.0.0 for all of IPv4, [::] for all of IPv6, * for both", host)
	}
	if l.Addr.Is4In6() {
		return fmt.Errorf("%q is an IPv4 address in disguise: write %v", host, l.Addr.Unmap())
	}
	return nil
}

// maxPath is what fits into sockaddr_un with its final zero.
const maxPath = 107

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("port %q: want a number from 1 to 65535", text)
	}
	return uint16(n), nil
}

// parseTo reads what clients get.
func (l *Listen) parseTo(to string) (err error) {
	name, port, hasPort := strings.Cut(to, ":")
	if l.Service, err = names.CleanService(name, ""); err != nil {
		return err
	}
	switch {
	case hasPort:
		l.To, err = parsePort(port)
	case l.Network == "unix":
		err = fmt.Errorf("a Unix socket has no port: say that of the service, %s:PORT", name)
	default:
		l.To = l.Port
	}
	return err
}

func (l *Listen) parseOptions(text string) error {
	if text == "" {
		return nil
	}
	seen := map[string]bool{}
	for option := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(option, "=")
		if seen[key] {
			return fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		if err := l.parseOption(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (l *Listen) parseOption(key, value string) (err error) {
	switch key {
	case "proxy":
		switch value {
		case "v1":
			l.Proxy = 1
		case "v2":
			l.Proxy = 2
		default:
			return fmt.Errorf("proxy=%s: want v1 or v2, of the PROXY protocol", value)
		}
		if l.Proxy == 1 && l.Network == "udp" {
			return fmt.Errorf("proxy=v1 knows no datagrams: want proxy=v2")
		}
	case "max":
		if l.Max, err = strconv.Atoi(value); err != nil || l.Max < 1 {
			return fmt.Errorf("max=%s: want a whole number from 1 up", value)
		}
	case "idle":
		if l.Network != "udp" {
			return fmt.Errorf("idle is of UDP sessions: a TCP connection lasts as long as its two ends do")
		}
		if l.Idle, err = time.ParseDuration(value); err != nil || l.Idle < time.Second {
			return fmt.Errorf("idle=%s: want a time from 1s up", value)
		}
	default:
		return fmt.Errorf("%q: want proxy, max or idle", key)
	}
	return nil
}

// At is where clients come, as it is shown and as two configurations are compared.
func (l Listen) At() string {
	switch {
	case l.Network == "unix":
		return "unix:" + l.Path
	case l.Network == "udp":
		return l.hostPort() + "/udp"
	}
	return l.hostPort()
}

func (l Listen) hostPort() string {
	host := l.Host
	if host == "" {
		host = "*"
	}
	return net.JoinHostPort(host, strconv.Itoa(int(l.Port)))
}

// Target is what clients get, as it is shown.
func (l Listen) Target() string { return net.JoinHostPort(l.Service, strconv.Itoa(int(l.To))) }

// sockets are what is opened for it: network and address, as package net takes them. An address is of one
// family, so that 0.0.0.0:80 and [::]:80 can lead to two services.
func (l Listen) sockets() []socket {
	switch {
	case l.Network == "unix":
		return []socket{{"unix", l.Path}}
	case l.Host == "":
		port := ":" + strconv.Itoa(int(l.Port))
		return []socket{{l.Network + "4", "0.0.0.0" + port}, {l.Network + "6", "[::]" + port}}
	case l.Addr.Is4():
		return []socket{{l.Network + "4", l.hostPort()}}
	}
	return []socket{{l.Network + "6", l.hostPort()}}
}

// A socket is one that is listened on, as package net names it.
type socket struct{ network, address string }

func (s socket) String() string { return s.network + " " + s.address }
