package boostd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"scaffold.dev/scaffold/internal/boost/announce"
	"scaffold.dev/scaffold/internal/boost/ends"
)

// announceEach is how often a switch at a port is shown that the agent is there.
const announceEach = time.Second

var (
	errDown       = errors.New("it is down")
	errNoEthernet = errors.New("it has no address of Ethernet")
)

// An announcer says at each port of the agent that the agent is there, as soon as a controller has given it a key. While no
// controller is there it goes on: the next one, or the same again, may know the key.
type announcer struct {
	name  string
	ports []string
	look  func(port string) (*net.Interface, error) // each time: what is told of a port may change
	send  func(ifindex int, frame []byte) error
	log   *slog.Logger
	keys  chan []byte // the newest, if run has not taken it yet

	// Of run alone.
	key     []byte
	made    uint64 // announcements, under whatever key: no number comes twice under one
	skipped map[string]bool
}

func newAnnouncer(s Settings, kernel *ends.Ends, log *slog.Logger) *announcer {
	return &announcer{name: s.Name, ports: s.Ports, look: net.InterfaceByName, send: kernel.Announce, log: log,
		keys: make(chan []byte, 1), skipped: map[string]bool{}}
}

// use has what follows announced under another key, at once. One goroutine calls it.
func (a *announcer) use(key []byte) {
	select {
	case <-a.keys: // of a stream that has ended meanwhile
	default:
	}
	a.keys <- key
}

// run announces until ctx ends.
func (a *announcer) run(ctx context.Context) {
	tick := time.NewTicker(announceEach)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case a.key = <-a.keys:
			tick.Reset(announceEach)
		case <-tick.C:
		}
		if a.key != nil {
			a.all()
		}
	}
}

// all announces at each port, and says once of one where that cannot be.
func (a *announcer) all() {
	for _, port := range a.ports {
		err := a.at(port)
		switch {
		case err != nil && !a.skipped[port]:
			a.log.Warn("not announced at a port: a switch there does not find this agent", "port", port, "why", err)
		case err == nil && a.skipped[port]:
			a.log.Info("announced at the port again", "port", port)
		}
		a.skipped[port] = err != nil
	}
}

func (a *announcer) at(port string) error {
	i, err := a.look(port)
	switch {
	case err != nil:
		return err
	case i.Flags&net.FlagUp == 0:
		return errDown
	case len(i.HardwareAddr) != 6:
		return errNoEthernet
	}
	out := announce.Announcement{Agent: a.name, Port: port, MAC: [6]byte(i.HardwareAddr), Made: a.made + 1}
	if err := out.Check(); err != nil {
		return err
	}
	a.made++ // also where it does not go out: nobody knows how far it came
	return a.send(i.Index, out.Append(nil, a.key))
}
