package resume

import (
	"testing"
)

// TestATFTPTransferGoesOnTwice: the client is Debian's; each instance sheds what began with it, and
// the second is killed.
func TestATFTPTransferGoesOnElsewhere(t *testing.T) {
	s := serve(t, "boot", "tftpd", "69", 2<<20, nil, []string{"s1", "s2"}, "--shed-after", "500")
	p, got := s.client("tftp", "-6", "-m", "binary", s.name+".svc", "-c", "get", "blob", "GOT")
	s.whole(p, got)
	if s.resumed() == 0 {
		t.Error("the transfer went on nowhere")
	}
}

// TestATFTPTransferSurvivesItsServer: the client asks again by its own timer.
func TestATFTPTransferSurvivesItsServer(t *testing.T) {
	s := serve(t, "kill-boot", "tftpd", "69", 8<<20, nil, []string{"s1", "s2"})
	p, got := s.client("tftp", "-6", "-m", "binary", s.name+".svc", "-c", "get", "blob", "GOT")
	s.arrived(got, 100_000)
	s.end(s.busy())
	s.whole(p, got)
	if s.resumed() != 1 {
		t.Error("the transfer went on nowhere")
	}
}
