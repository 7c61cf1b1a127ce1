package bench

import (
	"errors"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

func TestANewFlowGetsAFlowOfItsOwn(t *testing.T) {
	frame := make([]byte, udpFrame)
	copy(frame[12:], []byte{0x86, 0xdd, 0x60})
	frame[20], frame[22], frame[38], frame[54], frame[57] = protoUDP, 0xfd, 0xfd, 4, 7
	in := ofp.PacketIn{Match: ofp.Match{ofp.Uint(ofp.InPort, 1)}, Data: frame}
	flow, out, ok := react(in)
	if !ok || flow.IdleTimeout != reactiveIdle || flow.Match.Uint(ofp.UDPSrc) != 1024 || flow.Match.Uint(ofp.UDPDst) != 7 {
		t.Errorf("%v %+v", ok, flow)
	}
	if src, _ := flow.Match.Get(ofp.IPv6Src); src.Addr().String() != "fd00::" {
		t.Errorf("from %v", src)
	}
	if to := out.Actions[0].(ofp.Output).Port; to != 2 || out.InPort != 1 {
		t.Errorf("out of port %v, from %v", to, out.InPort)
	}
	in.Data = frame[:udpFrame-1]
	if _, _, ok := react(in); ok {
		t.Error("half a header is no flow")
	}
}

func TestATurnHasOnlyNewFlows(t *testing.T) {
	if err := (ReactiveSize{Flows: 300, Burst: 5000}).Check(); err != nil {
		t.Error(err)
	}
	if (ReactiveSize{Flows: 300, Burst: 40000}).Check() == nil {
		t.Error("two turns would use the same ports")
	}
}

func TestWithoutThePeerItIsSaidWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := installPeer(t.Context(), t.TempDir())
	if !missing(err) || !strings.Contains(err.Error(), "--python") {
		t.Errorf("got %v", err)
	}
	if missing(errors.New("else")) {
		t.Error("other failures are not that")
	}
}
