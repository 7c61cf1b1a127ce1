package lldp

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

var from = [6]byte{2, 0, 0, 0, 0, 7}

// usual is a frame as a switch sends it, filled up to 60 bytes.
func usual() []byte {
	b := AppendHeader(nil, from)
	b = AppendTLV(b, ChassisID, []byte{ChassisLocal}, []byte("s1"))
	b = AppendTLV(b, PortID, []byte{PortInterface}, []byte("p1"))
	b = AppendTLV(b, TTL, []byte{0, 4})
	b = AppendTLV(b, Organization, []byte("\x5c\xaf\x01\x07"), []byte("more"))
	b = AppendTLV(b, End)
	return append(b, make([]byte, 60-len(b))...)
}

// said is what Each tells of a frame.
func said(frame []byte) (all []string, err error) {
	err = Each(frame, func(kind Kind, value []byte) { all = append(all, fmt.Sprintf("%d %q", kind, value)) })
	return all, err
}

func TestWhatWasAppendedIsRead(t *testing.T) {
	all, err := said(usual())
	if want := `[1 "\as1" 2 "\x05p1" 3 "\x00\x04" 127 "\\\xaf\x01\amore"]`; err != nil || fmt.Sprint(all) != want {
		t.Errorf("%v, %v; want %s", all, err, want)
	}
	if b := usual(); !bytes.Equal(b[:6], Group[:]) || !bytes.Equal(b[6:12], from[:]) {
		t.Errorf("% x", b[:ethernetLen])
	}
	longest := AppendTLV(AppendHeader(nil, from), Organization, make([]byte, MaxValue))
	if all, err := said(longest); err != nil || len(all) != 1 {
		t.Errorf("%d TLVs of %d bytes: %v", len(all), MaxValue, err)
	}
}

func TestWhatIsNoWholeFrameIsNamed(t *testing.T) {
	whole := usual()
	for n := range ethernetLen {
		if _, err := said(whole[:n]); !errors.Is(err, ErrNone) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	other := usual()
	other[13]++
	if _, err := said(other); !errors.Is(err, ErrNone) {
		t.Errorf("another type: %v", err)
	}
	for _, n := range []int{ethernetLen + tlvHeaderLen, ethernetLen + tlvHeaderLen + 2} {
		if all, err := said(whole[:n]); !errors.Is(err, ErrCut) || all != nil {
			t.Errorf("%d bytes: %v, %v", n, all, err)
		}
	}
}

func TestAValueThatIsTooLongIsNotBegun(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("its length was written into the kind")
		}
	}()
	AppendTLV(nil, Organization, make([]byte, MaxValue), []byte{0})
}

// A frame made of the TLVs that were read reads the same.
func FuzzEach(f *testing.F) {
	f.Add(usual())
	f.Add(usual()[:20])
	f.Fuzz(func(t *testing.T, in []byte) {
		again := AppendHeader(nil, from)
		all := []string{}
		err := Each(in, func(kind Kind, value []byte) {
			again = AppendTLV(again, kind, value)
			all = append(all, fmt.Sprintf("%d %q", kind, value))
		})
		if err != nil {
			return
		}
		if got, err := said(AppendTLV(again, End)); err != nil || fmt.Sprint(got) != fmt.Sprint(all) {
			t.Fatalf("%v became %v, %v", all, got, err)
		}
	})
}
