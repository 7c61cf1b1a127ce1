package divert

import (
	"strings"
	"testing"
	"unsafe"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestABI compares Go's layout with the _Static_asserts of abi.h, and the constants that both sides know.
func TestABI(t *testing.T) {
	for _, s := range []struct {
		name      string
		got, want uintptr
	}{
		{"ends", unsafe.Sizeof(divertEnds{}), 36},
		{"options", unsafe.Sizeof(divertOptions{}), 12},
		{"session", unsafe.Sizeof(divertSession{}), 40},
		{"held", unsafe.Sizeof(divertHeld{}), 24},
		{"held_syn", unsafe.Sizeof(divertHeldSyn{}), 72 + 1536},
		{"divert_config", unsafe.Sizeof(divertDivertConfig{}), 24},
		{"server_key", unsafe.Sizeof(divertServerKey{}), 28},
		{"client_key", unsafe.Sizeof(divertClientKey{}), 24},
		{"rule", unsafe.Sizeof(divertRule{}), 16},
		{"rules", unsafe.Sizeof(divertRules{}), 8 + 16*maxRules},
	} {
		if s.got != s.want {
			t.Errorf("struct %s: Go has %d bytes, abi.h %d", s.name, s.got, s.want)
		}
	}
	if int(divertDivertReasonDIVERT_REASONS) != len(reasons) {
		t.Errorf("abi.h has %d reasons, counters.go names %d", divertDivertReasonDIVERT_REASONS, len(reasons))
	}
	if spec := load(t); spec.Maps["saved"].MaxEntries < uint32(len(sysctls)) {
		t.Errorf("the map of what is to be put back has %d places, there are %d sysctls", spec.Maps["saved"].MaxEntries, len(sysctls))
	}
}

func TestPinnedMapsHaveTheLayoutOfTheirVersion(t *testing.T) {
	bpftest.HoldLayout(t, load(t), pinned, abi, "raise DIVERT_ABI in abi.h and abi in open.go")
}

func TestFramesFitTheOldestKernel(t *testing.T) { bpftest.FitStack(t, load(t)) }

func TestProgramsLoadQuickly(t *testing.T) {
	nstest.Root(t)
	bpftest.LoadQuickly(t, load(t))
}

func TestReasonsSayWhetherThePacketWentOn(t *testing.T) {
	for reason, name := range map[divertDivertReason]string{
		divertDivertReasonDIVERT_PASSED_AWAY: "passed_agent_away", divertDivertReasonDIVERT_PASSED_FULL: "passed_held_limit",
		divertDivertReasonDIVERT_RESET: "reset_unfinished", divertDivertReasonDIVERT_NO_LISTENER: "dropped_no_listener",
	} {
		if reasons[reason] != name {
			t.Errorf("reason %d of abi.h is called %s, expected %s", reason, reasons[reason], name)
		}
	}
	for _, name := range reasons[1:] {
		if strings.ContainsAny(name, " -") {
			t.Errorf("%q is no name of a counter", name)
		}
	}
}
