package obs

import (
	"net"
	"os"
	"strings"
)

// TellManager tells the service manager how the process stands: READY=1 once it does its work, sd_notify(3). Where no
// manager asks for it (NOTIFY_SOCKET is unset) it does nothing.
func TellManager(lines ...string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	c, err := net.Dial("unixgram", path) // "@" for an abstract one is Go's notation, too
	if err != nil {
		return // nobody listens: the manager's own trouble
	}
	defer c.Close()
	c.Write([]byte(strings.Join(lines, "\n"))) //nolint:errcheck // as above
}
