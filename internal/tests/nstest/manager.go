package nstest

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// Manager listens as a service manager does, for what this process and those that it starts tell it (sd_notify(3)).
// The function that it returns takes the next message.
func Manager(t testing.TB) (next func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		t.Helper()
		c.SetReadDeadline(time.Now().Add(Deadline)) // the read says so
		buf := make([]byte, 4096)
		n, err := c.Read(buf)
		if err != nil {
			t.Fatalf("the service manager hears nothing: %v", err)
		}
		return string(buf[:n])
	}
}
