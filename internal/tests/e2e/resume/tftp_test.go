package resume

import (
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"
)

// TestATFTPTransferGoesOnElsewhere: the client is Debian's, and asks again by its own timer.
func TestATFTPTransferGoesOnElsewhere(t *testing.T) {
	s := serve(t, "boot", "tftpd", "69", 2<<20, nil, []string{"s1", "s2"}, "--shed-after", "500")
	p, got := s.client("tftp", "-6", "-m", "binary", s.name+".svc", "-c", "get", "blob", "GOT")
	s.goesOn(p)
	s.whole(p, got)
}

func TestATFTPTransferSurvivesItsServer(t *testing.T) {
	safety.Test(t, safety.Bytes)
	s := serve(t, "kill-boot", "tftpd", "69", 8<<20, nil, []string{"s1", "s2"})
	p, got := s.client("tftp", "-6", "-m", "binary", s.name+".svc", "-c", "get", "blob", "GOT")
	s.arrived(p, got, 100_000)
	s.end(s.busy())
	s.goesOn(p)
	s.whole(p, got)
}
