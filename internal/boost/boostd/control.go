package boostd

import (
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"
)

// controls are the congestion controls that a file may name.
var controls = []string{bbr, cubic}

const (
	bbr   = "bbr"
	cubic = "cubic"
)

// Connections is how many data connections a trunk has: First of them, or as many as the agents find, from there to Most; and
// up to Open where the other agent wants them.
type Connections struct{ First, Most, Open int }

// most is how many agents find. More than 32 have 70 MB of buffers at each agent, for each other one.
const most = 32

var (
	// fixed is how many there are with BBR, of which one brings what several do: four outlive the death of any, spread over
	// queues and routes of equal cost, and are the flows that `fair` has beside others. The other agent may have no BBR.
	fixed = Connections{4, 4, most}
	// found is without it. What several connections of CUBIC bring depends on loss, and too many take from others.
	found = Connections{1, most, most}
)

func (c Connections) String() string {
	if c.Most > c.First {
		return fmt.Sprintf("auto, %d to %d", c.First, c.Most)
	}
	if c.Open > c.First {
		return fmt.Sprintf("%d, up to %d where the other agent wants more", c.First, c.Open)
	}
	return fmt.Sprint(c.First)
}

// choose has the settings say what the file leaves open, by what the kernel allows.
func (s *Settings) choose(allowed bool, log *slog.Logger) {
	if s.Control == bbr && !allowed {
		log.Warn("the file wants BBR, which this kernel does not have or does not let this agent choose: it is CUBIC", "next", "modprobe tcp_bbr; sysctl net.ipv4.tcp_allowed_congestion_control")
	}
	if !allowed {
		s.Control = cubic
	}
	if s.Control == "" {
		s.Control = bbr
	}
	if s.Connections != (Connections{}) {
		return
	}
	s.Connections = fixed
	if s.Control == cubic {
		s.Connections = found
	}
}

// allowsBBR asks the kernel whether connections of this process may use BBR.
func allowsBBR() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, bbr) == nil
}
