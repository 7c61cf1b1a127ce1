package gateway

import (
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/api"
)

// DefaultSocket is where a gateway's API is.
const DefaultSocket = "/run/scaffold/gateway.sock"

// What a gateway does when nobody says else.
const (
	DefaultDrainWait  = 5 * time.Second
	DefaultDrainLimit = time.Minute
	DefaultConnect    = 10 * time.Second
	DefaultUDPIdle    = time.Minute
	DefaultKeepAlive  = time.Minute
)

// Config is what an operator says.
type Config struct {
	Listen []string // as ParseListen reads them
	Socket string   // of the API
	Daemon string   // endpoint of the host's daemon; "": as package scaffold finds it
	HTTP   string   // host:port of /metrics and /healthz, besides Socket; "": nowhere else

	MaxConnections int           // of all listeners; 0: as many as open files allow
	PerClient      int           // of one client (IPv6: one /64); 0: no limit of its own
	Connect        time.Duration // how long a connection may take to an instance, all tries together
	KeepAlive      time.Duration // of silence before a client or server is asked whether it is there
	UDPIdle        time.Duration
	DrainWait      time.Duration // how long listeners go on when health already says no
	DrainLimit     time.Duration // how long flows are waited for at most
	LogFlows       bool          // a line for each flow
	TakeOver       bool          // from the gateway that answers at Socket

	// Reload reads the configuration again; nil: there is nothing to read.
	Reload func() (Config, error)

	listens []Listen
}

// Check fills in what is missing and refuses what cannot be meant.
func (c *Config) Check() error {
	if c.Socket == "" {
		c.Socket = DefaultSocket
	}
	if c.Daemon != "" {
		if _, err := api.ParseEndpoint(c.Daemon); err != nil {
			return err
		}
	}
	if _, port, err := net.SplitHostPort(c.HTTP); c.HTTP != "" && (err != nil || api.CheckPort(port) != nil) {
		return fmt.Errorf("--metrics %q: want HOST:PORT", c.HTTP)
	}
	for _, d := range []struct {
		flag string
		d    *time.Duration
		or   time.Duration
	}{{"connect-timeout", &c.Connect, DefaultConnect}, {"keepalive", &c.KeepAlive, DefaultKeepAlive}, {"udp-idle", &c.UDPIdle, DefaultUDPIdle}} {
		if *d.d == 0 {
			*d.d = d.or
		}
		if *d.d < time.Second {
			return fmt.Errorf("--%s %v: want at least 1s", d.flag, *d.d)
		}
	}
	if c.DrainWait < 0 || c.DrainLimit < 0 {
		return fmt.Errorf("--drain-wait %v --drain-limit %v: times are not negative", c.DrainWait, c.DrainLimit)
	}
	if c.MaxConnections < 0 || c.PerClient < 0 {
		return fmt.Errorf("--max-connections %d --per-client %d: want whole numbers from 0 up", c.MaxConnections, c.PerClient)
	}
	return c.parse()
}

// parse reads the listeners and finds those that are there twice.
func (c *Config) parse() error {
	if len(c.Listen) == 0 {
		return fmt.Errorf("nothing to listen on: want at least one --listen %s", grammar)
	}
	c.listens = nil
	taken := map[socket]string{}
	for _, text := range c.Listen {
		l, err := ParseListen(text)
		if err != nil {
			return err
		}
		for _, s := range l.sockets() {
			if other, ok := taken[s]; ok {
				return fmt.Errorf("--listen %q: %v is taken by --listen %q", text, l.At(), other)
			}
			taken[s] = text
		}
		c.listens = append(c.listens, l)
	}
	return nil
}

// filesPerFlow is how many open files a connection takes at the worst: two sockets, a pipe each way.
const filesPerFlow = 6

// room is how many connections fit: as asked for, but never more than open files allow.
func (c *Config) room() int {
	var files unix.Rlimit
	fit := 1 << 20
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil && files.Cur < 1<<30 {
		fit = max(1, (int(files.Cur)-64)/filesPerFlow)
	}
	if c.MaxConnections > 0 {
		return min(c.MaxConnections, fit)
	}
	return fit
}
