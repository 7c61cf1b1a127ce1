package boostd

import (
	"log/slog"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/boost/options"
)

// choose has the settings say what the file leaves open, by what the kernel allows.
func (s *Settings) choose(allowed bool, log *slog.Logger) {
	if s.Control == options.BBR && !allowed {
		log.Warn("the file wants BBR, which this kernel does not have or does not let this agent choose: it is CUBIC", "next", "modprobe tcp_bbr; sysctl net.ipv4.tcp_allowed_congestion_control")
	}
	if !allowed {
		s.Control = options.CUBIC
	}
	if s.Control == "" {
		s.Control = options.BBR
	}
	if s.Connections != (options.Connections{}) {
		return
	}
	s.Connections = options.Fixed
	if s.Control == options.CUBIC {
		s.Connections = options.Found
	}
}

// allowsBBR asks the kernel whether connections of this process may use BBR.
func allowsBBR() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, options.BBR) == nil
}
