package host

import (
	"testing"
	"unsafe"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
)

// TestABI compares Go's layout with the _Static_asserts of abi.h, and the constants that both sides know.
func TestABI(t *testing.T) {
	sizes := []struct {
		name      string
		got, want uintptr
	}{
		{"host_config", unsafe.Sizeof(edgeHostConfig{}), 32},
		{"slot", unsafe.Sizeof(edgeSlot{}), 40},
		{"place", unsafe.Sizeof(edgePlace{}), 448},
		{"flow_key", unsafe.Sizeof(edgeFlowKey{}), 40},
		{"answer_ports", unsafe.Sizeof(edgeAnswerPorts{}), 136},
		{"egress_flow", unsafe.Sizeof(edgeEgressFlow{}), 96},
		{"ingress_flow", unsafe.Sizeof(edgeIngressFlow{}), 96},
		{"service", unsafe.Sizeof(edgeService{}), 16},
		{"instance_key", unsafe.Sizeof(edgeInstanceKey{}), 16},
		{"access_key", unsafe.Sizeof(edgeAccessKey{}), 20},
		{"policy", unsafe.Sizeof(edgePolicy{}), 4},
		{"step", unsafe.Sizeof(edgeStep{}), 80},
		{"meter", unsafe.Sizeof(edgeMeter{}), 16},
		{"session", unsafe.Sizeof(edgeSession{}), 514},
		{"session_key", unsafe.Sizeof(edgeSessionKey{}), 17},
		{"guest", unsafe.Sizeof(edgeGuest{}), 24},
		{"owner_key", unsafe.Sizeof(edgeOwnerKey{}), 16},
		{"guest_space", unsafe.Sizeof(edgeGuestSpace{}), 8},
		{"recent_peer_key", unsafe.Sizeof(edgeRecentPeerKey{}), 24},
		{"recent_peer", unsafe.Sizeof(edgeRecentPeer{}), 56},
		{"event", unsafe.Sizeof(edgeEvent{}), 72},
	}
	for _, s := range sizes {
		if s.got != s.want {
			t.Errorf("struct %s: Go has %d bytes, abi.h %d", s.name, s.got, s.want)
		}
	}
	if int(edgeHostReasonHOST_REASONS) != len(reasons) {
		t.Errorf("drop.h has %d reasons, Go names %d", edgeHostReasonHOST_REASONS, len(reasons))
	}
	for i, name := range reasons {
		if i > 0 && name == "" {
			t.Errorf("reason %d of drop.h has no name", i)
		}
	}
}

func TestOpenLoads(t *testing.T) {
	newEdge(t, Config{})
}

func TestPinnedMapsHaveTheLayoutOfTheirVersion(t *testing.T) {
	spec, err := loadEdge()
	if err != nil {
		t.Fatal(err)
	}
	bpftest.HoldLayout(t, spec, sharedMaps, abiVersion,
		"raise HOST_ABI in include/abi.h and abiVersion in load.go, or put the change where daemons of before see zeroes")
}
